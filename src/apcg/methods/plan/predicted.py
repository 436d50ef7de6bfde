"""What whole runs of the methods cost, in nanoseconds, as the plan predicts it."""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Index
from ...problems.costs import (
    RATES,
    cholesky,
    dense_gram,
    gram,
    gram_entries,
    is_dense,
    lean_sweep,
    product,
)
from ...problems.erm import ERM
from ..newton import ids
from ..newton.id_rows import split

_EPS = float(np.finfo(float).eps)
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
#: X sorted by its ids: ns for each number of it and for each row (4 to 9 and 20 to 30 on 12 sets).
IDS_NUMBER, IDS_ROW = 11.0, 25.0
#: Newton's method for ids: steps, each two products and an evaluation of the loss, ...
IDS_STEPS, IDS_STEPS_A_DIGIT = 5.0, 0.5
#: ... how often S is made (squared loss; logistic; with kinks), ...
IDS_MADE = (1.0, 1.5, 3.0)
#: ... or products of conjugate gradients with its diagonal, (1 + 0.45 sqrt(r)) times as many for
#: the r of `difficulty` (27 and 36 to 1e-3 and 1e-6 at r = 5, 81 and 115 at 250).
IDS_PRODUCTS, IDS_PRODUCTS_A_DIGIT, IDS_HARDER = 6.0, 1.5, 0.45


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


def newton_ids(problem: ERM, tol: float) -> float:
    """A run of Newton's method with ids eliminated; infinite if less than half the rows have one.

    The multiply-adds of S are known once the rows are sorted; before, they are bounded.
    """
    n, X = problem.n_samples, ids.columns_of(problem)
    one = ids.one_product(X)
    steps = 1.0 if problem.loss.eta == problem.loss.gamma else IDS_STEPS
    steps += IDS_STEPS_A_DIGIT * digits(tol) if steps > 1 else 0.0
    work = IDS_NUMBER * X.nnz + IDS_ROW * n + steps * (2 * (one + RATES.call) + RATES.loss * n)
    made = X.view(split)
    others = X.shape[1] - made.ids
    S = ids.one_matrix(gram_entries(problem) + made.pairs_below(X), others)
    if ids.TUNING.dear * one >= S and others <= ids.TUNING.widest:
        kind = 0 if steps == 1 else 1 + (problem.loss.kinks.size > 0)
        return work + IDS_MADE[kind] * S
    if 2 * made.rows.sum() < n:
        return math.inf
    harder = 1 + IDS_HARDER * math.sqrt(difficulty(problem))
    products = IDS_PRODUCTS + IDS_PRODUCTS_A_DIGIT * digits(tol)
    return work + harder * products * one


def hidden(problem: ERM) -> float:
    """The rounding of the largest |a_i|^2 over lambda gamma n: above 1, X X' + lambda hides it."""
    own = problem.strong_convexity * (problem.loss.gamma or 1.0) * problem.n
    return 0.5 * _EPS * problem.R**2 / own if own > 0 else math.inf


def digits(tol: float) -> float:
    """How many digits a tolerance asks for."""
    return -math.log10(min(max(tol, 1e-12), 1.0))
