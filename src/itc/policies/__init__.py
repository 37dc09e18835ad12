"""Policies: encoders, recurrent actor-critics, returns and losses."""
