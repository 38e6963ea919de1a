"""Plans that promise every waiting job a start, and the rules that let jobs into them."""
