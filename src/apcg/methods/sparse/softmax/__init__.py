"""Working sets for the softmax: entries of W on dense data, on sparse columns, or rows of W."""
