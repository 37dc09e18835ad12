"""Pictures of frames, dreams and where their tokens came from."""
