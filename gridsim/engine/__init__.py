"""Compiled event loop for runs without Python callbacks: arrivals, ends, overruns and scheduling cycles."""
