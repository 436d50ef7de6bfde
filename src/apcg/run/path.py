"""`path`: one problem for many alpha, each solved from the answer before."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._base import validation as validate
from .._base.validation import Vector
from .._base.weights import divisor
from ..certify.certificate import certify_enough
from ..certify.points import Certificate, Report, Start
from ..certify.result import Solution, Status, answer
from ..methods.base import Budget, Method, Run, Target
from ..methods.paper.adaptive import resting
from ..methods.sparse.dense import path_dense
from ..problems.erm import ERM
from .small import solve_small
from .solve import prepared, solve_on


def path(
    problem: ERM, alphas: Any, method: str | Method = "auto", **options: Any
) -> list[Solution]:
    """Solve `problem` for each alpha, from the largest to the smallest, with warm starts.

    The dual point x of one alpha is feasible for the next, and a good start; for a penalty that is
    solved in the primal ("l1") it is w that is handed on. `options` are those of `solve`, but x0;
    max_epochs, time_limit and callback are for each alpha. Ctrl-C gives back the answers there are,
    the last of which may be "interrupted"; it is a KeyboardInterrupt only if there is none yet.

    Parameters
    ----------
    problem : ERM
        An `ERM`; its own alpha does not matter, and its data is not copied.
    alphas : array of floats
        Positive numbers, in any order.
    method : str or Method, default="auto"
        Of `solve`.

    Returns
    -------
    list of Solution, in the order of `alphas`

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, path
    >>> X = np.array([[1.0, 0.2], [0.8, -0.5], [-1.0, 0.3], [-0.6, -0.4]])
    >>> problem = ERM(X, [1, 1, -1, -1], "logistic")
    >>> [r.converged for r in path(problem, [1e-1, 1e-2, 1e-3], random_state=0)]
    [True, True, True]
    """
    if not isinstance(problem, ERM):
        raise TypeError(f"problem must be an apcg.ERM, got {type(problem).__name__}.")
    if "x0" in options:
        raise TypeError("path has no x0: each alpha starts from the answer of the one before.")
    alphas = validate.vector(alphas, None, "alphas")
    if alphas.size == 0:
        raise ValueError("alphas is empty: give at least one.")
    problem.with_alpha(float(alphas.min()))  # an error if one is not positive
    together, interrupted = _together(problem, alphas, method, options)
    known = [found for found in together if found is not None]
    if (interrupted and known) or None not in together:
        return known
    answers: dict[int, Solution] = {}
    try:
        for k, found in _one_by_one(problem, alphas, method, options, together):
            answers[k] = found
            if interrupted or found.status.code == "interrupted":
                break
    except KeyboardInterrupt:
        if not answers:
            raise
    return [answers[k] for k in range(alphas.size) if k in answers]


def _one_by_one(
    problem: ERM,
    alphas: Vector,
    method: str | Method,
    options: dict[str, Any],
    together: list[Solution | None],
) -> Iterator[tuple[int, Solution]]:
    """Each place and its answer, from the largest alpha on; those found together are taken."""
    seen: list[_Seen] = []
    last: Solution | None = None
    run: Run | None = None
    for k in map(int, np.argsort(-alphas, kind="stable")):
        at, found = problem.with_alpha(float(alphas[k])), together[k]
        if found is None and method == "auto" and at.g.is_quadratic:
            found = solve_small(at, prepared(at, method, **options)[2], last)
        if found is None:
            found, run = _gone_on(at, run, last, options)
        if found is None:
            # of K outputs, and of own losses, the last answer is the start
            plain = problem.K > 1 or not problem.loss.compiled
            start = last if plain else _ahead(at, seen, run)
            found, run = solve_on(*prepared(at, method, **options), start)
        last = found
        yield k, found
        if problem.K == 1:
            seen = [*seen[-3:], _Seen(at, last)]


#: options that are for looks while a point is solved
_WATCHED = {"callback", "check_every", "verbose", "time_limit"}


def _together(
    problem: ERM, alphas: Vector, method: str | Method, options: dict[str, Any]
) -> tuple[list[Solution | None], bool]:
    """What is found for many alphas at once (None: not found), and whether Ctrl-C ended it."""
    made: list[Solution | None] = [None] * alphas.size
    if method not in ("auto", "working_set") or _WATCHED & set(options):
        return made, False
    checked = prepared(problem, method, **options)[2]
    if checked.max_epochs == 0:
        return made, False
    begun = time.perf_counter()
    found: dict[int, Certificate] = {}
    try:
        found.update(path_dense.answers(problem, alphas, checked.tol))
        return _as_solutions(found, alphas.size, checked.tol, method, begun), False
    except KeyboardInterrupt:  # with nothing to give back yet, the path ends with its first answer
        return _as_solutions(found, alphas.size, checked.tol, method, begun), True


def _as_solutions(
    found: dict[int, Certificate], count: int, tol: float, method: str | Method, begun: float
) -> list[Solution | None]:
    """Answers that were found together, at their places among so many."""
    made: list[Solution | None] = [None] * count
    seconds = (time.perf_counter() - begun) / max(len(found), 1)
    note = (
        "working_set: it goes on from the alpha before, many of them on one Gram matrix or set of "
        "columns, whose sweeps are not counted in the passes"
    )
    said = Report(at_work="working_set", notes=[note])
    for k, c in found.items():
        code = "converged" if c.relative <= tol else "precision"
        status = Status.of(code, 1, c.relative, tol)
        made[k] = answer(c, status, said, str(method), 1, seconds)
    return made


def _gone_on(
    problem: ERM, run: Run | None, last: Solution | None, options: dict[str, Any]
) -> tuple[Solution | None, Run | None]:
    """The answer of the run before, told this alpha, if one look is enough, else None; and the run.

    That look is certified as any other. What is spared is the beginning of a run.
    """
    if run is None or last is None or _WATCHED & set(options):
        return None, run
    begun, tol = time.perf_counter(), options.get("tol", 1e-6)
    passes = options.get("max_epochs", 1000)
    turned = run.resume(problem, Target(tol, passes), last.w)
    if turned is None:
        return None, run
    run = turned
    with np.errstate(all="ignore"):
        epochs = run.advance(Budget(passes)).passes
        found = certify_enough(problem, run.point(), tol)
    if not found.exact or (found.relative > tol and epochs < passes):
        return None, run
    code = "converged" if found.relative <= tol else "max_epochs"
    seconds = time.perf_counter() - begun
    note = "working_set: it goes on with the set of the alpha before"
    said = Report(last.side, "working_set", last.mu, notes=[note])
    status = Status.of(code, epochs, found.relative, tol)
    return answer(found, status, said, last.method, epochs, seconds), run


@dataclass
class _Seen:
    """An answer, for looking ahead: with X w, A x, and the inverse of phi' at -x."""

    problem: ERM
    answer: Solution

    @property
    def alpha(self) -> float:
        """Of its problem."""
        return self.problem.alpha

    @cached_property
    def z(self) -> Vector:
        """X w + b"""
        return self.problem.samples.times(self.answer.w) + self.answer.intercept

    @cached_property
    def Ax(self) -> Vector:
        """A x/n"""
        return self.problem.v_of(self.answer.x) * self.alpha

    @cached_property
    def slopes(self) -> Vector:
        """The inverse of phi' at -x."""
        x = self.answer.x / divisor(self.problem.weights)
        with np.errstate(all="ignore"):
            return np.asarray(self.problem.loss.nearest_conjugate_slope(x, x))


def _ahead(problem: ERM, seen: list[_Seen], run: Run | None = None) -> Start | None:
    """A start for the next alpha: where the last answers point to, or the last one.

    `run` is what found the last one.

    They are taken for polynomials of low degree in alpha and in log alpha: w, and x where it has
    bounds to rest at, by the one that gives the best objective; where not, the slopes that belong
    to x. X w and A x follow along, so that only the x to take is looked at in full.
    """
    if not seen:
        return None
    last = seen[-1]
    if last.answer.side == "primal" and problem.separable and problem.interval.a.any():
        # a sparse w is the better start by its zeros, and the rest would take longer than a point
        return Start(w=last.answer.w, b=last.answer.intercept, side="primal", run=run)
    guesses = [_Guess([last], [1.0])]
    for count in range(2, len(seen) + 1):
        for scale in (float, math.log):
            nodes = np.array([scale(s.alpha) for s in seen[-count:]])
            if np.unique(nodes).size == count:
                guesses.append(_Guess(seen[-count:], _lagrange(nodes, scale(problem.alpha))))
    w = min((g.w(problem) for g in guesses), key=lambda found: found[0])[1]
    if resting.rests(problem):
        few = (g for g in guesses if len(g.parts) < 4)
        ahead = [max((g.x(problem) for g in few), key=lambda found: found[0])[1]]
    else:
        x_of, s = problem.loss.duals, problem.weights
        ahead = [x_of(g.sum("slopes"), None, s) for g in guesses[-4:]]
    x, best = last.answer.x, problem.dual_from(last.answer.x, last.Ax / problem.alpha)
    for new in ahead:
        if not np.isfinite(new).all():  # of slopes that are infinite
            continue
        balanced = problem.balance(new) if problem.intercept else new
        if (value := problem.dual(balanced)) > best:
            x, best = balanced, value
    answer = last.answer
    return Start(x, w, answer.intercept, answer.mu, answer.side)


@dataclass
class _Guess:
    """A combination of answers."""

    parts: list[_Seen]
    weights: list[float]

    def sum(self, name: str, *, of_answer: bool = False) -> Vector:
        values = (getattr(s.answer if of_answer else s, name) for s in self.parts)
        with np.errstate(invalid="ignore"):  # slopes may be infinite
            return np.asarray(sum(c * v for c, v in zip(self.weights, values, strict=True)))

    def w(self, problem: ERM) -> tuple[float, Vector]:
        """P(w) and w. (Bounds of the penalty make P infinite outside, and that guess is out.)"""
        w = self.sum("w", of_answer=True)
        return problem.primal_from(w, self.sum("z")), w

    def x(self, problem: ERM) -> tuple[float, Vector]:
        """About D(x), as if A x were what it was before x was put into its domain; and x."""
        x = problem.loss.clip(self.sum("x", of_answer=True), problem.y, problem.weights)
        return problem.dual_from(x, self.sum("Ax") / problem.alpha), x


def _lagrange(nodes: Vector, t: float) -> list[float]:
    """The weights of values at the nodes in the value at t of the polynomial through them."""
    others = (np.delete(nodes, i) for i in range(nodes.size))
    return [float(np.prod((t - o) / (a - o))) for a, o in zip(nodes, others, strict=True)]
