"""What a preset costs on a GPU, found by compiling its programs for one that need not be there."""
