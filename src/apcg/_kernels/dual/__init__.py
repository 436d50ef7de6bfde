"""Sweeps over the samples, in the dual."""
