"""Models that predict the next frame's tokens, the reward and the end of the episode."""
