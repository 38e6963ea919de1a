"""Compiled data structures of free capacity over time: pools of cores, and nodes with several resources."""
