"""Figures and verdicts of the paper on moldable jobs, from the rows of its campaign."""
