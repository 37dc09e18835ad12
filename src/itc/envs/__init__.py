"""Worlds to imagined rollout of."""
