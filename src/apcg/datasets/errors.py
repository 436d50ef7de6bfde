"""What is wrong with data or a model file, in words for the user."""


class DataError(ValueError):
    """A file, a line, a download or a set of labels that cannot be used.

    Examples
    --------
    >>> from apcg import datasets
    >>> try:
    ...     datasets.load("no_such_data")
    ... except datasets.DataError as error:
    ...     print("no_such_data" in str(error))
    True
    """
