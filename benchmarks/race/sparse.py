"""Peers for L1 and the elastic net, without intercept: squared and logistic losses.

The elastic net is lambda (r |w|_1 + (1 - r)/2 |w|^2), with r the ratio.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from contestants import MANY, SEED, Contestant, ladder
from problems import Problem

#: Outer iterations of working-set methods: more than they ever need.
OUTER = 1000


def _ratio(p: Problem) -> float:
    return 1.0 if p.penalty == "l1" else p.ratio


def celer(p: Problem) -> Iterator[Contestant]:
    """Mean squared loss with a half + alpha |w|_1, as here; C for the logistic loss."""
    import celer as package

    options = {"max_iter": OUTER, "max_epochs": 10 * MANY}

    def fit(columns, tol):
        if p.loss == "logistic":
            m = package.LogisticRegression(C=p.C, tol=tol, **options)
        elif p.penalty == "l1":
            m = package.Lasso(alpha=p.lam, fit_intercept=False, tol=tol, **options)
        else:
            m = package.ElasticNet(
                alpha=p.lam, l1_ratio=p.ratio, fit_intercept=False, tol=tol, **options
            )
        return np.ravel(m.fit(columns, p.y).coef_)

    if p.loss == "squared" or (p.loss == "logistic" and p.penalty == "l1"):
        yield Contestant("celer", fit, ladder(1.0, 1e-10), p.columns)


def sklearn(p: Problem) -> Iterator[Contestant]:
    """Coordinate descent for the squared loss; SAGA and LIBLINEAR for the logistic loss."""
    from sklearn.linear_model import ElasticNet, LogisticRegression

    def descent(columns, tol):
        m = ElasticNet(
            alpha=p.lam, l1_ratio=_ratio(p), fit_intercept=False, tol=tol, max_iter=10 * MANY
        )
        return m.fit(columns, p.y).coef_

    if p.loss == "squared":
        yield Contestant("scikit-learn CD", descent, ladder(1.0, 1e-10), p.columns)
    if p.loss == "logistic":
        for solver in ("saga", "liblinear") if p.penalty == "l1" else ("saga",):

            def fit(_, tol, solver=solver):
                m = LogisticRegression(
                    C=p.C,
                    l1_ratio=_ratio(p),
                    solver=solver,
                    tol=tol,
                    max_iter=10 * MANY,
                    fit_intercept=False,
                    random_state=SEED,
                )
                return m.fit(p.X, p.y).coef_[0]

            yield Contestant(f"LogisticRegression {solver}", fit, ladder(10.0, 1e-10))


def skglm(p: Problem) -> Iterator[Contestant]:
    """Working sets and Anderson acceleration, compiled by numba at the first fit."""
    import skglm as package

    def fit(columns, tol):
        options = {"alpha": p.lam, "fit_intercept": False, "tol": tol, "max_iter": OUTER}
        if p.loss == "logistic":
            m = package.SparseLogisticRegression(l1_ratio=_ratio(p), **options)
        elif p.penalty == "l1":
            m = package.Lasso(**options)
        else:
            m = package.ElasticNet(l1_ratio=p.ratio, **options)
        return np.ravel(m.fit(columns, p.y).coef_)

    if p.loss in ("squared", "logistic"):
        yield Contestant("skglm", fit, ladder(0.1, 1e-11), p.columns)


def cyanure(p: Problem) -> Iterator[Contestant]:
    """Mean loss + lambda_1 |w|_1 + (lambda_2/2)|w|^2."""
    from cyanure.estimators import Classifier, Regression

    penalty = {"penalty": "l1", "lambda_1": p.lam}
    if p.penalty == "elasticnet":
        penalty = {
            "penalty": "elasticnet",
            "lambda_1": p.lam * p.ratio,
            "lambda_2": p.lam * (1 - p.ratio),
        }
    for solver in ("auto", "qning-ista", "acc-svrg") if p.loss in ("squared", "logistic") else ():

        def fit(_, tol, solver=solver):
            options = {
                "tol": tol,
                "max_iter": MANY,
                "fit_intercept": False,
                "verbose": False,
                "solver": solver,
                "n_threads": 1,
                "duality_gap_interval": 5,
            } | penalty
            regression = p.loss == "squared"
            m = Regression(**options) if regression else Classifier(loss="logistic", **options)
            return np.ravel(m.fit(p.X, p.y).get_weights())

        yield Contestant(f"cyanure {solver}", fit, ladder(1.0, 1e-9))


def snapml(p: Problem) -> Iterator[Contestant]:
    """Regularizer |w|_1 + sum of logistic losses."""
    import snapml as package

    def fit(_, tol):
        m = package.LogisticRegression(
            dual=False,
            penalty="l1",
            regularizer=p.lam * p.n,
            max_iter=MANY,
            fit_intercept=False,
            n_jobs=1,
            tol=tol,
            random_state=SEED,
        )
        m.fit(p.X, p.y)
        return np.ravel(m.coef_).astype(np.float64)

    if p.loss == "logistic" and p.penalty == "l1":
        yield Contestant("snapml", fit, ladder(1.0, 1e-9))


#: By the package that each needs.
MAKERS = {
    "celer": celer,
    "sklearn": sklearn,
    "skglm": skglm,
    "cyanure": cyanure,
    "snapml": snapml,
}
