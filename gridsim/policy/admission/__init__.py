"""Plans with a start for every waiting job, and the rules that admit jobs to them."""
