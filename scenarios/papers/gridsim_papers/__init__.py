"""Published studies done again: what is missing is run, figures and tables are drawn, and each claim gets a verdict."""
