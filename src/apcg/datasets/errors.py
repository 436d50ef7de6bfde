"""What is wrong with data or a model file, in words for the user."""


class DataError(ValueError):
    """A file, a line, a download or a set of labels that cannot be used."""
