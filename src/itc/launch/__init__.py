"""Where runs are executed: on this machine, by SLURM or by Ray. A launcher takes jobs; a job can always be repeated."""
