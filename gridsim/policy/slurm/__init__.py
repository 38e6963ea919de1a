"""Parts of the Slurm-like scheduler: priorities, shares, limits, nodes, and the passes over them."""
