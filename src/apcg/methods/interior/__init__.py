"""Interior points, for losses with kinks."""
