"""Policies. They receive columns and an instant and return decisions; they see no SimPy, files or true run times."""
