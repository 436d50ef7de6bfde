"""Products with X."""
