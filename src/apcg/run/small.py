"""Dense problems of few features in one kernel call: to choose a method would take longer.

The same certificates, the same answer: `solve` takes this way for method "auto" with nothing to
watch or to go on from, if the problem is dense and has few features:

- a smooth loss, L2: Newton's method, with many rows first on samples of them; the softmax too, and
  hinge and epsilon-insensitive losses by interior points, by the usual steps without a plan
- the squared loss with L2, one matrix, with L1, elastic net or norms of the rows of W, coordinate
  descent on it; the rows may be many, for X is read twice or three times only
- few rows with many features, squared or logistic loss, L2: Newton's method in their span

Where a kernel says that it cannot, `solve` takes its usual way.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._base.validation import Matrix, Vector
from .._kernels.newton import descent, squares
from .._kernels.newton import small as kernel
from ..certify import scales
from ..certify.certificate import certify, certify_at_slopes, certify_given, stated
from ..certify.points import Certificate, Point, Report, Start
from ..certify.result import Solution, Status, answer
from ..data import Dense, views
from ..losses.base import SOFTMAX
from ..losses.per_output import Columns
from ..methods.base import Budget, Target
from ..methods.interior.interior import IN_PIECES, InteriorRun
from ..methods.linalg.factor import Factor
from ..methods.newton import softmax
from ..methods.plan.case import Case
from ..methods.plan.watch import bends_evenly
from ..methods.reductions.row_space import Basis
from ..penalties.interval import Interval
from ..problems.erm import ERM
from .loop import Options

#: Features at most, rows for each feature at least, and numbers of X at most. Of the plan's time
#: the squared loss takes 0.3 to 0.6 with 1.6e5 numbers, 0.6 to 1.4 with 5e6; smooth losses 0.4 to
#: 0.7 (5,000 x 60 to 100,000 x 20). The logistic loss may have more features: 500 x 100 0.4 to 0.5,
#: 450 x 150 0.2 to 1.3, 10,000 x 150 0.9, 20,000 x 200 1.4. (A squared hinge needs other steps: 10
#: classes of digits with 65 features 1.4.)
FEATURES, EVEN, ROWS, NUMBERS = 60, 150, 3, 1e7
#: One weight for all rows and at least so many numbers of X: its Gram matrix is by BLAS, in 0.6 of
#: the CPU of our own loops. (Its threads cost more on small ones, and weights a copy of X.)
BLAS = 2**16
#: Rows at most that are one sum, of which the sums over all rows are made: rounding grows with it.
BLOCK = 4096
#: Features at most of ridge regression with a y of columns, which BLAS does.
OF_COLUMNS = 500
#: Rows of a wide X at most. Of the plan's time (squared; logistic; 2 and 10 features a row) 30 rows
#: take 0.4; 0.1 to 0.3, 100 0.5 to 0.7; 0.1 to 0.6, 200 0.7 to 0.9; 0.1 to 1.0, 400 1.0.
SPANNED = 400, 100
#: A pivot below this, for a unit diagonal, leaves w too few digits (that of `newton.WEAK`).
WEAK = 1e-7
#: Rows of a first sample for each feature, at most this part of all; the second one's part of all.
#: A sample is solved until a step promises less than this part of P: its optimum is not ours.
SAMPLES, LARGEST, SHARE, ROUGH = 15, 0.34, 0.1, 1e-2
#: Below this tolerance all digits of w are wanted: one more step (that of `PlanTuning.tight`).
TIGHT = 1e-10
#: Steps of Newton's method, and sweeps of coordinate descent, before the usual way is taken; and
#: passes that a user must leave for that.
STEPS, SWEEPS, PASSES = 80, 500, 100
#: Sweeps for an alpha of a path, which begins at the answer before; the gap that moments can show.
PATH_SWEEPS, ENOUGH, EPS = 5000, 1e-8, 2.0**-52


def is_small(problem: ERM) -> bool:
    """Whether the problem is of a size and kind that is solved here."""
    p, loss = problem, problem.loss
    n, d = p.samples.shape
    if p.samples.constant:  # the last column is stored nowhere
        return False
    if n < d:
        return _is_wide(p)
    most = OF_COLUMNS if p.K > 1 and loss.name == "squared" else FEATURES
    most = EVEN if loss.kernel == "logistic" else most
    if d > most or n < ROWS * d or p.samples.sparse:
        return False
    if n * d > NUMBERS or not p.samples.in_memory or not loss.compiled:
        return False
    if p.samples.view(views.whole).dtype != np.float64:
        return False
    g: Any = p.g
    if g.in_groups:
        rows = g.of_rows and g.last is None and g.a > 0
        return bool(rows and d <= FEATURES and _of_squares(p))
    if not (isinstance(p.g, Interval) and p.g.is_unbounded):
        return False
    if loss.kind == SOFTMAX:
        return bool(p.g.is_quadratic and softmax.applies(p) and softmax.at_once(p))
    if p.K > 1:
        return bool(_of_squares(p) and p.g.is_quadratic and p.dual_form)
    if p.g.is_quadratic and loss.gamma > 0:
        return bool(p.dual_form and loss.kernel in ("logistic", "interval"))
    if p.g.is_quadratic:
        case = Case(p, Start())
        return p.dual_form and case.kinked and case.tiny
    return bool(loss.name == "squared" and p.g.a.any() and p.box is None)


def _is_wide(problem: ERM) -> bool:
    """Whether the span of the rows is what the plan takes, and the problem there is solved here."""
    if problem.K > 1 or not problem.loss.compiled:
        return False
    even = bends_evenly(problem.loss)
    if problem.n_samples > SPANNED[not even] or not (even or IN_PIECES.holds(problem)):
        return False
    case = Case(problem, Start())
    return case.wide and not (case.raw or case.unpenalised)


def _of_squares(problem: ERM) -> bool:
    """Whether it is the squared loss, of one output or of each of many."""
    loss = problem.loss
    return bool((loss.loss if isinstance(loss, Columns) else loss).name == "squared")


def solve_small(problem: ERM, options: Options, last: Solution | None = None) -> Solution | None:
    """The answer; None if the usual way has to be taken: also if somebody watches.

    Newton's method begins at the last answer of a path.
    """
    begun, o = time.perf_counter(), options
    watched = o.callback is not None or o.check_every is not None or o.verbose
    if watched or o.time_limit is not None or o.max_epochs < PASSES or not is_small(problem):
        return None
    X, quadratic = problem.samples.view(views.whole), problem.g.is_quadratic
    way = _lasso if not quadratic else _newton if problem.loss.gamma > 0 else _interior
    if problem.K > 1 and quadratic:
        way = _softmax if problem.loss.kind == SOFTMAX else _ridge_of_columns
    elif len(X) < problem.d:
        way = _span
    if last is not None and way in (_newton, _softmax):
        way = partial(way, last=last)
    with np.errstate(all="ignore"):
        made = way(problem, X, options.tol)
    if made is None:
        return None
    found, passes, note = made
    reached = found.relative <= o.tol
    rounded = o.tol < TIGHT and not reached and scales.is_rounding(problem, found)
    enough = (reached or rounded) and passes <= o.max_epochs
    if not (enough and (not quadratic or _beats_zero(problem, found))):
        return None
    code = "converged" if reached else "precision"
    status = Status.of(code, passes, found.relative, o.tol)
    said = Report("dual" if way is _span else "primal", at_work=note.split(":")[0], notes=[note])
    return answer(found, status, said, "auto", passes, time.perf_counter() - begun)


def _beats_zero(problem: ERM, found: Certificate) -> bool:
    """Whether w = 0 is no better: by how far w is from it, or as it is."""
    p = problem
    if p.strong_convexity * float(np.vdot(found.w, found.w)) >= 8 * found.gap:
        return True
    z: Vector = np.zeros(p.x_shape)
    z += p.best_shift(z) if p.intercept else 0.0
    return p.primal_from(np.zeros_like(found.w), z) >= found.primal


def _newton(
    problem: ERM, X: Matrix, tol: float, last: Solution | None = None
) -> tuple[Certificate, int, str] | None:
    p, loss = problem, problem.loss
    n, d = X.shape
    ridge = np.full(d, p.alpha) * p.g.b
    w, x, polish = np.zeros(d + p.intercept), np.empty(n), int(tol < TIGHT)
    if loss.name == "squared":
        steps, primal, gap = squares.ridge(
            X, p.intercept, p.y[:, None], p.weights, 1 / p.n, loss.gamma, ridge, tol, WEAK, polish,
            STEPS, *_moments(p, X), w, x,
        )  # fmt: skip
        cost = steps * (1.5 + 0.25 * d)
    else:
        if last is not None:
            w[:] = np.append(last.w, last.intercept) if p.intercept else last.w
        cost, primal, gap = _by_steps(p, X, ridge, tol, polish, w, x)
        x = loss.clip(x, p.y, p.weights)  # -s phi'(z), which may be outside by a rounding
    if not cost:
        return None
    b = float(w[d]) if p.intercept else 0.0
    found = certify_at_slopes(p, w[:d].copy(), b, x, primal, gap)
    return found, math.ceil(cost), f"newton: {n:,} samples for {d:,} features"


def _by_steps(
    problem: ERM, X: Matrix, ridge: Vector, tol: float, polish: int, w: Vector, x: Vector
) -> tuple[float, float, float]:
    """Newton's method on samples of the rows, then on all: passes (0: it cannot), P and P - D.

    It is on all rows at once if w is not zero.
    """
    p, loss, size, n = problem, problem.loss, w.size, len(X)
    factor, theta, zero, spent = np.zeros((size + 1, size)), np.array(loss.theta), math.inf, 0.0

    def run(step: int, out: Vector, tol: float, rough: float, polish: int) -> Any:
        weights = p.weights if p.weights.size == 1 else p.weights[::step].copy()
        total = weights.sum() * (out.size if weights.size == 1 else 1)
        return kernel.newton(
            loss.kernel, theta, np.ascontiguousarray(X[::step]), p.intercept,
            np.ascontiguousarray(p.y[::step]), loss.margin, weights,
            1 / (p.n if step == 1 else total or 1.0), ridge, tol, rough, WEAK, polish, STEPS, zero,
            w, factor, out,
        )  # fmt: skip

    for rows in () if w.any() else _samples(n, size):
        step = n // rows
        cost, first, _, _ = run(step, np.empty(-(-n // step)), 0.0, ROUGH, 0)
        if not cost:
            w[:], zero = 0.0, math.inf
            break
        zero = min(zero, first) if factor.any() else math.inf  # no factor: its rows weigh nothing
        spent += cost / step
    cost, _, primal, gap = run(1, x, tol, 0.0, polish)
    return cost and cost + spent, primal, gap


def _samples(n: int, size: int) -> list[int]:
    """How many rows the samples have: a few for each feature, and more if there are many rows."""
    few = SAMPLES * size
    if few > LARGEST * n:
        return []
    many = int(max(SHARE * n, min(4 * few, LARGEST * n)))
    return [few, many] if many > 2 * few else [few]


def _by_blas(problem: ERM, X: Matrix) -> bool:
    return problem.weights.size == 1 and X.size >= BLAS


def _moments(problem: ERM, X: Matrix) -> tuple[Matrix, Matrix]:
    """X' diag(s) X, its upper triangle, and y' diag(s) X; with a border for an intercept."""
    p, d = problem, X.shape[1]
    unit, size, Y = 1 / (p.n * p.loss.gamma), d + p.intercept, p.y.reshape(len(X), -1)
    H, c = np.empty((size, size)), np.empty((p.K, size))
    if not _by_blas(p, X):
        squares.moments(X, p.intercept, Y, p.weights, unit, H, c)
        return H, c
    H[:], c[:], step = 0.0, 0.0, min(BLAS // d, BLOCK)
    for first in range(0, len(X), step):  # what is read once is in the cache for the second product
        part, y = X[first : first + step], Y[first : first + step]
        H[:d, :d] += part.T @ part
        c[:, :d] += y.T @ part
        if p.intercept:
            H[:d, d] += np.ones(len(part)) @ part
    if p.intercept:
        H[d, d], c[:, d] = len(X), np.ones(len(Y)) @ Y
    unit *= p.weights[0]
    return unit * H, unit * c


def _ridge_of_columns(problem: ERM, X: Matrix, tol: float) -> tuple[Certificate, int, str] | None:
    """One factor for all columns of y, and steps with it: the first finds W, the others digits."""
    p, (n, d), gamma = problem, X.shape, problem.loss.gamma
    s = np.broadcast_to(p.weights, n)[:, None] / (p.n * gamma)
    total, mean = s.sum(), np.zeros(d)
    if p.intercept:
        mean = (s[:, 0] @ X) / total
    ridge = p.alpha * np.broadcast_to(p.g.b, (d, 1))
    centred = np.sqrt(s) * (X - mean if p.intercept else X)
    H = centred.T @ centred
    H.ravel()[:: d + 1] += ridge[:, 0]
    factor = Factor(H)
    if factor.weakest < WEAK:
        return None
    W, b = np.zeros((d, p.K)), np.zeros(p.K)
    for steps in range(1, 5):
        left = p.y - X @ W if steps > 1 else p.y
        if p.intercept:
            b = (s[:, 0] @ left) / total
        G = X.T @ (s * (left - b)) - ridge * W
        if steps > 2 and 0.5 * float(np.sum(G * G / ridge)) <= 1e-3 * tol * float(
            np.sum(s * left**2)
        ):
            break
        W += np.column_stack([factor.solve(np.ascontiguousarray(G[:, k])) for k in range(p.K)])
    z = X @ W + b
    x = (p.weights[:, None] / gamma) * (p.y - z)
    if p.intercept:
        x -= (p.n / total) * s * x.sum(axis=0) / p.n
    v = (X.T @ x) / (p.alpha * p.n)
    found = certify_given(p, Point(W, x, b if p.intercept else 0.0, z, v), best_b=True)
    note = f"newton: {n:,} samples for {d * p.K:,} numbers of W"
    return found, math.ceil(steps * 1.5 + 0.25 * d), note


def _softmax(
    problem: ERM, X: Matrix, tol: float, last: Solution | None = None
) -> tuple[Certificate, int, str] | None:
    """The usual steps, without a plan, and looks by their own gap alone."""
    p = problem
    w, b = (None, np.zeros(p.K)) if last is None else (last.w, np.zeros(p.K) + last.intercept)
    run = softmax.SoftmaxRun(p, w, b, Target(tol), np.random.default_rng(0))
    passes = run.advance(Budget(PASSES)).passes
    found = run.point()
    note = f"newton: {p.n_samples:,} samples for {p.d * p.K:,} numbers of W"
    return (found, passes, note) if isinstance(found, Certificate) else None


def _interior(problem: ERM, X: Matrix, tol: float) -> tuple[Certificate, int, str] | None:
    """Interior points for a loss with kinks, where the plan takes nothing else; one look."""
    run = InteriorRun(problem, Target(tol))
    if not run.at_once():
        return None
    passes = run.advance(Budget(0)).passes
    found = certify(problem, run.point())
    return found, passes, f"interior: {problem.n_samples:,} samples for {problem.d:,} features"


def _span(problem: ERM, X: Matrix, tol: float) -> tuple[Certificate, int, str] | None:
    """One of these ways on the inner products of the rows, and a look at what that is on X."""
    p, basis = problem, Basis(problem.samples)
    n, rank = basis.L.shape
    inner = p.altered(samples=Dense(basis.L), d=rank) if rank and tol >= TIGHT else None
    way = _newton if bends_evenly(p.loss) else _interior
    made = None if inner is None else way(inner, basis.L, 0.5 * tol)
    if made is None:
        return None
    found, passes, _ = made
    passes = math.ceil(n / 4 + passes * rank / p.d)
    at = Point(basis.w(found.w), found.x, found.b)
    return certify(p, at), passes, f"span: only {n:,} samples for {p.d:,} features"


def _parts(problem: ERM) -> tuple[Vector, Vector]:
    """The strengths of the norm of each feature's numbers, and of their square, without alpha."""
    g: Any = problem.g
    a, b = (g.a, g.ridge) if g.in_groups else (g.a, g.b)
    return np.full(problem.d, a, dtype=float), np.full(problem.d, b, dtype=float)


def _lasso(problem: ERM, X: Matrix, tol: float) -> tuple[Certificate, int, str] | None:
    p, (soft, ridge) = problem, _parts(problem)
    n, d = X.shape
    w, x = np.zeros((p.K, d + p.intercept)), np.empty((n, p.K))
    sweeps, primal, dual = descent.lasso(
        X, p.intercept, p.y.reshape(n, -1), p.weights, 1 / p.n, p.loss.gamma, p.alpha * soft,
        p.alpha * ridge, tol, SWEEPS, *_moments(p, X), w, x,
    )  # fmt: skip
    if not sweeps:
        return None
    own: Vector = np.ascontiguousarray(w[:, :d].T)
    b: Any = w[:, d].copy() if p.intercept else np.zeros(p.K)
    if p.K == 1:
        own, x, b = own[:, 0], x[:, 0], float(b[0])
    if dual > -math.inf and not (p.intercept and p.imbalance(x) > 1):
        found = stated(own, x, b, np.empty(0), primal, dual)
    else:
        found = certify(p, Point(own, None, b))
    passes = math.ceil(2 + 0.25 * d + sweeps * d / n)
    return found, passes, "working_set: the penalty makes weights zero, and few features"


class Looked(NamedTuple):
    """An answer of a path without its dual point: what is known from moments."""

    w: Vector
    gap: float
    epochs: int


def path_small(problem: ERM, alphas: Vector, tol: float) -> list[Looked]:
    """The answers for falling alphas from one Gram matrix, as far as that is good for.

    Nothing but the matrix is read for them. Their gaps are those of dual points that are not
    written out, which a pass over the rows for each would take, and have a bound on rounding in
    them.
    """
    p = problem
    if not is_small(p) or p.g.is_quadratic or p.intercept:
        return []
    X, (soft, ridge) = p.samples.view(views.whole), _parts(p)
    n, d = X.shape
    Y = p.y.reshape(n, -1)
    total = float(np.sum(np.broadcast_to(p.weights, n)[:, None] * Y**2)) / (p.n * p.loss.gamma)
    terms = n / (BLOCK if _by_blas(p, X) else 4) + min(n, BLOCK)  # of a sum of sums
    relative = EPS * (terms + 2 * d + 16)
    W, looks = np.empty((alphas.size, p.K, d)), np.empty((alphas.size, 3))
    count = descent.path(
        *_moments(p, X), total, relative, soft, ridge, alphas, tol, max(tol, ENOUGH), PATH_SWEEPS,
        W, looks,
    )  # fmt: skip
    return [
        Looked(np.ascontiguousarray(W[k].T) if p.K > 1 else W[k, 0], float(gap), 1)
        for k, gap in enumerate(looks[:count, 1])
    ]
