"""Play inside a world model, in a browser: decoders side by side, and the real game next to them."""
