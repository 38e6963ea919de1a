"""What moves: SimPy processes and resources. Thin: wait, ask, check, do, write down."""
