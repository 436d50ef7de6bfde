"""`lasso_path` and `enet_path`: many alphas at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array

from .._base.validation import Vector, is_sparse
from ..certify.result import Solution
from ..estimators.linear import Plan, start_at
from ..problems.erm import ERM
from ..run.small import Looked, path_small
from . import _sklearn as private
from ._sklearn import theirs
from .answers import Answers, Gap

#: What tol means: with an L2 part the last digits are free.
GAP, WITH_L2 = Gap(usual=1e-9, least=1e-14), Gap(usual=1e-13)
#: Of a small problem all digits are found at this; to prove more takes longer than to find them.
SMALL = Gap(usual=9e-11, least=1e-14)
#: The defaults of the installed version
_DEFAULTS = private.defaults_of(theirs.enet_path)
_COUNT, _ALPHAS = _DEFAULTS["n_alphas"], _DEFAULTS["alphas"]


@private.validated_like(theirs.enet_path)
def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float = 1e-3,
    n_alphas: Any = _COUNT,
    alphas: Any = _ALPHAS,
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: Any = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    **params: Any,
) -> tuple[Any, ...]:
    """The elastic net for many alphas, as `sklearn.linear_model.enet_path`, each certified.

    `precompute`, `Xy`, `copy_X`, `selection` and `verbose` have no influence on the answer. For an
    alpha of zero it is the solution of least norm.

    Parameters
    ----------
    X, y : array
        Samples and targets. All parameters are those of scikit-learn.

    Returns
    -------
    alphas, coefs, dual_gaps : arrays
        And n_iters, with return_n_iter=True.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import enet_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> alphas, coefs, gaps = enet_path(X, y, alphas=[1.0, 0.1], l1_ratio=0.7)
    >>> coefs.shape
    (10, 2)
    """
    grid, count = _asked(n_alphas, alphas)
    told = _told(params)
    if check_input:
        X = check_array(X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        y = check_array(y, dtype=X.dtype.type, ensure_2d=False)
    if y.ndim > 1 and positive:
        raise ValueError("positive=True is not allowed for multi-output (y.ndim != 1)")
    if grid is None:
        grid = private.alpha_grid(
            X, y, Xy=Xy, l1_ratio=l1_ratio, eps=eps, n_alphas=count, positive=positive
        )
    elif len(grid) > 1:
        grid = np.sort(grid)[::-1]
    found = _solve(X, y, np.asarray(grid, dtype=np.float64), l1_ratio, positive, coef_init, told)
    coefs = np.empty((*_shape(X, y), len(found)), dtype=X.dtype)
    for k, r in enumerate(found):
        coefs[..., k] = r.w.T
    gaps = np.array([r.gap for r in found])
    if return_n_iter:
        return grid, coefs, gaps, [r.epochs for r in found]
    return grid, coefs, gaps


@private.validated_like(theirs.lasso_path)
def lasso_path(
    X: Any,
    y: Any,
    *,
    eps: float = 1e-3,
    n_alphas: Any = _COUNT,
    alphas: Any = _ALPHAS,
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: Any = False,
    return_n_iter: bool = False,
    positive: bool = False,
    **params: Any,
) -> tuple[Any, ...]:
    """The lasso for many alphas, as `sklearn.linear_model.lasso_path`: see `enet_path`.

    Parameters
    ----------
    X, y : array
        Samples and targets. All parameters are those of scikit-learn.

    Returns
    -------
    alphas, coefs, dual_gaps : arrays
        And n_iters, with return_n_iter=True.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from apcg.linear_model import lasso_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> alphas, coefs, gaps = lasso_path(X, y, alphas=[1.0, 0.1])
    >>> coefs.shape
    (10, 2)
    """
    found: tuple[Any, ...] = enet_path(
        X, y, l1_ratio=1.0, eps=eps, n_alphas=n_alphas, alphas=alphas, precompute=precompute,
        Xy=Xy, copy_X=copy_X, coef_init=coef_init, verbose=verbose, positive=positive,
        return_n_iter=return_n_iter, **params,
    )  # fmt: skip
    return found


def _asked(n_alphas: Any, alphas: Any) -> tuple[Any, int]:
    """The alphas that were given, or None and how many to choose."""
    count = 100
    if _COUNT == "deprecated" and n_alphas != "deprecated":
        warnings.warn(
            "'n_alphas' was deprecated in 1.9 and will be removed in 1.11. 'alphas' now accepts "
            "an integer value which removes the need to pass 'n_alphas'. The default value of "
            "'alphas' will change from None to 100 in 1.11. Pass an explicit value to 'alphas' and "
            "leave 'n_alphas' to its default value to silence this warning.",
            FutureWarning,
            stacklevel=4,
        )
        count = n_alphas
    elif _COUNT != "deprecated":
        count = n_alphas
    if isinstance(alphas, str):  # "warn", the default
        return None, count
    if alphas is None:
        if _ALPHAS is not None:
            warnings.warn(
                "'alphas=None' is deprecated and will be removed in 1.11, at which point the "
                "default value will be set to 100. Set 'alphas=100' to silence this warning.",
                FutureWarning,
                stacklevel=4,
            )
        return None, count
    return (None, int(alphas)) if isinstance(alphas, Integral) else (alphas, count)


def _told(params: dict[str, Any]) -> dict[str, Any]:
    """What scikit-learn's classes pass to a path besides its parameters."""
    known = {"X_offset": None, "X_scale": None, "sample_weight": None, "tol": 1e-4,
             "max_iter": 1000, "random_state": None, "selection": "cyclic",
             "do_screening": True}  # fmt: skip
    if set(params) - set(known):
        raise ValueError("Unexpected parameters in params", params.keys())
    told = known | params
    if told["selection"] not in ("random", "cyclic"):
        raise ValueError("selection should be either random or cyclic.")
    return told


def _shape(X: Any, y: Any) -> tuple[int, ...]:
    """That of the coefficients for one alpha."""
    return (X.shape[1],) if y.ndim == 1 else (y.shape[1], X.shape[1])


def penalty_of(l1_ratio: float, K: int = 1) -> str:
    """The penalty of these classes by its name."""
    if l1_ratio == 0:
        return "l2"
    name = "l1" if l1_ratio == 1 else "elasticnet"
    return name if K == 1 else {"l1": "group", "elasticnet": "group_elasticnet"}[name]


def gap_of(problem: ERM) -> Gap:
    """What tol means for it."""
    return WITH_L2 if problem.penalty.endswith("elasticnet") else GAP


def _solve(
    X: Any, y: Any, grid: Vector, l1_ratio: float, positive: bool, coef: Any, told: dict[str, Any]
) -> Sequence[Solution | Looked]:
    """The answers for all alphas.

    scikit-learn's classes give dense data centred and times the roots of the weights. Sparse data
    comes as it is, with its means: then the intercept is ours.
    """
    weights, offset = (told["sample_weight"], told["X_offset"]) if is_sparse(X) else (None, None)
    K = 1 if y.ndim == 1 else y.shape[1]
    target = np.ascontiguousarray(y.ravel() if K == 1 else y, dtype=np.float64)
    penalty = penalty_of(l1_ratio, K)
    problem = ERM(
        X, target, "squared", penalty, 1.0, sample_weight=weights,
        l1_ratio=l1_ratio, positive=positive, intercept=offset is not None and bool(np.any(offset)),
    )  # fmt: skip
    answers = Answers()
    how, gap = (told["tol"], told["max_iter"], told["random_state"]), gap_of(problem)
    if grid.size > 1:
        goal, falling = gap.of(told["tol"]), bool(np.all(grid[1:] <= grid[:-1]))
        found: list[Solution | Looked] = []
        if falling and told["max_iter"] and goal >= gap.usual:  # who wants more gets it from rows
            found += path_small(problem, grid[grid > 0], goal)
        rest = grid[len(found) :]
        if np.any(rest > 0):
            found += answers.path(problem, rest[rest > 0], *how, gap)
        plans = [_alone(problem, alpha) for alpha in grid[grid == 0]]
        return [*found, *(answers.solve(plan, *how, gap=gap)[0] for plan in plans)]
    plan = _alone(problem, grid[0])
    problem = plan.problems[0]
    start = None
    if coef is not None and np.any(coef):
        w = np.array(np.asarray(coef).T, dtype=np.float64, order="C").reshape(
            (problem.d,) if K == 1 else (problem.d, K)
        )
        b = problem.best_intercept(problem.samples.times(w)) if problem.intercept else 0.0
        start = start_at(problem, w, b)
    return answers.solve(plan, *how, [start], gap=gap)


def _alone(problem: ERM, alpha: float) -> Plan:
    """A plan for one alpha, which may be zero."""
    return Plan([problem.with_alpha(float(alpha))], ["path"], lambda found: {})
