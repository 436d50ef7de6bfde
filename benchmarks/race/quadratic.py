"""Peers for an L2 penalty without intercept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from contestants import MANY, SEED, Contestant, ladder
from problems import Problem

#: With more features than this, methods that keep a d x d matrix do not take part.
WIDE = 2000


def liblinear(p: Problem) -> Iterator[Contestant]:
    """(1/2)|w|^2 + C sum of losses; its squared hinge is without a half too."""
    from liblinear.liblinearutil import problem, train

    codes = {
        "logistic": {"primal": 0, "dual": 7},
        "squared_hinge": {"primal": 2, "dual": 1},
        "hinge": {"dual": 3},
    }.get(p.loss, {})
    for side, code in codes.items():

        def fit(prepared, tol, code=code):
            model = train(prepared, f"-s {code} -c {p.C!r} -e {tol!r} -B -1 -q")
            w = np.zeros(p.d)  # trailing features without a number are not in its model
            found = model.get_decfun()[0]
            w[: len(found)] = found[: p.d]
            return w * model.get_labels()[0]

        yield Contestant(f"LIBLINEAR {side}", fit, ladder(10.0, 1e-9), lambda: problem(p.y, p.X))


def sklearn(p: Problem) -> Iterator[Contestant]:
    """C sum of losses + (1/2)|w|^2, and for Ridge |X w - y|^2 + lambda n |w|^2."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.svm import LinearSVC

    common = {"fit_intercept": False, "random_state": SEED}
    wide = p.d > WIDE
    if p.loss == "logistic":
        # newton-cg and sag are never near the best on text
        slow = () if wide else ("newton-cg", "newton-cholesky", "sag")
        for solver in ("lbfgs", "saga", "liblinear", *slow):

            def fit(_, tol, solver=solver):
                m = LogisticRegression(C=p.C, tol=tol, max_iter=MANY, solver=solver, **common)
                return m.fit(p.X, p.y).coef_[0]

            yield Contestant(f"LogisticRegression {solver}", fit, ladder(1.0, 1e-10))
    if p.loss in ("hinge", "squared_hinge"):
        for dual in (True,) if p.loss == "hinge" else (True, False):

            def fit(_, tol, dual=dual):
                m = LinearSVC(C=p.C, loss=p.loss, dual=dual, tol=tol, max_iter=10 * MANY, **common)
                return m.fit(p.X, p.y).coef_[0]

            name = f"LinearSVC {'dual' if dual else 'primal'}"
            yield Contestant(name, fit, ladder(10.0, 1e-9))
    if p.loss == "squared":
        direct = () if min(p.n, p.d) > 2 * WIDE else ("cholesky",)
        for solver in ("sparse_cg", "lsqr", "sag", "saga", *direct):

            def fit(_, tol, solver=solver):
                m = Ridge(alpha=p.lam * p.n, solver=solver, tol=tol, max_iter=MANY, **common)
                return m.fit(p.X, p.y).coef_

            steps = (1e-4,) if solver == "cholesky" else ladder(1.0, 1e-12)
            yield Contestant(f"Ridge {solver}", fit, steps)


def cyanure(p: Problem) -> Iterator[Contestant]:
    """Mean loss + (lambda_1/2)|w|^2; its squared hinge has a half.

    What it chooses by itself gives up on some problems, so others are entered by name.
    """
    from cyanure.estimators import Classifier, Regression

    kind = {"logistic": "logistic", "squared_hinge": "sqhinge", "squared": "square"}.get(p.loss)
    solvers = ("auto", "qning-miso")
    if p.d <= WIDE or p.loss == "squared":
        solvers += ("acc-svrg", "qning-ista")
    for solver in solvers if kind else ():

        def fit(_, tol, solver=solver):
            options = {
                "penalty": "l2",
                "lambda_1": p.lam / (2 if kind == "sqhinge" else 1),
                "tol": tol,
                "max_iter": MANY,
                "fit_intercept": False,
                "verbose": False,
                "solver": solver,
                "n_threads": 1,
                "duality_gap_interval": 5,
            }
            m = Regression(**options) if kind == "square" else Classifier(loss=kind, **options)
            return np.ravel(m.fit(p.X, p.y).get_weights())

        yield Contestant(f"cyanure {solver}", fit, ladder(1.0, 1e-9))


def snapml(p: Problem) -> Iterator[Contestant]:
    """(regularizer/2)|w|^2 + sum of losses."""
    import snapml as package

    options = {
        "regularizer": p.lam * p.n,
        "max_iter": MANY,
        "fit_intercept": False,
        "n_jobs": 1,
        "random_state": SEED,
    }
    make = {
        "logistic": lambda tol: package.LogisticRegression(dual=True, tol=tol, **options),
        "squared": lambda tol: package.LinearRegression(dual=True, tol=tol, **options),
        "hinge": lambda tol: package.SupportVectorMachine(loss="hinge", tol=tol, **options),
        "squared_hinge": lambda tol: package.SupportVectorMachine(
            loss="squared_hinge", tol=tol, **options
        ),
    }.get(p.loss)

    def fit(_, tol):
        m = make(tol)
        m.fit(p.X, p.y)
        return np.ravel(m.coef_).astype(np.float64)

    if make:
        yield Contestant("snapml", fit, ladder(1.0, 1e-9))


def skglm(p: Problem) -> Iterator[Contestant]:
    """L-BFGS on the logistic loss, compiled by numba at the first fit."""
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    def prepare():
        return p.columns(), compiled_clone(Logistic()), compiled_clone(L2(p.lam))

    def fit(prepared, tol):
        columns, datafit, penalty = prepared
        return LBFGS(tol=tol, max_iter=MANY).solve(columns, p.y, datafit, penalty)[0]

    if p.loss == "logistic" and p.d <= WIDE:
        yield Contestant("skglm L-BFGS", fit, ladder(0.1, 1e-11), prepare)


def glum(p: Problem) -> Iterator[Contestant]:
    """Mean loss + (alpha/2)|w|^2, labels 0 and 1."""
    import glum as package

    def fit(X, tol):
        m = package.GeneralizedLinearRegressor(
            family="binomial",
            alpha=p.lam,
            l1_ratio=0,
            fit_intercept=False,
            gradient_tol=tol,
            max_iter=1000,
        )
        return m.fit(X, (p.y + 1) / 2).coef_

    if p.loss == "logistic" and p.d <= WIDE // 2:
        yield Contestant("glum", fit, ladder(0.1, 1e-9), p.columns)


def scipy(p: Problem) -> Iterator[Contestant]:
    """L-BFGS-B, for the one loss that no package has."""
    from scipy.optimize import minimize

    def prepare():
        return p.X.T.tocsr() if sp.issparse(p.X) else p.X.T

    def fit(XT, tol):
        def at(w):
            m = p.y * (p.X @ w)
            slope = np.clip(m - 1, -1.0, 0.0)
            value = np.where(m < 0, 0.5 - m, slope * slope / 2).mean()
            return value + p.lam / 2 * (w @ w), XT @ (p.y * slope) / p.n + p.lam * w

        options = {"maxiter": MANY, "maxfun": 2 * MANY, "ftol": 0.0, "gtol": tol}
        return minimize(at, np.zeros(p.d), jac=True, method="L-BFGS-B", options=options).x

    if p.loss == "smoothed_hinge":
        yield Contestant("SciPy L-BFGS-B", fit, ladder(1e-2, 1e-11), prepare)


#: By the package that each needs.
MAKERS = {
    "liblinear": liblinear,
    "sklearn": sklearn,
    "cyanure": cyanure,
    "snapml": snapml,
    "skglm": skglm,
    "glum": glum,
    "scipy": scipy,
}
