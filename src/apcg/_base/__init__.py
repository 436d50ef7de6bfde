"""What every room uses: types, validation, files, checks of a user's own pieces."""
