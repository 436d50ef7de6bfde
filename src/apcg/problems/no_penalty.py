"""Features without a penalty: alpha = 0, penalty=None, or a weight of zero.

D(x) is finite there only if A x = 0, which no x of floating point numbers is. So such weights are
in a box, |w_j| <= box_j, and the gap is that of the problem on the box: no point of it is better
than the answer by more than the gap. The box is wide: with w_j = box_j feature j alone predicts
BOX times the labels. Only the certificate needs it: methods ignore it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..penalties.interval import Interval

#: One feature predicts at most so many times the size of the labels.
BOX = 1e4


def into_box(problem: Any) -> None:
    """Take alpha = 0 out of a new problem, and put weights without a penalty into a box.

    `reach` is the sum of what these features can predict.
    """
    problem.reach = 0.0
    if problem.alpha == 0:
        if not isinstance(problem.g, Interval):
            raise ValueError(
                f"alpha=0 leaves nothing of penalty {problem.penalty}; take penalty=None instead."
            )
        problem.g = problem.g.without_penalty()
    if not isinstance(problem.g, Interval):
        return
    if not problem.g.has_penalty:
        problem.alpha, problem.penalty = 1.0, "none"  # alpha has no say any more
    if problem.g.leaves_free:
        problem.g, problem.reach = _boxed(problem)


def with_alpha(problem: Any, alpha: float) -> Any:
    """The problem with another alpha, where it is 0 or has nothing to multiply."""
    if problem.penalty == "none":
        if alpha > 0:
            raise ValueError("this problem has no penalty for alpha; make one, ERM(..., penalty=).")
        return problem
    made = problem.altered(alpha=0.0, dual_form=False)
    into_box(made)
    return made


def fitted(problem: Any) -> Any:
    """The problem with a box for the labels that it has."""
    if not problem.reach:
        return problem
    g = problem.interval
    free = g.boxed.reshape((-1, 1) if problem.K > 1 else -1)
    lower, upper = np.where(free, -np.inf, g.lower), np.where(free, np.inf, g.upper)
    problem.g = Interval(g.a, g.b, lower, upper, K=problem.K)
    problem.g, problem.reach = _boxed(problem)
    return problem


def _boxed(problem: Any) -> tuple[Interval, float]:
    """g with the box, and the reach, in units of the labels' root mean square, if numbers."""
    weights = np.broadcast_to(problem.weights, problem.n_samples)
    squares = problem.samples.column_squares(weights)
    real = problem.y.ndim == 2 or problem.loss.margin is False
    most = float(np.abs(problem.y).max()) if real else 0.0
    unit = most * math.sqrt(float(np.mean((problem.y / most) ** 2))) if most > 0 else 1.0
    with np.errstate(divide="ignore", over="ignore"):
        size = BOX * unit / np.sqrt(squares / problem.n)
    made: Interval = problem.interval.in_box(np.where(np.isfinite(size), size, BOX))
    return made, float(np.count_nonzero(made.boxed)) * BOX * unit
