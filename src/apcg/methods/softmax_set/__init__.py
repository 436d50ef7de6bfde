"""Working sets for the softmax with sparse penalties.

fit      the losses of all rows
run      what all runs share: shapes, intercepts, the gap
entries  sets of entries of W, by the matrix of second derivatives on a set
columns  sparse columns: sweeps with the predictions of the model
method   which one
"""
