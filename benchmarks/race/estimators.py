"""Races of estimators, validation and all: free intercepts, default settings, cross-validation.

LinearSVC and LIBLINEAR inside scikit-learn put the intercept under the penalty. They are held to
the problem that they solve ("penalised"), not to ours, whose intercept is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from contestants import (
    DEFAULT,
    MANY,
    OURS,
    OURS_WITHOUT,
    SEED,
    Contestant,
    Event,
    certified,
    ladder,
)
from problems import Problem
from quadratic import WIDE

PENALISED, WITHOUT = "penalised", "without"
#: A cross-validated model must score within two points of the best on rows held out.
POINTS = 0.02
FOLDS = 5
GRID = np.geomspace(1.0, 1e-5, 11)


def with_intercept(p: Problem, packages: tuple[str, ...]) -> Event:
    """Our estimator with the peers of scikit-learn, each at its loosest sufficient tolerance."""
    steps = ladder(1.0, 1e-8)
    entered = [_ours(p, steps), _ours(p, steps, intercept=False)] if "apcg" in packages else []
    if "sklearn" in packages:
        entered += _of_scikit_learn(p)
    return _judged(p, tuple(entered))


def as_it_comes(p: Problem, packages: tuple[str, ...]) -> Event:
    """The same with default settings: whatever they reach, in the time that they take."""
    entered = [_ours(p, DEFAULT)] if "apcg" in packages else []
    if "sklearn" in packages:
        entered += [_default(p)]
    return _judged(p, tuple(entered), targets=(float("inf"),))


def _judged(p: Problem, entered: tuple[Contestant, ...], **options) -> Event:
    def values(contestant, answer):
        return [p.value(*answer, penalised_intercept=contestant.problem == PENALISED)]

    def optimum(name, limit):
        if name != PENALISED:
            return [certified(p, limit, intercept=name != WITHOUT)]
        ones = np.ones((p.n, 1))
        X = sp.csr_matrix(sp.hstack([p.X, ones])) if sp.issparse(p.X) else np.hstack([p.X, ones])
        return [certified(replace(p, X=X), limit)]

    return Event(entered, values, optimum, **options)


def _found(model):
    """(w, b) of a fitted model."""
    return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])


def _ours(p: Problem, tolerances, *, intercept: bool = True) -> Contestant:
    from apcg import APCGClassifier, APCGRegressor

    kind = APCGRegressor if p.loss == "squared" else APCGClassifier

    def fit(_, tol):
        options = {} if tol is None else {"tol": tol, "max_epochs": MANY}
        m = kind(p.loss, alpha=p.lam, fit_intercept=intercept, random_state=SEED, **options)
        return _found(m.fit(p.X, p.y))

    if intercept:
        return Contestant(OURS, fit, tolerances)
    return Contestant(OURS_WITHOUT, fit, tolerances, problem=WITHOUT)


def _of_scikit_learn(p: Problem) -> Iterator[Contestant]:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.svm import LinearSVC

    common = {"random_state": SEED, "max_iter": MANY}
    if p.loss == "logistic":
        slow = () if p.d > WIDE else ("newton-cholesky", "sag")
        for solver in ("lbfgs", "newton-cg", "saga", "liblinear", *slow):

            def fit(_, tol, solver=solver):
                m = LogisticRegression(C=p.C, solver=solver, tol=tol, **common)
                return _found(m.fit(p.X, p.y))

            problem = PENALISED if solver == "liblinear" else ""
            name = f"LogisticRegression {solver}"
            yield Contestant(name, fit, ladder(1.0, 1e-10), problem=problem)
    if p.loss in ("hinge", "squared_hinge"):
        for dual in (True,) if p.loss == "hinge" else (True, False):

            def fit(_, tol, dual=dual):
                m = LinearSVC(C=p.C, loss=p.loss, dual=dual, tol=tol, **common)
                return _found(m.fit(p.X, p.y))

            name = f"LinearSVC {'dual' if dual else 'primal'}"
            yield Contestant(name, fit, ladder(10.0, 1e-9), problem=PENALISED)
    if p.loss == "squared":
        dense = () if sp.issparse(p.X) else ("cholesky", "lsqr")
        for solver in ("auto", "sparse_cg", "sag", *dense):

            def fit(_, tol, solver=solver):
                m = Ridge(alpha=p.lam * p.n, solver=solver, tol=tol, **common)
                return _found(m.fit(p.X, p.y))

            yield Contestant(f"Ridge {solver}", fit, ladder(1.0, 1e-12))


def _default(p: Problem) -> Contestant:
    """The estimator of scikit-learn for this loss, all but C as it comes."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.svm import LinearSVC

    make = {
        "logistic": lambda: LogisticRegression(C=p.C),
        "squared_hinge": lambda: LinearSVC(C=p.C),
        "hinge": lambda: LinearSVC(C=p.C, loss="hinge"),
        "squared": lambda: Ridge(alpha=p.lam * p.n),
    }[p.loss]
    name = type(make()).__name__
    problem = PENALISED if name == "LinearSVC" else ""
    return Contestant(name, lambda _, tol: _found(make().fit(p.X, p.y)), DEFAULT, problem=problem)


def cross_validated(p: Problem, packages: tuple[str, ...]) -> Event:
    """One fit of a CV form on three quarters of the rows: the same lambdas, five folds.

    The value of an answer is 1 + what is wrong on the other quarter: the share of wrong labels, or
    1 - R^2. The forms of scikit-learn divide by other numbers of samples in a fold and weigh
    classes together, so the models differ a little; the score says whether they are as good.
    """
    order = np.random.default_rng(SEED).permutation(p.n)
    held, kept = order[: p.n // 4], order[p.n // 4 :]
    train = replace(p, X=p.X[kept], y=p.y[kept])
    entered = [_our_search(train)] if "apcg" in packages else []
    if "sklearn" in packages:
        entered += _their_searches(train)
    return Event(
        tuple(entered),
        lambda _, model: [2 - model.score(p.X[held], p.y[held])],
        lambda _, limit: None,
        targets=(POINTS,),
    )


def _our_search(p: Problem) -> Contestant:
    from apcg import APCGClassifierCV, APCGRegressorCV

    kind = APCGRegressorCV if p.loss == "squared" else APCGClassifierCV

    def fit(_, tol):
        m = kind(p.loss, penalty=p.penalty, alphas=GRID, cv=FOLDS, random_state=SEED)
        return m.fit(p.X, p.y)

    return Contestant(OURS, fit, DEFAULT)


def _their_searches(p: Problem) -> Iterator[Contestant]:
    from sklearn.linear_model import LassoCV, LogisticRegressionCV, RidgeCV

    if p.loss == "logistic":
        for solver in ("lbfgs", "newton-cholesky"):

            def fit(_, tol, solver=solver):
                options = {"l1_ratios": (0.0,), "scoring": "accuracy"}
                options |= {"use_legacy_attributes": False} if _has_legacy() else {}
                m = LogisticRegressionCV(
                    Cs=1 / (GRID * p.n), cv=FOLDS, solver=solver, random_state=SEED, **options
                )
                return m.fit(p.X, p.y)

            yield Contestant(f"LogisticRegressionCV {solver}", fit, DEFAULT)
        return
    if p.penalty == "l1":
        m = LassoCV(alphas=GRID, cv=FOLDS)
    else:
        m = RidgeCV(alphas=GRID * p.n, cv=FOLDS)
    yield Contestant(type(m).__name__, lambda _, tol: m.fit(p.X, p.y), DEFAULT)


def _has_legacy() -> bool:
    """Whether this scikit-learn asks which form of the attributes is wanted."""
    from inspect import signature

    from sklearn.linear_model import LogisticRegressionCV

    return "use_legacy_attributes" in signature(LogisticRegressionCV).parameters
