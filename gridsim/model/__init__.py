"""Immutable data: what exists, without a clock. Nothing here decides, moves or measures."""
