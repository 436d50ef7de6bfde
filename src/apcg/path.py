"""`path`: one problem for many alpha, each solved from the answer before."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _validation as validate
from ._validation import Vector
from .erm import ERM
from .methods import shrinking
from .result import Solution
from .solve import solve


def path(problem: ERM, alphas: Any, method: str = "auto", **options: Any) -> list[Solution]:
    """Solve `problem` for each alpha, from the largest to the smallest, with warm starts.

    The dual point x of one alpha is feasible for the next, and a good start; for a penalty that is
    solved in the primal ("l1") it is w that is handed on. `options` are those of `solve`, but x0;
    max_epochs, time_limit and callback are for each alpha. Ctrl-C gives back what there is.

    Parameters
    ----------
    problem : an `ERM`; its own alpha does not matter, and its data is not copied.
    alphas : positive numbers, in any order.
    method : of `solve`.

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
    problems = [problem.with_alpha(float(a)) for a in alphas]
    answers: dict[int, Solution] = {}
    seen: list[_Seen] = []
    for k in np.argsort(-alphas, kind="stable"):
        last = solve(problems[k], method, x0=_ahead(problems[k], seen), **options)
        answers[int(k)] = last
        if last.status.code == "interrupted":
            break
        seen = [*seen[-2:], _Seen.of(problems[k], last)]
    return [answers[k] for k in range(alphas.size) if k in answers]


def _ahead(problem: ERM, seen: list[_Seen]) -> Solution | None:
    """A start for the next alpha: the best of where the answers so far point to.

    They are taken for polynomials of degree 0, 1 and 2 in alpha and in log alpha: x itself, the
    slopes that belong to x (for losses whose x has no bounds to rest at), and w.
    """
    if not seen:
        return None
    last = seen[-1].answer
    xs, ws = [last.x], [last.w]
    for count in range(2, len(seen) + 1):
        for scale in (math.log, float):
            part = seen[-count:]
            nodes = np.array([scale(s.alpha) for s in part])
            weights = _lagrange(nodes, scale(problem.alpha))
            ws.append(problem.g.clip(_sum(weights, [s.answer.w for s in part])))
            if part[0].slopes is None:
                xs.append(problem.into_domain(_sum(weights, [s.answer.x for s in part])))
            else:
                slopes = _sum(weights, [s.slopes for s in part])
                xs.append(-problem.weights * problem.loss.arrays.derivative(slopes))
    if problem.intercept:
        xs = [problem.balance(x) for x in xs]
    x, w = max(xs, key=problem.dual), min(ws, key=problem.primal)
    return replace(last, x=x, w=w)


@dataclass
class _Seen:
    alpha: float
    answer: Solution
    slopes: Any = None

    @classmethod
    def of(cls, problem: ERM, answer: Solution) -> _Seen:
        if shrinking.rests(problem):
            return cls(problem.alpha, answer)
        x = answer.x / np.where(problem.weights > 0, problem.weights, 1.0)
        return cls(problem.alpha, answer, problem.loss.nearest_conjugate_slope(x, x))


def _sum(weights: list[float], parts: list[Any]) -> Vector:
    return np.asarray(sum(c * part for c, part in zip(weights, parts, strict=True)))


def _lagrange(nodes: Vector, t: float) -> list[float]:
    """The weights of values at the nodes in the value at t of the polynomial through them."""
    others = (np.delete(nodes, i) for i in range(nodes.size))
    return [float(np.prod((t - o) / (a - o))) for a, o in zip(nodes, others, strict=True)]
