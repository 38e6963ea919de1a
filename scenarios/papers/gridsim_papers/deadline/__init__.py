"""Figures and verdicts of the papers on guaranteed deadlines, from the rows of their campaign."""
