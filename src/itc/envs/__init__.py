"""Environments: the games that an agent plays, and rollouts in them."""
