"""Newton's method for many samples and few features."""
