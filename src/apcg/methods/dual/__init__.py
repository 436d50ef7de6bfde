"""Coordinate ascent in the dual: sweeps over the samples, with and without momentum."""
