"""Sweeps over columns, dense, sparse and in groups."""
