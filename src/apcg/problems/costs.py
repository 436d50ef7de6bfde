"""What passes over a problem and whole runs on it cost, in nanoseconds: predictions of time.

The rates are fixed numbers, so that a rerun takes the same decisions. They were measured on one
core of a 2.x GHz x86-64 server (`benchmarks/rates.py` measures them); decisions compare costs with
each other, so only the ratios of the rates matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.validation import Index
from .erm import ERM

_EPS = float(np.finfo(float).eps)


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


# ---- whole runs ----------------------------------------------------------------------------------

#: Steps of an interior point run to 1e-6: 17 to 41 on all rows of a9a and covtype, 10 to 19 on
#: those kept; and how many fewer for each digit less (digits, rows kept: 5 to 7 to 1e-3, 8 to 10).
INTERIOR_STEPS, INTERIOR_STEPS_A_DIGIT = 20, 2.0
#: What a step costs besides its work: Python, kernel calls.
INTERIOR_CALLS = 0.8 * RATES.call
#: Steps of interior points with an L1 part, to 1e-6: 10 to 22 on breast_cancer and random data;
#: passes of a step besides its matrix, and its Python, 0.25 ms.
INTERIOR_L1_STEPS, INTERIOR_L1_PRODUCTS, INTERIOR_L1_CALLS = 15, 6, 250_000.0
#: Passes of a run of `smoothing`, and factors: 25 to 50 on a9a, covtype and noisy one-hot data.
SMOOTHING_PASSES, SMOOTHING_FACTORS = 33, 10
#: With an intercept and less than this part of the samples in one class it takes so many times as
#: many: 5 to 9 times on raw and standardised counts with 4 % positives, and is not always done.
SMOOTHING_RARE, SMOOTHING_RARER = 0.1, 8.0

#: Steps of Newton's method on its sample (3 to 6 on a9a, covtype and one-hot data). It has SAMPLE
#: rows a feature, and at least and at most these shares of all rows, ...
NEWTON_STEPS, SAMPLE, SAMPLE_SHARES = 4, 10.0, (0.1, 0.25)
#: ... and passes over all rows: 8 to 1e-3, 12 to 1e-6 on the same data.
NEWTON_PASSES, NEWTON_PASSES_A_DIGIT = 4.0, 4 / 3
#: Factors of all rows that take as long as a whole run, where a sample has too few rows: 4 to 6 on
#: 300 x 50 to 2,000 x 400 numbers.
NEWTON_WHOLE = 6.0
#: Dual sweeps over samples that hardly depend on each other: 4 to 6 to 1e-3, 5 to 8 to 1e-6.
EASY_SWEEPS, EASY_SWEEPS_A_DIGIT = 2.0, 1.0
#: The part of a sweep that is left where samples come to rest at a bound: 0.5 to 0.7 there.
RESTING = 0.6
#: The root of a step on a sample with the logistic loss, in ns.
ROOT = 45.0


def inner_products(problem: ERM) -> float:
    """X X' of dense rows."""
    return RATES.product_dense * 0.5 * problem.n_samples**2 * problem.d


def in_passes(problem: ERM, entries: float) -> float:
    """Multiply-adds of a Gram matrix and its factor as passes, of 2 nnz multiply-adds each."""
    return (entries + problem.d**3 / 6) / (2 * max(problem.samples.nnz, 1))


def interior(problem: ERM, rows: Index, tol: float = 1e-6) -> float:
    """A run of the interior point method on some of the rows."""
    d, count = problem.d, rows.size
    if is_dense(problem):
        work = dense_gram(count, d) + RATES.interior_dense * d * count
    else:
        lengths = problem.samples.lengths[rows]
        work = RATES.gram_entry * 0.5 * float(np.sum(lengths * (lengths + 1)))
        work += RATES.interior_number * float(np.sum(lengths))
    work += RATES.interior_row * count + RATES.cholesky_entry * d**3 / 6 + INTERIOR_CALLS
    steps = INTERIOR_STEPS - INTERIOR_STEPS_A_DIGIT * max(6.0 - digits(tol), 0.0)
    return steps * work


def interior_l1(problem: ERM) -> float:
    """A run of interior points for an L1 part, by the smaller of its two matrices."""
    n, d = problem.n_samples, problem.d
    small, large = float(min(n, d)), float(max(n, d))
    gram = 0.5 * RATES.product_dense * small**2 * large
    if not is_dense(problem) and d <= n:
        gram = RATES.gram_entry * gram_entries(problem)
    work = gram + RATES.cholesky_entry * small**3 / 6 + 2 * RATES.vector_entry * (n + d) * 10
    work += INTERIOR_L1_PRODUCTS * working_set_pass(problem) + INTERIOR_L1_CALLS
    return INTERIOR_L1_STEPS * work


def working_set_pass(problem: ERM) -> float:
    """Two products with X, by BLAS if it is dense."""
    each = RATES.product_dense if is_dense(problem) else RATES.product_nonzero
    return 2 * each * problem.samples.nnz


def smoothing(problem: ERM) -> float:
    """A run of `smoothing`: passes of Newton's method, factors of a sample."""
    d, n = problem.d, problem.n_samples
    one = product(problem) + (RATES.loss + RATES.vector_entry) * n + 2 * RATES.call
    passes = SMOOTHING_PASSES * (SMOOTHING_RARER if rare(problem) else 1.0)
    return passes * one + SMOOTHING_FACTORS * RATES.cholesky_entry * d**3 / 6


def rare(problem: ERM) -> bool:
    """Whether there is an intercept, and a class with few of the samples.

    Then next to all of the others are at the kink of a hinge loss, and which rows rest says little.
    """
    if not (problem.intercept and problem.loss.margin):
        return False
    positive = float(np.mean(problem.y > 0))
    return min(positive, 1 - positive) < SMOOTHING_RARE


def newton_step(problem: ERM) -> float:
    """A step of Newton's method: the Hessian, its factor, two products, a search along a line."""
    loss = 4 * RATES.loss * problem.n_samples
    return gram(problem) + cholesky(problem.d) + 2 * product(problem) + loss + RATES.look


def newton_whole(problem: ERM) -> float:
    """A run of Newton's method with too few samples for a sample of them."""
    one = problem.loss.eta == problem.loss.gamma
    return (1.0 if one else NEWTON_WHOLE) * newton_step(problem)


def newton(problem: ERM, tol: float) -> float:
    """A run of Newton's method with many samples for each feature, to a relative gap."""
    n, d = problem.n_samples, problem.d
    least, most = SAMPLE_SHARES
    share = max(min(SAMPLE * d / n, most), least)
    dense = is_dense(problem)
    madd = RATES.product_dense if dense else RATES.gram_entry
    H = share * madd * gram_entries(problem) + RATES.cholesky_entry * d**3 / 6
    one = product(problem) + RATES.vector_entry * n
    passes = NEWTON_PASSES + NEWTON_PASSES_A_DIGIT * digits(tol)
    return NEWTON_STEPS * H + passes * one


def easy_sweeps(problem: ERM, tol: float) -> float:
    """A run of dual sweeps if x_i hardly depends on the other x; infinite if it does."""
    r = difficulty(problem)
    if not r <= 1:
        return math.inf
    sweeps = (1 + r) * (EASY_SWEEPS + EASY_SWEEPS_A_DIGIT * digits(tol))
    part = RESTING if problem.loss.rests else 1.0
    return part * sweeps * lean_sweep(problem)


def difficulty(problem: ERM) -> float:
    """r, the mean of |a_i|^2/(lambda n gamma).

    A step on one sample undoes about r/(1 + r) of the others' progress.
    """
    gamma = float(problem.loss.gamma)
    norms = problem.weights * problem.squared_norms
    return float(np.mean(norms)) / (problem.strong_convexity * problem.n * max(gamma, 1e-300))


def sweeps(problem: ERM, tol: float) -> float:
    """A run of dual sweeps, at least.

    (1 + sqrt(r)) times those of an easy one: on words it takes 0.8 to 1.3 of that, on ids 1 to 4.
    """
    easy = EASY_SWEEPS + EASY_SWEEPS_A_DIGIT * digits(tol)
    root = ROOT * problem.n_samples if problem.loss.kernel == "logistic" else 0.0
    one = lean_sweep(problem) + root + RATES.call
    return (1 + math.sqrt(difficulty(problem))) * easy * one


def hidden(problem: ERM) -> float:
    """The rounding of the largest |a_i|^2 over lambda gamma n: above 1, X X' + lambda hides it."""
    own = problem.strong_convexity * (problem.loss.gamma or 1.0) * problem.n
    return 0.5 * _EPS * problem.R**2 / own if own > 0 else math.inf


def digits(tol: float) -> float:
    """How many digits a tolerance asks for."""
    return -math.log10(min(max(tol, 1e-12), 1.0))
