"""What a pass over a problem costs, in nanoseconds: where methods get predictions of time from.

The rates are fixed numbers, so that a rerun takes the same decisions. They were measured on one
core of a 2.x GHz x86-64 server (`benchmarks/rates.py` measures them); decisions compare costs with
each other, so only the ratios of the rates matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .erm import ERM


@dataclass(frozen=True)
class Rates:
    """Nanoseconds of one unit of each kind of work (docs/decisions/0005-costs.md)."""

    #: a stored number of a coordinate step: read in the product, read and written in the update
    step_nonzero: float = 4.0
    #: a coordinate step, besides its numbers
    step: float = 40.0
    #: a number of a coordinate step on a dense row
    step_dense: float = 0.8
    #: a multiply-add of the inner products of dense rows, by BLAS
    product_dense: float = 0.08
    #: a multiply-add of the Gram matrix of dense rows, by our own loops
    gram_dense: float = 0.13
    #: a stored number of a product with X or its transpose
    product_nonzero: float = 1.5
    #: a multiply-add of the Gram matrix of sparse rows
    gram_entry: float = 0.9
    #: a multiply-add of a Cholesky factor, of which there are d^3/6
    cholesky_entry: float = 0.25
    #: an entry of a vector in an elementwise operation, with its share of NumPy's overhead
    vector_entry: float = 3.0
    #: an evaluation of a loss and its conjugate
    loss: float = 15.0
    #: a row in a step of the interior point method, besides its numbers, and a number of it
    interior_row: float = 55.0
    interior_number: float = 6.0
    interior_dense: float = 2.0
    #: a sweep of the dual methods that `auto` takes, besides its steps: Python, a kernel call
    call: float = 50_000.0
    #: a look, besides all that: Python
    look: float = 50_000.0


RATES = Rates()

#: A multiply-add of X'diag(s) X of dense rows, by our own loops for few columns, else by BLAS: so
#: much, and more by this number of ns over the columns (10 to 2,000 columns, one thread).
GRAM_OWN, GRAM_BLAS, GRAM_BLAS_FROM = (0.07, 2.5), (0.04, 4.0), 150
#: A multiply-add of a factor, by our own loops and by LAPACK, and what a factor takes besides.
FACTOR_OWN, FACTOR_LAPACK, FACTOR_LAPACK_FROM, FACTOR_CALL = 0.11, 0.06, 600, 5_000.0


def dense_gram(n: float, d: int) -> float:
    """X'diag(s) X of n dense rows."""
    least, over = GRAM_BLAS if d > GRAM_BLAS_FROM else GRAM_OWN
    return (least + over / max(d, 1)) * 0.5 * n * d * (d + 1)


def cholesky(d: int) -> float:
    """A factor of d x d numbers."""
    return FACTOR_CALL + (FACTOR_LAPACK if d > FACTOR_LAPACK_FROM else FACTOR_OWN) * d**3 / 6


def is_dense(problem: ERM) -> bool:
    """Whether all numbers of X are stored."""
    return not problem.samples.sparse


def sweep(problem: ERM) -> float:
    """One pass of a coordinate method."""
    return RATES.step_nonzero * problem.samples.nnz + RATES.step * problem.n_samples


def dense_sweep(problem: ERM) -> float:
    """One pass of a coordinate method over dense rows."""
    return (RATES.step_dense * problem.d + RATES.step) * problem.n_samples


def lean_sweep(problem: ERM) -> float:
    """One pass of the dual sweeps, which read dense rows as such."""
    return dense_sweep(problem) if is_dense(problem) else sweep(problem)


def product(problem: ERM) -> float:
    """A product with X or its transpose."""
    each = RATES.step_dense if is_dense(problem) else RATES.product_nonzero
    return each * problem.samples.nnz


def look(problem: ERM) -> float:
    """A certificate: X w, A x, P and D, and the vectors that a method makes for it."""
    n, d = problem.n_samples, problem.d
    products = 2 * RATES.product_nonzero * problem.samples.nnz
    return products + RATES.loss * n + RATES.vector_entry * (n + 2 * d) + RATES.look


def until_look(problem: ERM, passes: int) -> int:
    """Passes until the next look, after so many: looks take under a fifth of the time.

    At first they are more frequent, so that what is soon solved ends soon.
    """
    share = 5 * look(problem) / sweep(problem)
    return int(min(20, max(1, passes // 2), max(1, math.ceil(share))))


def gram(problem: ERM) -> float:
    """X'diag(s) X of all rows."""
    if is_dense(problem):
        return dense_gram(problem.n_samples, problem.d)
    return RATES.gram_entry * gram_entries(problem)


def gram_entries(problem: ERM) -> float:
    """Multiply-adds of X' D X: the pairs of stored numbers in a row."""
    X = problem.samples
    if is_dense(problem):  # all rows are as long
        return 0.5 * X.nnz * (problem.d + 1)
    lengths = X.lengths
    return 0.5 * float(np.sum(lengths * (lengths + 1)))
