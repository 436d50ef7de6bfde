"""Small dense problems in one kernel call: what a fit of 100 x 10 would spend on choosing a method.

The same certificates, the same answer: `solve` takes this way for method "auto" with nothing to
watch or to go on from, if the problem is small, dense, of one output, with a smooth loss and L2
(Newton's method), or with the squared loss and L1 or elastic net (coordinate descent on the Gram
matrix). Where a kernel says that it cannot, `solve` takes its usual way.
"""

from __future__ import annotations

import math
import time

import numpy as np

from .._base.validation import Matrix, Vector
from .._kernels.newton import small as kernel
from ..certify.certificate import certify_at_slopes, certify_given
from ..certify.points import Certificate, Point, Report
from ..certify.result import Solution, Status, answer
from ..data import views
from ..penalties.interval import Interval
from ..problems.erm import ERM
from .loop import Options

#: Numbers of X at most, features at most, and rows for each feature at least: the plan takes the
#: same methods there, and nothing else is faster by more than its own overhead.
NUMBERS, FEATURES, ROWS = 100_000, 60, 3
#: A pivot below this, for a unit diagonal, leaves w too few digits (that of `NewtonTuning.weak`).
WEAK = 1e-7
#: Below this tolerance all digits of w are wanted: one more step (that of `PlanTuning.tight`).
TIGHT = 1e-10
#: Steps of Newton's method, and sweeps of coordinate descent, before the usual way is taken.
STEPS, SWEEPS = 40, 500
#: Coordinates that move by this part of tol leave a gap of less than tol; smaller parts if not.
SETTLED = 0.03, 1e-3


def is_small(problem: ERM, options: Options) -> bool:
    """Whether nobody watches, and the problem is of a size and kind that is solved here."""
    p, o = problem, options
    n, d = p.samples.shape
    if n * d > NUMBERS or d > FEATURES or n < ROWS * d or p.K > 1:
        return False
    unwatched = o.callback is None and o.check_every is None and not o.verbose
    if not unwatched or o.time_limit is not None or o.max_epochs < 100:
        return False
    return not p.samples.sparse and p.samples.in_memory and isinstance(p.g, Interval)


def solve_small(problem: ERM, options: Options) -> Solution | None:
    """The answer; None if the usual way has to be taken."""
    begun = time.perf_counter()
    if not is_small(problem, options):
        return None
    X, g = problem.samples.view(views.whole), problem.interval
    if X.dtype != np.float64 or not g.is_unbounded:
        return None
    with np.errstate(all="ignore"):
        if g.is_quadratic:
            made = _newton(problem, X, options.tol)
        else:
            made = _lasso(problem, X, options.tol)
    if made is None:
        return None
    found, passes, note = made
    w = found.w
    beats_zero = problem.strong_convexity * float(np.dot(w, w)) >= 8 * found.gap
    if not (found.relative <= options.tol and (beats_zero or not g.is_quadratic)):
        return None
    status = Status.of("converged", passes, found.relative, options.tol)
    name = note.split(":")[0]
    said = Report("primal", at_work=name, notes=[note])
    return answer(found, status, said, "auto", passes, time.perf_counter() - begun)


def _newton(problem: ERM, X: Matrix, tol: float) -> tuple[Certificate, int, str] | None:
    p, loss = problem, problem.loss
    n, d = X.shape
    name: str = loss.kernel if loss.compiled else ""
    if name not in ("logistic", "interval") or loss.gamma == 0 or not p.dual_form:
        return None
    ridge = np.full(d, p.alpha) * p.g.b
    w, x = np.zeros(d + p.intercept), np.empty(n)
    steps, primal, gap = kernel.newton(
        name, np.array(loss.theta), X, p.intercept, p.y, loss.margin, p.weights, 1 / p.n,
        ridge, tol, WEAK, int(tol < TIGHT), STEPS, w, x,
    )  # fmt: skip
    if not steps:
        return None
    b = float(w[d]) if p.intercept else 0.0
    found = certify_at_slopes(p, w[:d].copy(), b, x, primal, gap)
    passes = math.ceil(steps * (1.5 + 0.25 * d))
    return found, passes, f"newton: {n:,} samples for {d:,} features"


def _lasso(problem: ERM, X: Matrix, tol: float) -> tuple[Certificate, int, str] | None:
    p, loss, g = problem, problem.loss, problem.interval
    n, d = X.shape
    if loss.name != "squared" or not loss.compiled or not g.a.any() or p.box is not None:
        return None
    soft, ridge = np.full(d, p.alpha) * g.a, np.full(d, p.alpha) * g.b
    w, sweeps = np.zeros(d + p.intercept), 0
    for settled in SETTLED:
        more = kernel.lasso(
            X, p.intercept, p.y, p.weights, 1 / p.n, loss.gamma, soft, ridge,
            max(settled * tol, 1e-15), SWEEPS, w,
        )  # fmt: skip
        if not more:
            return None
        sweeps += more
        b, own = float(w[d]) if p.intercept else 0.0, w[:d].copy()
        found = certify_given(p, _with_dual(p, X, own, b))
        if found.relative <= tol:
            passes = math.ceil(2 + 0.25 * d + sweeps * d / n)
            return found, passes, "working_set: the penalty makes weights zero, and few features"
    return None


def _with_dual(problem: ERM, X: Matrix, w: Vector, b: float) -> Point:
    """w with x = s (y - z), in balance with an intercept, and scaled to be feasible."""
    p, s = problem, problem.weights
    z = X @ w + b
    x = (s / p.loss.gamma) * (p.y - z)
    if p.intercept:
        x -= s * (x.sum() / (s.sum() if s.size > 1 else x.size * s[0]))
    v = (x @ X) / (p.alpha * p.n)
    slack = 1e-15
    while (over := p.g.excess(v)) > 1 and slack < 1:
        x /= over * (1 + slack)
        v, slack = (x @ X) / (p.alpha * p.n), 100 * slack
    return Point(w, x, b, z, v)
