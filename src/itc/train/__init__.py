"""Training: the loop, imagination, checkpoints and run folders; one folder per agent, with one file per phase."""
