"""Steps of interior points."""
