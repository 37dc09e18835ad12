"""One file per line of the training loop."""
