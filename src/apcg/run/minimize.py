"""`minimize`: Algorithms 1 to 4 of the paper for any f + Psi."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation as validate
from .._base.types import Blocks, Seed
from .._base.validation import Index, Vector, answers_other_names
from ..certify.judge import Check
from ..certify.points import Report
from ..certify.result import Result, Status
from ..functions import LinearComposite, OwnFunction
from ..methods.base import Budget, Work
from ..methods.paper.adaptive.iterate import Adaptive
from ..methods.paper.apcg import APCG
from ..methods.paper.coordinate import CHUNK
from ..methods.paper.direct import Direct, DirectAdaptive
from ..methods.paper.sampling import Sampler, Sweep
from ..penalties import OwnPenalty, Penalty
from ..problems.composite import Composite, settle_zero_blocks
from ..sequences import Sequence
from .loop import Options, Outcome, run

Stepper: TypeAlias = APCG | Adaptive | Direct | DirectAdaptive

_MU = "it is relative to the norm |.|_L; leave it out, or take 0.0, if you do not know it"

#: A check costs about a pass and this much overhead, in multiply-adds.
_CHECK_OVERHEAD = 50_000


@answers_other_names
def minimize(
    f: LinearComposite | OwnFunction,
    psi: Penalty | OwnPenalty | None = None,
    x0: ArrayLike | None = None,
    mu: float | None = None,
    gamma0: float | None = None,
    blocks: Blocks | None = None,
    method: str = "auto",
    tol: float = 1e-6,
    max_epochs: int = 1000,
    random_state: Seed = None,
    check_every: int | None = None,
    sampling: str = "permutation",
    callback: Callable[[Check], object] | None = None,
    verbose: int = 0,
    time_limit: float | None = None,
) -> Result:
    """Minimize F(x) = f(x) + sum_i psi_i(x_i), problem (1) of the paper, by APCG.

    Method "apcg" is Algorithm 1 with the given mu and gamma_0; gamma_0 = mu > 0 is Algorithm 2,
    mu = 0 is Algorithm 3 (with gamma_0 = n^2 alpha_{-1}^2). A step costs O(nonzeros of A_i) when f
    and psi are of `apcg.functions` and `apcg.penalties` (Algorithm 4, extended to Algorithm 1).

    Parameters
    ----------
    f : function
        A function of `apcg.functions`, or an object with `value(x)`, `partial_gradient(i, x)` and
        `L`.
    psi : penalty, default=None
        A penalty of `apcg.penalties`, or an object with `value(x_i, i)` and `prox(v, step, i)`;
        None is no penalty.
    x0 : array, default=None
        The start, in the domain of psi; None is zero.
    mu : float, default=None
        The convexity parameter of f relative to |.|_L, in [0, 1]. None: what is known of f; if that
        is nothing and psi is strongly convex, that is moved to f (section 2.2 of the paper). 0.0:
        Algorithm 3, whose rate is 1/k^2; if it is slow, try a small positive mu. A mu that is too
        large loses the guarantee, and often converges all the same.
    gamma0 : float, default=None
        In [mu, (n - mu)/(n - 1)]. None: mu if mu > 0, else the largest, which is APPROX.
    blocks : list, default=None
        A list of sizes or of index arrays; None makes every coordinate a block.
    method : {"auto", "apcg", "rpcg"}, default="auto"
        "auto", APCG with a mu between 1 and the given one that follows the observed rate; "apcg",
        with the given mu and gamma0; or "rpcg", the unaccelerated method of the paper's
        introduction.
    tol : float
        Stop when max_i L_i |x_i - T_i(x)| <= tol * max(1, max_i |grad_i f(x0)|), with T_i the prox
        step of length 1/L_i.
    max_epochs : int
        An epoch is one step for each sampled block, on average; for "auto", steps on columns with
        as many nonzeros in all.
    random_state : int, Generator or None, default=None
        A seed, a numpy Generator or None. The same seed gives the same result.
    check_every : int, default=None
        Passes between checks; None chooses.
    sampling : {"permutation", "uniform"}, default="permutation"
        "permutation" (each block once a pass) or "uniform" (as in the paper's theorems); in a pass
        of "auto" some may come more often than others.
    callback : callable, default=None
        Called with each check (x, fun, residual, epoch, seconds); a true value stops.
    verbose : int, default=0
        1 shows a progress bar on a terminal, 2 leaves it there.
    time_limit : float, default=None
        In seconds.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import functions, minimize, penalties
    >>> A = np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 1.0]])
    >>> b = np.array([1.0, 0.2, 1.5])
    >>> r = minimize(functions.LeastSquares(A, b), penalties.L1(0.5), np.zeros(2), random_state=0)
    >>> r.converged
    True
    """
    validate.choice(method, "method", ("apcg", "rpcg", "auto"))
    options = Options(
        tol, max_epochs, check_every, sampling, random_state, callback, verbose, time_limit
    )
    start = _start(f, x0)
    problem = Composite(f, psi, start.size, blocks)
    if mu is not None:
        mu = validate.number(mu, "mu", low=0.0, high=1.0, hint=_MU)
    _check_domain(problem, start)
    sampled, start = settle_zero_blocks(problem, start)
    moved, sequence = _plan(problem, mu, gamma0, method, max(sampled.size, 1))
    stepper, sweep = _stepper(moved, start, sequence, sampled, method)
    gradient0 = problem.block_norms(problem.gradient(start))

    target = options.tol * max(1.0, float(gradient0.max()))
    task = _Task(problem, stepper, sweep, Sampler(options.rng, options.sampling))
    outcome = run(task, task.look, options, target)
    best = _zeros_put(problem, outcome, target)
    return Result(
        x=best.certificate.x,
        fun=best.merit,
        residual=best.measure,
        status=_advised(outcome.status, method),
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        trace=outcome.trace,
        mu=stepper.mu,
        gamma0=sequence.gamma0,
        L=moved.L,
        method=method,
    )


def _zeros_put(problem: Composite, outcome: Outcome, target: float) -> Check:
    """The look that reached the target, or that of the same point with exact zeros if it does too.

    In the middle of a run what is small need not be zero in the end.
    """
    best = outcome.best
    if not outcome.status.converged:
        return best
    new = _look(problem, problem.with_zeros(best.certificate.x))
    return new if new.measure <= target and math.isfinite(new.merit) else best


def _advised(status: Status, method: str) -> Status:
    """A run that was too short is told of the method that needs no mu."""
    if status.code in ("max_epochs", "time_limit") and method != "auto":
        return status.with_advice('Or take method "auto", which finds its own mu.')
    return status


def _look(problem: Composite, x: Vector) -> Check:
    """F and the residual at x."""
    fun, residual = problem.value(x), problem.residual(x)
    columns: dict[str, float | str] = {"fun": fun, "residual": residual}
    return Check(_Point(x), x, residual, fun, columns, arrays=(x,), measured="residual")


@dataclass(frozen=True)
class _Point:
    """What is looked at: x."""

    x: Vector


class _Task:
    """Sweeps of a method, and looks at F and the residual of the problem as it was given."""

    report = Report()

    def __init__(
        self,
        problem: Composite,
        method: Stepper,
        sweep: Callable[[], Sweep],
        sampler: Sampler,
    ) -> None:
        self.problem, self.method = problem, method
        self._sweep, self._sampler = sweep, sampler
        # An oracle of the user's may be slow: the time limit is looked at after every step.
        work = problem.work if problem.compiled else CHUNK * problem.n
        self._pieces = max(1, work // CHUNK)
        # Looks cost a pass or so: under 20 % of the work, and at least one in 20 passes.
        self._every = min(20, 5 * (1 + _CHECK_OVERHEAD // (5 * max(problem.work, 1))))

    def advance(self, budget: Budget) -> Work:
        """Passes until the next look."""
        wanted = budget.passes if budget.fixed else min(budget.passes, self._every)
        for done in range(1, wanted + 1):
            order = self._sampler.draw(self._sweep())
            for piece in np.array_split(order, self._pieces) if self._pieces > 1 else (order,):
                self.method.epoch(piece)
                if budget.expired:
                    return Work(done)
        return Work(wanted)

    def look(self) -> Check:
        """F and the residual at the present point."""
        return _look(self.problem, self.problem.nearest(self.method.x))

    def seen(self, certificate: _Point) -> None:
        """Nothing is steered by looks."""


def _stepper(
    problem: Composite, start: Vector, sequence: Sequence, sampled: Index, method: str
) -> tuple[Stepper, Callable[[], Sweep]]:
    """The method at its start, and what gives the sweep of its next pass."""
    even = Sweep(sampled)
    if method == "auto" and not problem.compiled:
        return DirectAdaptive(problem, start, sequence.n, sequence.mu), lambda: even
    if method == "auto":
        adaptive = Adaptive(problem, start, sampled, sequence.mu)
        return adaptive, lambda: adaptive.sample(sampled)
    made = APCG if problem.compiled else Direct
    return made(problem, start, sequence), lambda: even


def _start(f: LinearComposite | OwnFunction, x0: ArrayLike | None) -> Vector:
    N = getattr(f, "n_coordinates", None)
    if x0 is None:
        if N is None:
            raise ValueError("x0 is needed: f does not say how many coordinates there are.")
        return np.zeros(N)
    start = validate.vector(x0, None, "x0").copy()
    if start.size == 0:
        raise ValueError("x0 is empty: the problem has no coordinates.")
    return start


def _check_domain(problem: Composite, x0: Vector) -> None:
    if np.isfinite(problem.psi_value(x0)):
        return
    values = ((i, problem.psi.value(x0[problem.block(i)], i)) for i in range(problem.n))
    where = next((f"{v} in block {i}" for i, v in values if not np.isfinite(v)), "not finite")
    raise ValueError(
        f"x0 must be in the domain of psi, but psi(x0) is {where}; start from a feasible point. "
        "The prox of psi gives one."
    )


def _plan(
    problem: Composite, mu: float | None, gamma0: float | None, method: str, n: int
) -> tuple[Composite, Sequence]:
    """The problem as it is solved (section 2.2) and the sequence that solves it."""
    if method == "rpcg":
        if gamma0 is not None or mu is not None:
            raise ValueError('method "rpcg" has no momentum: leave out mu and gamma0.')
        # With mu = gamma_0 = 1 Algorithm 1 has x = y = z and steps of 1/L_i: it is rpcg.
        return problem, Sequence(n, 1.0, 1.0)
    if method == "auto" and gamma0 is not None:
        raise ValueError(
            'method "auto" chooses gamma0 itself: leave it out, or take method "apcg".'
        )
    if mu is None:
        mu = problem.mu
        if mu == 0 and np.min(problem.psi_convexity) > 0:
            problem, mu = problem.moved()
    return problem, Sequence.choose(n, mu, gamma0)
