"""Wire formats: one module each. A stream of our events out, our errors out, nothing else."""
