"""From a model's logits and the previous frame's tokens to the next frame's tokens and where each came from."""
