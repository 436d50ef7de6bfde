"""What the tests of group penalties share."""

from itertools import pairwise

import numpy as np


def off(X, Y, W, sizes, a):
    """How far W is from rest, relative to a."""
    grad, far = X.T @ (Y - X @ W) / len(X), 0.0
    for i, j in pairwise(np.cumsum([0, *sizes])):
        size = np.linalg.norm(W[i:j])
        away = np.linalg.norm(grad[i:j] - a * W[i:j] / size) if size else (
            max(np.linalg.norm(grad[i:j]) - a, 0.0))  # fmt: skip
        far = max(far, away / a)
    return far
