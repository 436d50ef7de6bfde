"""`solve`: APCG (Algorithm 5), SDCA and AFG for regularised ERM, with a certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _validation as validate
from . import certificate
from ._validation import Index
from .certificate import Certificate
from .erm import ERM
from .intercept import unpenalised
from .loop import Options, run
from .methods import newton_steps as newton
from .methods.afg import AFG
from .methods.apcg import APCG
from .methods.auto import Auto
from .methods.centred import Centre, Centred
from .methods.choice import Choice
from .methods.newton_steps import Newton
from .methods.sdca import SDCA
from .monitor import Method, Monitor
from .problem import settle_zero_blocks
from .result import Solution, Status
from .sequences import Sequence

METHODS = ("auto", "apcg", "sdca", "afg", "newton")
#: Those that start from a w, and look at all the data at each step.
FULL = ("afg", "newton")

#: Who asks for a gap below this wants all the digits of w.
_TIGHT = 1e-10


def solve(
    problem: ERM,
    method: str = "auto",
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
) -> Solution:
    """Minimize P(w) and certify it: stop when P(w) - D(x) <= tol |P(w)|.

    Parameters
    ----------
    problem : an `ERM`.
    method : "auto", APCG with a mu that follows the observed rate, from SDCA down to the mu of the
        theorem; "apcg", Algorithm 5 of the paper (its mu = 0 form for losses that are not smooth);
        "sdca", exact coordinate ascent of the dual; "afg", accelerated full gradient with line
        search on the primal; "newton", Newton's method with a d x d Cholesky factor on the primal
        ("l2", smooth losses), which "auto" changes to where that is cheaper.
    tol : the relative duality gap to stop at.
    max_epochs : passes over the data. AFG counts a pass for each trial of its line search, Newton's
        method counts its matrix and factor as passes; both finish what they are in. An L1 problem
        gets one more pass at the end, for exact zeros.
    x0 : an earlier `Solution` to go on from; or a dual feasible x for "apcg", "sdca" and "auto";
        or for "afg", and for penalties that are solved in the primal ("l1"), a w. None is zero.
    random_state : a seed, a numpy Generator or None. The same seed gives the same result.
    check_every : passes between checks of the gap; None chooses, for under 20 % of the work.
        ("auto" looks at it in between too, to steer by.)
    sampling : "permutation" (each coordinate once a sweep) or "uniform" (as in the theorems); in a
        sweep of "auto" some coordinates may come more often than others.
    callback : called with each check (epoch, seconds, primal, dual, gap, x, w); a true value stops.
    verbose : 1 shows a progress bar on a terminal, 2 leaves it there.
    time_limit : in seconds.
    mu : for "apcg", the convexity parameter to use in the place of the problem's own.

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
    if not isinstance(problem, ERM):
        raise TypeError(
            f"problem must be an apcg.ERM, got {type(problem).__name__}; make one: "
            "solve(ERM(X, y, loss, penalty, alpha))."
        )
    validate.choice(method, "method", METHODS)
    options = Options(
        tol, max_epochs, check_every, sampling, random_state, callback, verbose, time_limit
    )
    if mu is not None and method != "apcg":
        raise ValueError('mu is a parameter of method "apcg" only.')
    if isinstance(x0, Solution):
        validate.vector(x0.w, problem.d, "w of x0", each="column of X")
        validate.vector(x0.x, problem.n_samples, "x of x0", each="row of X")
    stepper, sampled, mu = _start(problem, method, x0, mu)
    choice = Choice(problem, options.tol, options.max_epochs) if method == "auto" else None
    known = None
    if isinstance(x0, Solution) and choice and problem.dual_form:
        known = certificate.of_pair(problem, x0.w, x0.x, x0.intercept)
    monitor = Monitor(problem, stepper, mu, sampled, options.tol, choice, known)
    best, status, trace, epochs = run(monitor, options, options.tol)
    final = monitor.of_best(best, status.converged)
    if method != "sdca" and not problem.dual_form and epochs:
        final = _with_zeros(problem, final, status, options)
    elif choice and choice.affordable and options.tol < _TIGHT and epochs:
        final = _polished(problem, final, status, options)
    if known is not None and known.gap < final.gap:  # it went on from something better
        final = known
    ended = ("max_epochs", "precision", "time_limit")
    if status.code in ended and final.relative <= options.tol:  # by what came after the loop
        status = Status(
            "converged",
            f"converged after {epochs} epochs: {final.relative:.2e} <= {options.tol:.2e}.",
        )
    return Solution(
        final.w,
        final.x,
        final.primal,
        final.dual,
        status,
        epochs,
        float(trace["seconds"][-1]) if len(trace) else 0.0,
        trace,
        method,
        best.side,
        float(trace["mu"][-1]) if len(trace) else monitor.mu,
        final.intercept,
    )


def _start(problem: ERM, method: str, x0: Any, mu: float | None) -> tuple[Method, Index, float]:
    """The method at its start, the coordinates that it samples, and its mu."""
    first, b = 1.0, None
    if isinstance(x0, Solution):
        b = x0.intercept
        if method == x0.method == "auto" and problem.dual_form:  # go on as it ended
            method = "newton" if x0.side == "primal" and newton.applies(problem) else "auto"
            # halfway, in logarithms, from no momentum to what it ended with: that was for
            # the last digits, and for other visits
            first = math.sqrt(x0.mu)
        x0 = x0.x if problem.dual_form and method not in FULL else x0.w
    if method in FULL:
        return _full(problem, method, x0, b), np.zeros(1, dtype=np.intp), first
    return _coordinate(problem, method, x0, b, mu, first)


def _coordinate(
    problem: ERM, method: str, x0: Any, b: float | None, mu: float | None, first: float
) -> tuple[Method, Index, float]:
    """A method on the coordinates of the form; "auto" has the mu-hat `first` at first."""
    length = problem.n_samples if problem.dual_form else problem.d
    start = np.zeros(length) if problem.dual_form else problem.g.clip(np.zeros(length))
    if x0 is not None:
        start = validate.vector(x0, length, "x0").copy()
    centre = None
    if problem.intercept and problem.dual_form:
        centre = Centre(problem, _first_intercept(problem, problem.omega(start), b))
    elif problem.intercept:
        start = np.append(start, _first_intercept(problem, start, b))
    form, left_out = centre.form if centre else problem.form, _left_out(problem)
    if not math.isfinite(form.psi_value(start)) or np.any(start[left_out] != 0):
        where = "dual feasible" if problem.dual_form else "within the bounds of the penalty"
        raise ValueError(
            f"x0 must be {where}: phi* or the penalty is infinite at it. Dual variables of "
            f"loss {problem.loss.name!r} are in {problem.loss.domain}, times their weights."
        )
    sampled, start = settle_zero_blocks(form, start)
    start[left_out] = 0.0
    sampled = np.setdiff1d(sampled, left_out) if left_out.size else sampled
    n = max(sampled.size, 1)
    if mu is None:
        mu = centre.mu if centre else (problem.mu if problem.dual_form else form.mu)
    made: APCG | Auto | SDCA
    if method == "sdca":
        made, mu = SDCA(form, start), 1.0
    elif method == "auto":
        made, mu = Auto(form, start, sampled, mu, first), first
    else:
        sequence = Sequence.choose(n, mu, None)
        made, mu = APCG(form, start, sequence), sequence.mu
    return (Centred(made, centre) if centre else made), sampled, mu


def _first_intercept(problem: ERM, w: Any, b: float | None) -> float:
    """The intercept to start from: one that is known, or the best for w."""
    return problem.best_intercept(problem.predictions(w)) if b is None else b


def _with_zeros(problem: ERM, found: Certificate, status: Status, options: Options) -> Certificate:
    """One pass of coordinate descent from w, if that certifies as well.

    The w of an accelerated method is an average, with tiny numbers where L1 wants zeros; the prox
    of a plain step puts them to zero. P does not rise, but the gap may.
    """
    if status.code in ("interrupted", "time_limit"):
        return found
    try:
        start = np.append(found.w, found.intercept) if problem.intercept else found.w
        descent = SDCA(problem.form, start)
        descent.epoch(options.rng.permutation(np.flatnonzero(problem.form.L > 0)))
        new = certificate.of_primal(problem, descent.x[: problem.d])
    except KeyboardInterrupt:
        return found
    return new if new.relative <= max(found.relative, options.tol) else found


def _polished(problem: ERM, found: Certificate, status: Status, options: Options) -> Certificate:
    """One step of Newton's method from w, if that certifies as well.

    Where the gap is rounding, P tells w to half its digits only; this step gives the others.
    """
    if status.code not in ("converged", "precision"):
        return found
    b = [found.intercept] if problem.intercept else []
    method = Newton(problem, np.append(found.w, b))
    method.epoch(np.zeros(1, dtype=np.intp))
    w = method.x[: problem.d]
    new = certificate.of_primal(problem, w, b=found.intercept)
    return new if new.gap <= max(found.gap, options.tol * abs(found.primal)) else found


def _left_out(problem: ERM) -> Any:
    """Coordinates of the dual that are rows of weight zero."""
    if not problem.dual_form or problem.weights.size == 1:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(problem.weights == 0)


def _full(problem: ERM, method: str, x0: Any, b: float | None) -> AFG | Newton:
    """A method that looks at all the data at each step."""
    if problem.loss.gamma == 0:
        raise ValueError(
            f"method {method!r} needs a smooth loss, and {problem.loss.name!r} is not; take "
            '"apcg" or "sdca", or the loss "smoothed_hinge".'
        )
    if method == "newton" and not newton.applies(problem):
        raise ValueError(
            f'method "newton" needs penalty "l2", got {problem.penalty}; take "auto" or "apcg".'
        )
    start = problem.g.clip(np.zeros(problem.d))
    if x0 is not None:
        start = validate.vector(x0, problem.d, "x0", each="column of X")
        if not problem.g.contains(start):
            raise ValueError("x0 must be within the bounds of the penalty.")
    if problem.intercept:
        start = np.append(start, _first_intercept(problem, start, b))
    if method == "newton":
        return Newton(problem, start)
    return AFG(unpenalised(problem) if problem.intercept else problem, start)
