"""What decides: columns and an instant in, an answer out. No policy sees SimPy, a file, or a true runtime."""
