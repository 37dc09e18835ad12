"""Worlds to dream of."""
