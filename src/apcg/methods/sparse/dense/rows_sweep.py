"""The squared loss on a set of columns without their Gram matrix: sweeps that keep the residual.

    M(v) = (scale/2) |t - A'v|^2 + alpha sum_j a_j |v_j| + (b_j/2) v_j^2

A column is a row of A. An L2 part makes supports with more columns than samples, where a Gram
matrix has more numbers than A, and makes sweeps converge. Where they do not, it says so.
"""

from __future__ import annotations

import numpy as np

from ...._base.validation import Matrix, Vector
from ...._kernels.sparse import lasso
from ....problems import costs
from ..penalty import ScaledPenalty
from ..tuning import SetTuning

#: a set has up to so many times the support; 3 took 1.0 to 1.1 of the time
ROOMY = 2


def most_sweeps(m: int, n: int, alphas: int, tuning: SetTuning, few: int = 0) -> int:
    """As many over m columns as cost what a Gram matrix and a factor do, for each alpha.

    Of all m, or of as few as there would be with a Gram matrix.
    """
    size = few or m
    gram = costs.RATES.product_dense * 0.5 * n * size**2 / max(alphas, 1)
    factor = costs.RATES.cholesky_entry * (size / ROOMY) ** 3 / 6
    return int((gram + factor) / (tuning.row_number * m * n))


def swept(
    A: Matrix, scale: float, r: Vector, w: Vector, unit: ScaledPenalty, alphas: Vector,
    share: float, tuning: SetTuning, few: int = 0,
) -> Matrix:  # fmt: skip
    """The answers for one alpha after the other, a row each, to a gap of `share` of the value.

    It begins at w, where r = t - A'w. An answer that sweeps are too slow for is the first that is
    missing; `few` is as for `most_sweeps`.
    """
    m, n = A.shape
    most = most_sweeps(m, n, alphas.size, tuning, few)
    out, fine = np.empty((alphas.size, m)), unit.least * share**0.5
    done = lasso.row_path(
        np.ascontiguousarray(A), scale, r.copy(), w.copy(), *unit.parts, alphas, fine, share, most,
        np.empty(10 * m + 2 * n + 56), out,
    )  # fmt: skip
    return out[:done]


class RowsModel:
    """The model of a round at v, as `GramModel` has it; its slopes g are not known."""

    def __init__(self, v: Vector) -> None:
        self.v = v
        self.g: Vector | None = None
