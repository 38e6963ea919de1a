"""Schedulers, composed of an ordering and a reservation rule or an admission."""
