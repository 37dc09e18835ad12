"""What policies and world models share: layers, and numbers learned as distributions."""
