"""What a user calls: solve, path, minimize, and the one loop below them."""
