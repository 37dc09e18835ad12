"""Pictures of frames, imagined rollouts and where their tokens came from."""
