"""The calendar of a run in which nothing needs Python, compiled: arrivals, ends, overruns and passes in one loop."""
