"""What acts: encoders, recurrent actor-critics, returns and losses."""
