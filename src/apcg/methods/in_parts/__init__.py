"""Methods for an X that is not in memory: products with it, and sweeps over some of its parts."""
