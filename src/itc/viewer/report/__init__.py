"""One page about a few runs, that needs nothing but itself."""
