"""Types, vectors and sums that the kernels share."""
