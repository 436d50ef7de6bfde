"""The losses and penalties, one value at a time."""
