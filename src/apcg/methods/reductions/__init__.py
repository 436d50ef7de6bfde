"""A problem turned into smaller or smoother ones that another method solves."""
