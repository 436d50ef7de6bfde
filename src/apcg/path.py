"""`path`: one problem for many alpha, each solved from the answer before."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _validation as validate
from .erm import ERM
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
    last: Solution | None = None
    for k in np.argsort(-alphas, kind="stable"):
        last = solve(problems[k], method, x0=last, **options)
        answers[int(k)] = last
        if last.status.code == "interrupted":
            break
    return [answers[k] for k in range(alphas.size) if k in answers]
