"""Working sets for the softmax with sparse penalties.

fit      the losses of all rows
run      what all runs share: shapes, intercepts, the gap
entries  dense data: sets of entries of W, by the matrix of second derivatives on a set
columns  sparse data: the entries that may move, on sparse columns; face has the model
groups   sets of rows of W
method   which of them
"""
