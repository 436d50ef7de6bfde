"""`solve`: APCG (Algorithm 5), SDCA and AFG for regularised ERM, with a certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _validation as validate
from . import certificate
from .certificate import Certificate
from .erm import ERM
from .intercept import unpenalised
from .loop import Check, Options, run
from .methods.afg import AFG
from .methods.apcg import APCG
from .methods.auto import Auto
from .methods.centred import Centre, Centred
from .methods.sdca import SDCA
from .problem import settle_zero_blocks
from .result import Solution, Status
from .sequences import Sequence

METHODS = ("auto", "apcg", "sdca", "afg")

#: A gap below this many roundings of the sums it is a difference of is nothing but rounding.
_FLOOR = 16 * np.finfo(float).eps
#: Below this relative gap, a gap that no longer falls is taken for rounding.
_STALL = 1e-9


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
        search on the primal.
    tol : the relative duality gap to stop at.
    max_epochs : passes over the data. AFG counts a pass for each trial of its line search, and
        finishes the one it is in. An L1 problem gets one more pass at the end, for exact zeros.
    x0 : an earlier `Solution` to go on from; or a dual feasible x for "apcg", "sdca" and "auto";
        or for "afg", and for penalties that are solved in the primal ("l1"), a w. None is zero.
    random_state : a seed, a numpy Generator or None. The same seed gives the same result.
    check_every : passes between checks of the gap; None chooses, for under 20 % of the work.
    sampling : "permutation" (each coordinate once a pass) or "uniform" (as in the theorems).
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
    b0 = x0.intercept if isinstance(x0, Solution) else None
    if isinstance(x0, Solution):
        x0 = x0.x if problem.dual_form and method != "afg" else x0.w
    monitor = _afg(problem, x0, b0) if method == "afg" else _coordinate(problem, method, x0, b0, mu)
    monitor.tol = options.tol
    best, status, trace, epochs = run(
        monitor.method,
        monitor.examine,
        monitor.sampled,
        options,
        target=options.tol,
        work=0 if method == "afg" else problem.samples.nnz,
        check_every=options.check_every or monitor.check_every,
    )
    final = monitor.of_best(best, status.converged)
    if method != "sdca" and not problem.dual_form and epochs:
        final = _with_zeros(problem, final, status, options)
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
        monitor.side,
        float(trace["mu"][-1]) if len(trace) else monitor.mu,
        final.intercept,
    )


def _coordinate(problem: ERM, method: str, x0: Any, b0: float | None, mu: float | None) -> _Monitor:
    start = None if x0 is None else validate.vector(x0, _length(problem), "x0").copy()
    centre = None
    if problem.intercept:
        start, centre = _with_intercept(problem, start, b0)
    form, left_out = centre.form if centre else problem.form, _left_out(problem)
    if start is None:
        start = np.zeros(form.N) if problem.dual_form else problem.g.clip(np.zeros(form.N))
    elif not math.isfinite(form.psi_value(start)) or np.any(start[left_out] != 0):
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
    made: Any
    if method == "sdca":
        made, mu = SDCA(form, start), 1.0
    elif method == "auto":
        made, mu = Auto(form, start, n, mu), 1.0
    else:
        sequence = Sequence.choose(n, mu, None)
        made, mu = APCG(form, start, sequence), sequence.mu
    return _Monitor(problem, Centred(made, centre) if centre else made, sampled, mu)


def _length(problem: ERM) -> int:
    return problem.n_samples if problem.dual_form else problem.d


def _with_intercept(
    problem: ERM, start: Any, b: float | None, *, primal: bool = False
) -> tuple[Any, Centre | None]:
    """The start of a primal method, with b at its end; or of a dual one, and its centre."""
    primal = primal or not problem.dual_form
    w = problem.g.clip(np.zeros(problem.d))
    if start is not None:
        w = start if primal else problem.omega(start)
    b = problem.best_intercept(problem.predictions(w)) if b is None else b
    return (np.append(w, b), None) if primal else (start, Centre(problem, b))


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


def _left_out(problem: ERM) -> Any:
    """Coordinates of the dual that are rows of weight zero."""
    if not problem.dual_form or problem.weights.size == 1:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(problem.weights == 0)


def _afg(problem: ERM, x0: Any, b0: float | None) -> _Monitor:
    if problem.loss.gamma == 0:
        raise ValueError(
            f'method "afg" needs a smooth loss, and {problem.loss.name!r} is not; take "apcg" or '
            '"sdca", or the loss "smoothed_hinge".'
        )
    start = problem.g.clip(np.zeros(problem.d))
    if x0 is not None:
        start = validate.vector(x0, problem.d, "x0", each="column of X")
        if not problem.g.contains(start):
            raise ValueError("x0 must be within the bounds of the penalty.")
    if problem.intercept:
        start, _ = _with_intercept(problem, start, b0, primal=True)
    method = AFG(unpenalised(problem) if problem.intercept else problem, start)
    return _Monitor(problem, method, np.zeros(1, dtype=np.intp), math.nan)


class _Monitor:
    """A method and what is known of its answers: looks at it, and knows when to give up."""

    def __init__(self, problem: ERM, method: Any, sampled: Any, mu: float) -> None:
        self.problem, self.method, self.sampled, self.mu = problem, method, sampled, mu
        self.on_primal = isinstance(method, AFG) or not problem.dual_form
        self.side = "primal" if self.on_primal else "dual"
        self.tol = 0.0
        self._best, self._best_at, self._looks, self._refreshed = math.inf, 0, 0, False
        self._last, self._rises = math.inf, 0

    def examine(self) -> Check:
        """The certificate of the present answer, from p and q; if it would do, from x alone."""
        found = self._certificate(trust=True)
        trusted = found
        if found.gap <= self.tol * abs(found.primal) or found.gap <= 0:
            found = self._certificate(trust=False)
            if found.gap > self.tol * abs(found.primal):
                self._refresh()  # p and q have drifted
        method = self.method
        if isinstance(method, Centred):
            method.follow(trusted.primal)
            method = method.method
        columns = {
            "primal": found.primal,
            "dual": found.dual,
            "gap": found.gap,
            "mu": method.mu if isinstance(method, Auto) else self.mu,
            "restarts": method.restarts if isinstance(method, Auto) else 0,
        }
        return Check(
            found.x,
            found.relative,
            found.gap if math.isfinite(found.gap) else math.inf,
            columns,
            w=found.w,
            intercept=found.intercept,
            exhausted=self._exhausted(found),
        )

    def of_best(self, best: Check, exact: bool) -> Certificate:
        """The certificate to give back: from x (or w) alone, whatever ended the loop."""
        assert best.w is not None
        if exact:
            return Certificate(
                best.w, best.x, best.columns["primal"], best.columns["dual"], best.intercept
            )
        if self.on_primal:
            return certificate.of_primal(self.problem, best.w, b=best.intercept)
        if self.problem.intercept:
            return certificate.with_intercept(
                self.problem, best.w, best.x, best.intercept, best=True
            )
        return certificate.of_dual(self.problem, best.x)

    def _refresh(self) -> None:
        if not isinstance(self.method, AFG):
            self.method.refresh()

    def _certificate(self, *, trust: bool) -> Certificate:
        p = self.problem
        if isinstance(self.method, AFG):
            point = self.method.point
            return self._of_primal(point.w, point.z if trust else None)
        if isinstance(self.method, Centred):
            x = self.method.centre.form.nearest(self.method.x)
            w = p.g.conjugate_gradient(self.method.rows(1 / (p.alpha * p.n)))
            return certificate.with_intercept(p, w, x, self.method.intercept, best=not trust)
        x = p.form.nearest(self.method.x)
        if not self.on_primal:
            v = self.method.rows(1 / (p.alpha * p.n)) if trust else None
            return certificate.of_dual(p, x, v)
        rows = self.method.rows()
        z = rows if p.loss.margin else rows + p.y
        return self._of_primal(x, z if trust else None)

    def _of_primal(self, w: Any, z: Any) -> Certificate:
        if not self.problem.intercept:
            return certificate.of_primal(self.problem, w, z)
        w, b = w[:-1], float(w[-1])  # and z is X w + b
        return certificate.of_primal(self.problem, w, None if z is None else z - b, b)

    def _exhausted(self, found: Certificate) -> bool:
        """Whether the gap is rounding error: tiny, or small and not falling any more."""
        self._looks += 1
        self._rises += found.gap > self._last
        self._last = found.gap
        if found.gap < 0.9 * self._best:
            self._best, self._best_at, self._rises = found.gap, self._looks, 0
        scale = abs(found.primal) + abs(found.dual)
        since = self._looks - self._best_at
        stuck = since > max(20, self._looks // 2)
        # rounding goes up as often as down; what is only slow goes down
        stalled = stuck and self._rises > since // 4
        if stuck and not self._refreshed:  # is it the drift of p and q?
            self._refresh()
            self._refreshed, self._best_at, self._rises = True, self._looks, 0
            return False
        return bool(found.gap <= _FLOOR * scale or (stalled and found.gap <= _STALL * scale))

    @property
    def check_every(self) -> int:
        """A check costs so many multiply-adds, a pass so many: under 20 % for checks (measured)."""
        p = self.problem
        if isinstance(self.method, AFG):
            return 1 if p.samples.nnz > 1_000_000 else 5
        check = 2 * p.samples.nnz + 10 * p.n_samples + 8 * p.d + 50_000
        a_pass = 4 * p.samples.nnz + 20 * p.n_samples
        return int(min(20, max(1, math.ceil(5 * check / a_pass))))
