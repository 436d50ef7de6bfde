"""Races over a whole path of lambdas, without intercept: every one of them must be good enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from contestants import MANY, SEED, Contestant, Event, installed, ladder
from problems import Problem

#: Of an L1 path, from lambda_max/10^(3/29) to lambda_max/1000.
STEPS = 30
#: Of an L2 path.
RIDGES = np.geomspace(1e-2, 1e-6, 13)


def lambdas(p: Problem) -> np.ndarray:
    """From the largest to the smallest. At lambda_max itself there is nothing to find."""
    if p.penalty == "l2":
        return RIDGES
    return p.lambda_max() * np.geomspace(1.0, 1e-3, STEPS)[1:]


def event(p: Problem, packages: tuple[str, ...]) -> Event:
    """Answers are lists of w, in the order of `lambdas`."""
    grid = lambdas(p)
    makers = {"apcg": _apcg, "sklearn": _sklearn, "celer": _celer, "skglm": _skglm}
    entered = [
        c
        for package, make in makers.items()
        if package in packages and installed(package)
        for c in make(p, grid)
    ]

    def values(_, answer):
        pairs = zip(grid, answer, strict=True)
        return [replace(p, lam=float(lam)).value(w) for lam, w in pairs]

    def optimum(_, limit):
        return values(None, _our_path(p, grid, 1e-10, time_limit=limit / len(grid)))

    return Event(tuple(entered), values, optimum)


def _our_path(p: Problem, grid, tol, **options):
    from apcg import ERM, path

    erm = ERM(p.X, p.y, p.loss, p.penalty, l1_ratio=p.ratio)
    return [r.w for r in path(erm, grid, tol=tol, max_epochs=MANY, random_state=SEED, **options)]


def _apcg(p: Problem, grid) -> Iterator[Contestant]:
    yield Contestant("apcg", lambda _, tol: _our_path(p, grid, tol), ladder(1.0, 1e-8))


def _sklearn(p: Problem, grid) -> Iterator[Contestant]:
    """`enet_path`, and LogisticRegression with warm starts."""
    from sklearn.linear_model import LogisticRegression, enet_path

    def of_the_net(columns, tol):
        ratio = 1.0 if p.penalty == "l1" else p.ratio
        found = enet_path(columns, p.y, l1_ratio=ratio, alphas=grid, tol=tol, max_iter=MANY)
        return list(found[1].T)

    if p.loss == "squared" and p.penalty != "l2":
        yield Contestant("scikit-learn enet_path", of_the_net, ladder(1.0, 1e-10), p.columns)
    if p.loss == "logistic":
        solvers = ("lbfgs", "newton-cholesky") if p.penalty == "l2" else ("saga",)
        for solver in solvers if p.d <= 2000 else solvers[:1]:

            def warm(_, tol, solver=solver):
                ratio = {"l2": 0.0, "l1": 1.0, "elasticnet": p.ratio}[p.penalty]
                m = LogisticRegression(
                    l1_ratio=ratio,
                    solver=solver,
                    tol=tol,
                    max_iter=MANY,
                    fit_intercept=False,
                    warm_start=True,
                    random_state=SEED,
                )
                answer = []
                for lam in grid:
                    m.set_params(C=1 / (lam * p.n)).fit(p.X, p.y)
                    answer.append(m.coef_[0].copy())
                return answer

            yield Contestant(f"LogisticRegression {solver}, warm", warm, ladder(1.0, 1e-10))


def _celer(p: Problem, grid) -> Iterator[Contestant]:
    from celer import celer_path

    kind = {"squared": "lasso", "logistic": "logreg"}.get(p.loss)

    def fit(columns, tol):
        found = celer_path(
            columns, p.y, kind, alphas=_for_celer(p, grid), tol=tol, max_epochs=10 * MANY
        )
        return list(found[1].T)

    if kind and p.penalty == "l1":
        yield Contestant("celer_path", fit, ladder(1.0, 1e-10), p.columns)


def _for_celer(p: Problem, grid):
    """Its squared loss is a mean as here, its logistic loss is a sum."""
    return grid * (p.n if p.loss == "logistic" else 1.0)


def _skglm(p: Problem, grid) -> Iterator[Contestant]:
    import skglm

    def fit(columns, tol):
        m = skglm.Lasso(fit_intercept=False, tol=tol, max_iter=1000)
        return list(m.path(columns, p.y, grid)[1].T)

    if p.loss == "squared" and p.penalty == "l1":
        yield Contestant("skglm path", fit, ladder(0.1, 1e-11), p.columns)
