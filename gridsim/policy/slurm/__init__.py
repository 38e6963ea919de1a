"""Parts of the Slurm scheduler: priorities, shares, limits, nodes, and the scheduling cycles."""
