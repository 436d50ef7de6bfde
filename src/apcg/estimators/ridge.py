"""Ridge regression for many alphas at once: one decomposition of the Gram matrix serves them all.

With the best b for each w taken out, P is a parabola in w:

    H = sum_i s_i (a_i - a)(a_i - a)'/gamma,   c = sum_i s_i (a_i - a) y_i/gamma,   sum_i s_i = 1
    w = (H + alpha I)^-1 c = V (Lambda + alpha)^-1 V' c,   H = V Lambda V'

a is the mean of the rows, or 0 without an intercept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.validation import Matrix, Vector
from ..losses import Squared
from ..problems.erm import ERM
from ..problems.objective import Objective, moments

#: Of more features the decomposition takes longer than a few steps for each alpha.
WIDEST = 500


def applies(problems: Sequence[ERM]) -> bool:
    """Whether this is one ridge regression, with few features and more samples than these."""
    first = problems[0]
    fits = isinstance(first.loss, Squared) and first.g.is_l2 and first.g.strong_convexity == 1
    return len(problems) == 1 and fits and first.d <= min(WIDEST, first.n)


def optima(
    rows: Objective, train: Any, weights: Vector | None, alphas: Vector
) -> tuple[Matrix, Vector]:
    """The best w (a row each) and b for the alphas, of the samples to train on, and their weights.

    `rows` are those of a problem with some alpha.
    """
    s = np.zeros(rows.n)
    s[train] = 1.0 if weights is None else weights[train]
    H, c, b, slopes = moments(rows, s / s.sum())
    values, V = np.linalg.eigh(H, UPLO="U")
    W = (c @ V) / (np.maximum(values, 0.0) + alphas[:, None]) @ V.T
    return W, b - W @ slopes
