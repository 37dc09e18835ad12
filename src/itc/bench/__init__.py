"""Measurements of speed: ratios within one run, because machines differ and are noisy."""
