"""Schedulers: who starts now, as compositions of an ordering and a rule or an admission."""
