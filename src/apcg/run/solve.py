"""`solve`: regularised ERM by any of the methods, with a certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base import validation as validate
from .._base.validation import Vector, answers_other_names
from ..certify import scales
from ..certify.certificate import certify, certify_again, certify_start
from ..certify.judge import Judge
from ..certify.points import Certificate, Point, Report, Start
from ..certify.result import Solution, Status, answer
from ..data import threads
from ..methods import registry
from ..methods.base import Method, Run, Target, check_dual_start
from ..problems.erm import ERM
from .loop import Options, Outcome, run
from .small import solve_small

#: The largest |b| that a start may have, in units of the largest label or prediction above 1.
LARGEST_B = 1e100


@answers_other_names
def solve(
    problem: ERM,
    method: str | Method = "auto",
    tol: float = 1e-6,
    max_epochs: int = 1000,
    x0: Any = None,
    random_state: Any = None,
    check_every: int | None = None,
    sampling: str = "permutation",
    callback: Any = None,
    verbose: int = 0,
    time_limit: float | None = None,
    *,
    mu: float | None = None,
    n_jobs: int | None = None,
) -> Solution:
    """Minimize P(w) and certify it: stop when P(w) - D(x) <= tol |P(w)|.

    Parameters
    ----------
    problem : ERM
        An `ERM`.
    method : str or Method, default="auto"
        "auto", a plan that chooses among the others by predicted time; "adaptive", APCG with a mu
        that follows the observed rate, from SDCA down to the mu of the theorem; "apcg", Algorithm 5
        of the paper (its mu = 0 form for losses that are not smooth); "sdca", exact coordinate
        ascent of the dual; "afg", accelerated full gradient with line search on the primal;
        "newton", Newton's method with a d x d Cholesky factor on the primal ("l2", smooth losses);
        "working_set" and "group_set", models of P on sets of features or of groups (L1, elastic
        net, groups; smooth losses); "interior_l1", interior points for L1, elastic net and losses
        with kinks; "one_by_one", a y of columns, column by column (L1). For comparison, for L2 and
        elastic net with a smooth loss: "sag", "svrg" and "accelerated_sdca", the methods of the
        literature that the paper compares with. Or a method of your own: an object as
        `apcg.methods.base` describes it.
    tol : float, default=1e-6
        The relative duality gap to stop at.
    max_epochs : int, default=1000
        Passes over the data. AFG counts a pass for each trial of its line search, Newton's method
        and interior points their matrices and factors (with thousands of samples and of features
        that may be more than 1,000 passes); all finish what they are in. SVRG counts a pass for
        each snapshot, accelerated SDCA half a pass for each gap of an inner problem. An L1 problem
        may get one more pass at the end, for exact zeros.
    x0 : Solution, Start or array, default=None
        An earlier `Solution` to go on from, or a `points.Start`; or a dual feasible x for "apcg",
        "sdca" and "auto"; or for "afg", "newton", "sag", "svrg" and penalties that are solved in
        the primal ("l1"), a w. None is zero. Interior points do not use it.
    random_state : int, Generator or None, default=None
        A seed, a numpy Generator or None. The same seed gives the same result.
    check_every : int, default=None
        Passes between checks of the gap; None chooses, for under 20 % of the work. ("auto" looks at
        it in between too, to steer by.)
    sampling : {"permutation", "uniform"}, default="permutation"
        "permutation" (each coordinate once a sweep) or "uniform" (as in the theorems); in a sweep
        of "auto" some coordinates may come more often than others.
    callback : callable, default=None
        Called with each check (epoch, seconds, primal, dual, gap, x, w); a true value stops.
    verbose : int, default=0
        1 says what "auto" chose and why, and shows a progress bar on a terminal; 2 leaves the bar
        there.
    time_limit : float, default=None
        In seconds.
    mu : float, default=None
        For "apcg", the convexity parameter to use in the place of the problem's own.
    n_jobs : int, default=None
        Threads for products with a large X and for its Gram matrices, BLAS included; -1 is one for
        each core. A sweep over the samples has one thread. The same number gives the same bits.
        None is one thread of ours, and as many of BLAS as it is set to.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, solve
    >>> X = np.array([[1.0, 0.2], [0.8, -0.5], [-1.0, 0.3], [-0.6, -0.4]])
    >>> r = solve(ERM(X, [1, 1, -1, -1], "logistic", alpha=0.1), random_state=0)
    >>> r.converged, bool(r.gap <= 1e-6 * r.primal)
    (True, True)
    """
    given = prepared(problem, method, tol, max_epochs, random_state, check_every, sampling,
                     callback, verbose, time_limit, mu=mu)  # fmt: skip
    with threads.using(n_jobs):
        small = solve_small(problem, given[2]) if x0 is None and given[1] is registry.AUTO else None
        return solve_on(*given, x0)[0] if small is None else small


def prepared(
    problem: ERM,
    method: str | Method = "auto",
    tol: float = 1e-6,
    max_epochs: int = 1000,
    random_state: Any = None,
    check_every: int | None = None,
    sampling: str = "permutation",
    callback: Any = None,
    verbose: int = 0,
    time_limit: float | None = None,
    *,
    mu: float | None = None,
) -> tuple[ERM, Method, Options]:
    """What `solve` was given, checked."""
    if not isinstance(problem, ERM):
        raise TypeError(
            f"problem must be an apcg.ERM, got {type(problem).__name__}; make one: "
            "solve(ERM(X, y, loss, penalty, alpha))."
        )
    chosen = registry.find(method, problem)
    options = Options(
        tol, max_epochs, check_every, sampling, random_state, callback, verbose, time_limit
    )
    if mu is not None:
        chosen = registry.with_mu(chosen, mu)
    registry.check_fit(chosen, problem)
    return problem, chosen, options


def solve_on(
    problem: ERM, chosen: Method, options: Options, x0: Any = None
) -> tuple[Solution, Run]:
    """The answer, and the run that found it: for the next alpha of a path to go on with."""
    at = _start(problem, chosen, x0)
    target = Target(options.tol, options.max_epochs, options.sampling)
    with np.errstate(all="ignore"):
        stepping = registry.adopted(chosen, chosen.start(problem, at, target, options.rng))
    pair = isinstance(x0, Solution) and at.w is not None and at.x is not None
    # w of one look, x of another
    known = Point(at.w, at.x, 0.0 if at.b is None else at.b) if pair else None
    judge = Judge(problem, stepping, options.tol, chosen.name, known)
    # A cold start is no answer: it is looked at only if the user watches.
    watched = options.check_every is not None or options.callback is not None
    alone = at.x is None and stepping.report.knows_its_gap
    first = watched or not (at.is_cold or alone)
    outcome = run(stepping, judge, options, options.tol, look_first=first)
    with np.errstate(all="ignore"):
        try:
            final = _final(problem, stepping, outcome, options.tol)
            final = _not_worse(problem, at, final, options.tol)
        except KeyboardInterrupt:  # once: what was found is certified all the same
            final = _certified(problem, outcome, options.tol)
            outcome.status = Status.of("interrupted", outcome.epochs, final.relative, options.tol)
    if not math.isfinite(final.primal):
        start = "" if at.is_cold else "start from another x0, or "
        raise ValueError(
            f"P(w) = {final.primal:g} wherever it was looked at: it overflows, or the loss or the "
            f"penalty is infinite there. The largest |y| is {abs(problem.y).max():g}; {start}scale "
            "y and X."
        )
    return _solution(problem, chosen, stepping, outcome, final, options.tol), stepping


def _solution(
    problem: ERM, method: Method, stepping: Run, outcome: Outcome, final: Certificate, tol: float
) -> Solution:
    """The answer, with a status that fits it."""
    trace = outcome.trace
    status = _status(problem, outcome, final, tol)
    if status.code in ("max_epochs", "stuck", "time_limit") and method.name != "auto":
        status = status.with_advice('Or take method "auto", which chooses by predicted time.')
    mu = float(trace.last("mu")) if len(trace) else stepping.report.mu
    said = Report(outcome.best.side, mu=mu)
    return answer(final, status, said, method.name, outcome.epochs, outcome.seconds, trace)


def _status(problem: ERM, outcome: Outcome, final: Certificate, tol: float) -> Status:
    """Why it stopped. What came after the loop may have reached what the loop did not."""
    code = outcome.status.code
    if code == "converged":
        return outcome.status
    ended = ("max_epochs", "precision", "stuck", "time_limit", "non_finite")
    if code in ended and final.relative <= tol:
        return Status.of("converged", outcome.epochs, final.relative, tol)
    if code in ("max_epochs", "stuck") and scales.is_rounding(problem, final):
        code = "precision"
    status = Status.of(code, outcome.epochs, final.relative, tol)
    if code in ("max_epochs", "stuck", "precision"):
        status = status.with_advice(scales.sentence(problem))
    return status


def _start(problem: ERM, method: Method, x0: Any) -> Start:
    """Where to start. A plain array is x if the method works on the dual, else w."""
    if x0 is None:
        return Start()
    side = getattr(method, "side", "dual" if problem.dual_form else "primal")
    if isinstance(x0, Solution):
        same = x0.method == method.name  # then it goes on as it ended
        known = Start(x0.x, x0.w, x0.intercept, x0.mu if same else None, x0.side if same else None)
        return _checked(problem, known, feasible=side == "dual")  # of another loss w may still do
    if isinstance(x0, Start):
        return _checked(problem, x0)
    return _checked(problem, Start(x=x0) if side == "dual" else Start(w=x0), "x0")


def _largest_b(problem: ERM, w: Vector | None) -> float:
    """The largest |b| of a start: far beyond all predictions and labels there are."""
    labels = 0.0 if problem.loss.margin else float(np.abs(problem.y).max())
    predictions = 0.0 if w is None else float(np.abs(problem.samples.times(w)).max())
    return min(LARGEST_B * max(1.0, labels, predictions), 1e300)


def _checked(problem: ERM, at: Start, name: str = "", feasible: bool = True) -> Start:
    """The start with its arrays as vectors, or an error that says what it must be."""
    w, x, b, mu = at.w, at.x, at.b, at.mu
    if w is not None:
        w = problem.check_w(w, name or "w of x0")
    if x is not None:
        x = problem.check_x(x, name or "x of x0")
        if feasible:
            check_dual_start(problem, x)
    if b is not None:
        hint = "with another no digit of X w + b is right"
        b = problem.check_b(b, "b of x0", low=-1e300, high=1e300, hint=hint)
        if np.any(np.abs(b) > LARGEST_B):
            most = _largest_b(problem, w)
            b = problem.check_b(b, "b of x0", low=-most, high=most, hint=hint)
    if mu is not None and not math.isnan(mu):  # NaN is that of a method without one
        mu = validate.number(mu, "mu of x0", low=0.0)
    if at.side is not None:
        validate.choice(at.side, "side of x0", ("dual", "primal"))
    return Start(x, w, b, mu, at.side, at.run)


def _certified(problem: ERM, outcome: Outcome, tol: float) -> Certificate:
    """The exact certificate of the best look."""
    found: Certificate = outcome.best.certificate
    return found if found.exact else certify_again(problem, outcome.best.source, found, tol)


def _final(problem: ERM, stepping: Run, outcome: Outcome, tol: float) -> Certificate:
    """The certificate to give back, computed from w and x alone.

    The method may have something to add: it is taken if it certifies as well.
    """
    found = _certified(problem, outcome, tol)
    code = outcome.status.code
    if not outcome.epochs or code in ("interrupted", "time_limit"):
        return found
    point = stepping.finish(found, code in ("converged", "precision"))
    if point is None:
        return found
    new = certify(problem, point.bare())
    if point.x is None and new.dual < found.dual:  # the x there was is better for it
        new = certify(problem, Point(new.w, found.x, new.b))
    return new if new.gap <= max(found.gap, tol * abs(found.primal)) else found


def _not_worse(problem: ERM, at: Start, final: Certificate, tol: float) -> Certificate:
    """`final`, or a point that was known before the run, if that is better.

    These are where it started, if the tolerance is not reached (with few passes left, the way to a
    better point may lead through worse ones), and w = 0 with its best b and x = 0.
    """
    if final.relative > tol and at.w is not None and at.x is not None:
        known = certify_start(problem, at)
        final = known if known.gap < final.gap else final
    if not math.isfinite(final.primal) or _beats_zero(problem, final, tol):
        return final
    w, x = np.zeros_like(final.w), np.zeros_like(final.x)
    b = problem.best_shift(x) if problem.intercept else 0.0
    lower = problem.primal_from(w, x + b if problem.intercept else x) < final.primal
    if not lower and final.dual >= problem.dual_from(x, w):
        return final
    duals = (final.x, x, None) if lower else (final.x, x)  # None: that of w = 0
    w, b = (w, b) if lower else (final.w, final.b)
    found = [certify(problem, Point(w, dual, b)) for dual in duals]
    return max(found, key=lambda each: each.dual)


def _beats_zero(problem: ERM, found: Certificate, tol: float) -> bool:
    """Whether the certificate says that P(w) <= P(0), with the best b for both.

    P is sigma-strongly convex in w: w* is within r of w, with r^2 = 2 gap/sigma, and P(0) is at
    least P* + (sigma/2)|w*|^2. Where |w| >= 2 r that is at least P* + gap, and so P(w). With
    sigma = 0 a gap within the tolerance has to do.
    """
    sigma, w = problem.strong_convexity, found.w.reshape(-1)
    if sigma == 0:
        return found.relative <= tol
    return sigma * float(np.dot(w, w)) >= 8 * found.gap
