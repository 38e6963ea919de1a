"""Reproductions of published studies: run missing campaigns, draw figures and tables, and give each claim a verdict."""
