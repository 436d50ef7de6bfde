"""The methods of `solve`. `base` says what a method is, `registry` has them by name."""
