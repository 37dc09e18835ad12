"""A self-contained page about one or more runs."""
