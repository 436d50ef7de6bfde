"""The solvers that peers.py compares, each as a function of a tolerance.

Every solver minimises P(w) = mean loss + (lambda/2)|w|^2 without intercept; the comments say how
its own parameters relate to lambda. Anything done once for the data (LIBLINEAR's own format, say)
is done before the clock starts. A package that cannot be imported is left out, with the reason.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

LOSSES = ("logistic", "squared_hinge", "hinge", "smoothed_hinge")
PACKAGES = ("apcg", "liblinear", "sklearn", "cyanure", "skglm", "snapml", "celer")


@dataclass
class Contestant:
    """w = fit(tol), and the tolerances to try, from loose to tight."""

    name: str
    fit: Callable[[float], np.ndarray]
    tolerances: np.ndarray


def _grid(loose: float, tight: float) -> np.ndarray:
    """Two or three to a factor of ten."""
    count = round(2.5 * np.log10(loose / tight)) + 1
    return np.geomspace(loose, tight, count)


def contestants(package: str, X, y, loss: str, lam: float) -> Iterator[Contestant]:
    """Those of a package that apply to this loss; ImportError if it is not there."""
    makers = {
        "apcg": _apcg,
        "liblinear": _liblinear,
        "sklearn": _sklearn,
        "cyanure": _cyanure,
        "skglm": _skglm,
        "snapml": _snapml,
        "celer": _celer,
    }
    yield from makers[package](X, y, loss, lam)


def _apcg(X, y, loss, lam):
    from apcg import ERM, solve

    def fit(tol):
        problem = ERM(X, y, loss, "l2", lam)
        return solve(problem, tol=tol, max_epochs=100_000, random_state=0).w

    yield Contestant("apcg", fit, _grid(1e-3, 1e-7))


def _liblinear(X, y, loss, lam):
    """(1/2)|w|^2 + C sum of losses, so C = 1/(lambda n); its squared hinge is without a half."""
    from liblinear.liblinearutil import problem, train

    solvers = {
        "logistic": {"primal": 0, "dual": 7},
        "squared_hinge": {"primal": 2, "dual": 1},
        "hinge": {"dual": 3},
    }.get(loss, {})
    prob = problem(y, X) if solvers else None
    for side, s in solvers.items():

        def fit(tol, s=s):
            options = f"-s {s} -c {1 / (lam * len(y))!r} -e {float(tol)!r} -B -1 -q"
            model = train(prob, options)
            w, _ = model.get_decfun()
            return np.resize(w, X.shape[1]) * model.get_labels()[0]

        yield Contestant(f"liblinear {side}", fit, _grid(1e-1, 1e-9))


def _sklearn(X, y, loss, lam):
    """C = 1/(lambda n); LinearSVC and solver="liblinear" are LIBLINEAR inside."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    solvers = ["lbfgs", "newton-cg", "saga"] if loss == "logistic" else []
    if loss == "logistic" and X.shape[1] < 1000:
        solvers.append("newton-cholesky")
    for solver in solvers:

        def fit(tol, solver=solver):
            model = LogisticRegression(
                C=1 / (lam * len(y)),
                tol=tol,
                max_iter=100_000,
                solver=solver,
                fit_intercept=False,
                random_state=0,
            )
            return model.fit(X, y).coef_[0]

        yield Contestant(f"scikit-learn {solver}", fit, _grid(1e-1, 1e-10))
    for dual in (True, False) if loss == "squared_hinge" else ():

        def svc(tol, dual=dual):
            C = 1 / (lam * len(y))
            model = LinearSVC(
                C=C, tol=tol, max_iter=100_000, dual=dual, fit_intercept=False, random_state=0
            )
            return model.fit(X, y).coef_[0]

        side = "dual" if dual else "primal"
        yield Contestant(f"scikit-learn LinearSVC {side}", svc, _grid(1e-1, 1e-9))


def _cyanure(X, y, loss, lam):
    """Mean loss + (lambda_1/2)|w|^2; its squared hinge has a half.

    tol is its relative duality gap. The solver that it chooses by itself (Catalyst-MISO here) gives
    up on some problems, with a warning of numerical instability though all is in double precision
    (rcv1, squared hinge, lambda = 1e-6: at 2e-3); so two of its others are entered as well.
    """
    from cyanure.estimators import Classifier

    kind = {"logistic": "logistic", "squared_hinge": "sqhinge"}.get(loss)
    for solver in ("auto", "qning-miso", "acc-svrg") if kind else ():

        def fit(tol, solver=solver):
            model = Classifier(
                loss=kind,
                penalty="l2",
                lambda_1=lam / (2 if kind == "sqhinge" else 1),
                tol=tol,
                max_iter=100_000,
                fit_intercept=False,
                verbose=False,
                solver=solver,
                n_threads=1,
                duality_gap_interval=5,
            )
            return np.ravel(model.fit(X, y).get_weights())

        yield Contestant(f"cyanure {solver}", fit, _grid(1e-1, 1e-9))


def _skglm(X, y, loss, lam):
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    if loss != "logistic":
        return

    def fit(tol):
        return LBFGS(tol=tol, max_iter=100_000).solve(columns, y, datafit, penalty)[0]

    columns = sp.csc_matrix(X)
    datafit, penalty = compiled_clone(Logistic()), compiled_clone(L2(lam))
    fit(1.0)  # compiles
    yield Contestant("skglm lbfgs", fit, _grid(1e-3, 1e-11))


def _snapml(X, y, loss, lam):
    """(regularizer/2)|w|^2 + sum of losses, so regularizer = lambda n."""
    import snapml

    common = {"regularizer": lam * len(y), "max_iter": 100_000, "fit_intercept": False, "n_jobs": 1}

    def fit(tol):
        if loss == "logistic":
            model = snapml.LogisticRegression(tol=tol, dual=True, random_state=0, **common)
        else:
            model = snapml.SupportVectorMachine(loss=loss, tol=tol, random_state=0, **common)
        model.fit(X, y)
        return np.ravel(model.coef_).astype(np.float64)

    if loss in ("logistic", "squared_hinge", "hinge"):
        yield Contestant("snapml", fit, _grid(1e-1, 1e-9))


def _celer(X, y, loss, lam):
    """It has L1 and group penalties only."""
    import celer  # noqa: F401

    return iter(())


def primal(X, y, loss, lam, w) -> float:
    """P(w), by none of the solvers."""
    m = y * (X @ w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = {
            "logistic": lambda: np.logaddexp(0.0, -m),
            "squared_hinge": lambda: np.maximum(0.0, 1 - m) ** 2,
            "hinge": lambda: np.maximum(0.0, 1 - m),
            "smoothed_hinge": lambda: np.where(m < 0, 0.5 - m, np.maximum(0.0, 1 - m) ** 2 / 2),
        }[loss]()
    return float(values.mean() + lam / 2 * (w @ w))
