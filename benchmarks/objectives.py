"""The objective of every class of apcg.linear_model, and of scikit-learn's at a tight tolerance.

    python benchmarks/objectives.py                              # a table in Markdown
    python benchmarks/objectives.py --only LinearSVC --data wine --cells
    APCG_DATA_DIR=... python benchmarks/objectives.py            # with 20 newsgroups

Each is trained raw and scaled, with and without weights. "above" is how far ours is above
scikit-learn's, relative to it, in the worst cell; "below" is how far scikit-learn's is above ours
where that is most. A search is compared at the parameters that it chose, which "chosen" counts as
the same or not.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import sklearn.datasets
import sklearn.linear_model
import sklearn.svm
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from apcg import datasets, linear_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "common"))
from sklearn_objectives import huber, logistic, net, quantile, ridge, svc, svr

LONG = 100_000


def _signed(model, X, y, s):
    """The ridge regression of a classifier: labels -1 and 1."""
    rows = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    return ridge(model, X, np.where(y[:, None] == rows, 1.0, -1.0), s)


def _chosen(objective):
    """The objective of a search, at the parameters that it chose."""

    def found(model, X, y, s):
        for name in ("C", "alpha", "l1_ratio"):
            if hasattr(model, name + "_"):
                own = np.ravel(getattr(model, name + "_"))
                value = float(own[0]) if own[0] is not None else 0.0
                setattr(model, name, 0.0 if np.isnan(value) else value)
        if not hasattr(model, "l1_ratio"):
            model.l1_ratio = 1.0
        return objective(model, X, y, s)

    return found


#: A class, its parameters, those that make scikit-learn's exact, the objective, what data it is for
EXACT = {"solver": "newton-cholesky", "tol": 1e-12}
SEARCH = {"Cs": [0.01, 1.0], "cv": 3, "l1_ratios": (0.0,), "use_legacy_attributes": False,
          "scoring": "neg_log_loss"}  # fmt: skip
CLASSIFIERS = [
    ("LogisticRegression", {}, EXACT, logistic, ""),
    ("LogisticRegression", {"C": 100.0}, EXACT, logistic, "dense"),
    ("LogisticRegression", {"solver": "liblinear"}, {"tol": 1e-10}, logistic, "two"),
    ("LogisticRegression", {"solver": "saga", "l1_ratio": 1.0}, {"tol": 1e-7}, logistic, "scaled"),
    ("LogisticRegression", {"solver": "saga", "l1_ratio": 0.5}, {"tol": 1e-7}, logistic, "scaled"),
    ("LogisticRegressionCV", SEARCH, EXACT, _chosen(logistic), "small"),
    (
        "LogisticRegressionCV",
        SEARCH | {"solver": "liblinear"},
        {"tol": 1e-10},
        _chosen(logistic),
        "two",
    ),
    ("LinearSVC", {}, {"dual": False, "tol": 1e-10}, svc, ""),
    ("LinearSVC", {"loss": "hinge"}, {"tol": 1e-8}, svc, "scaled"),
    ("LinearSVC", {"penalty": "l1", "dual": False}, {"tol": 1e-8}, svc, "scaled"),
    ("RidgeClassifier", {}, {}, _signed, ""),
    ("RidgeClassifierCV", {"alphas": (0.1, 1.0, 10.0)}, {}, _chosen(_signed), "dense"),
]
GRID = {"alphas": [1.0, 0.3, 0.1, 0.03, 0.01], "cv": 3}
REGRESSORS = [
    ("Ridge", {}, {"solver": "svd"}, ridge, ""),
    ("Ridge", {"alpha": 1e-3}, {"solver": "svd"}, ridge, ""),
    ("Ridge", {"positive": True}, {"tol": 1e-12}, ridge, ""),
    ("Ridge", {"alpha": 0.5}, {"solver": "svd"}, ridge, "columns"),
    ("RidgeCV", {"alphas": (0.1, 1.0, 10.0)}, {}, _chosen(ridge), ""),
    ("Lasso", {}, {"tol": 1e-12}, net, ""),
    ("Lasso", {"alpha": 0.01}, {"tol": 1e-12}, net, ""),
    ("Lasso", {"alpha": 0.01, "positive": True}, {"tol": 1e-12}, net, ""),
    ("LassoCV", GRID, {"tol": 1e-12}, _chosen(net), ""),
    ("ElasticNet", {"alpha": 0.01}, {"tol": 1e-12}, net, ""),
    ("ElasticNetCV", GRID | {"l1_ratio": [0.5, 0.9]}, {"tol": 1e-12}, _chosen(net), ""),
    ("LinearSVR", {"epsilon": 1.0}, {"tol": 1e-8}, svr, ""),
    ("LinearSVR", {"loss": "squared_epsilon_insensitive"}, {"dual": False, "tol": 1e-10}, svr, ""),
    ("HuberRegressor", {}, {"tol": 1e-10}, huber, ""),
    ("QuantileRegressor", {"alpha": 0.01, "quantile": 0.8}, {}, quantile, ""),
    ("QuantileRegressor", {"alpha": 0.0}, {}, quantile, ""),
    ("MultiTaskLasso", {"alpha": 0.05}, {"tol": 1e-12}, net, "columns"),
    ("MultiTaskElasticNet", {"alpha": 0.05}, {"tol": 1e-12}, net, "columns"),
    ("MultiTaskLassoCV", GRID, {"tol": 1e-12}, _chosen(net), "columns"),
    ("MultiTaskElasticNetCV", GRID, {"tol": 1e-12}, _chosen(net), "columns"),
]


def problems():
    """Name, X, y, and the classes to train."""
    for name in ("breast_cancer", "iris", "wine", "digits"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        yield f"{name} raw", X, y, CLASSIFIERS
        yield f"{name} scaled", scale(X), y, CLASSIFIERS
    X, y = sklearn.datasets.load_diabetes(return_X_y=True)
    yield "diabetes raw", *sklearn.datasets.load_diabetes(return_X_y=True, scaled=False), REGRESSORS
    yield "diabetes scaled", scale(X), y, REGRESSORS
    path = Path(os.environ.get("APCG_DATA_DIR", ".")) / "news20_multiclass.train.bz2"
    if path.exists():
        found = datasets.load(str(path))
        y = np.asarray(found.y)
        some = np.flatnonzero(y < 4)[:800]
        X, y = sp.csr_matrix(found.X)[some].astype(np.float64), y[some]
        yield "20 newsgroups raw", X, y, CLASSIFIERS
        X = X.copy()
        X.data = np.log1p(X.data)
        X = sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))))
        yield "20 newsgroups scaled", X, y, CLASSIFIERS


def fits(kind, where, X, y):
    """Whether a class is trained on these data."""
    if kind == "dense" or kind == "small":
        return not sp.issparse(X) and (kind == "dense" or "digits" not in where)
    if kind == "scaled":  # elsewhere scikit-learn's solvers take minutes, or do not arrive
        return where in ("iris scaled", "wine scaled")
    return True


def trained(kind, parameters, X, y, s):
    """A model; None if it is refused."""
    model = kind(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = {} if s is None else {"sample_weight": s}
        try:
            return model.fit(X, y, **weights)
        except (ValueError, TypeError):
            return None


def excess(name, parameters, exact, objective, X, y, s):
    """How far ours is above scikit-learn's, None if either refuses; whether both chose the same."""
    home = sklearn.svm if hasattr(sklearn.svm, name) else sklearn.linear_model
    theirs, ours = getattr(home, name), getattr(linear_model, name)
    long = {"max_iter": LONG} if "max_iter" in theirs().get_params() else {}
    if sp.issparse(X) and exact.get("solver") == "newton-cholesky":
        exact = {"solver": "lbfgs", "tol": 1e-9}
        long = {"max_iter": 3000}
    fine = {"tol": 1e-8} if "tol" in theirs().get_params() else {}
    known = trained(theirs, parameters | exact | long, X, y, s)
    found = trained(ours, parameters | fine | long, X, y, s)
    if known is None or found is None:
        return None, True
    each = np.ones(X.shape[0]) if s is None else s
    if hasattr(known, "solver") and hasattr(found, "solver"):
        known.solver = found.solver  # which problem it is, of the intercept
    same = all(
        np.allclose(np.asarray(getattr(known, n), float), np.asarray(getattr(found, n), float),
                    equal_nan=True)
        for n in ("C_", "alpha_", "l1_ratio_") if hasattr(known, n)
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best, ours = objective(known, X, y, each), objective(found, X, y, each)
    return (ours - best) / abs(best), same


def shown(name, parameters):
    """A class and what is not the default, in short."""
    own = {k: v for k, v in parameters.items() if k not in (*SEARCH, *GRID, "alphas")}
    return f"{name}({', '.join(f'{k}={v}' for k, v in own.items())})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", help="a class")
    parser.add_argument("--data", action="append", help="a part of the name of the data")
    parser.add_argument("--cells", action="store_true", help="each cell, as it is found")
    given = parser.parse_args()
    table, rng = {}, np.random.default_rng(0)
    with threadpool_limits(1):
        for where, X, y, classes in problems():
            s = rng.uniform(0.5, 2.0, X.shape[0])
            if given.data and not any(part in where for part in given.data):
                continue
            for name, parameters, exact, objective, kind in classes:
                if (given.only and name not in given.only) or not fits(kind, where, X, y):
                    continue
                own = y
                if kind == "columns":
                    own = np.column_stack([y, y[::-1]])
                elif kind == "two" and len(np.unique(y)) > 2:
                    own = (y == y.max()).astype(int)
                cells = table.setdefault(shown(name, parameters), [])
                for each, what in ((None, ""), (s, ", weights")):
                    began = time.process_time()
                    value, same = excess(name, parameters, exact, objective, X, own, each)
                    if given.cells:
                        told = (
                            "refused"
                            if value is None
                            else f"{value:.1e} {'' if same else 'other choice'}"
                        )
                        seconds = time.process_time() - began
                        print(
                            f"{shown(name, parameters)} {where}{what}: {told} ({seconds:.1f} s)",
                            flush=True,
                        )
                    if value is not None:
                        cells.append((value, where + what, same))
    print("| class | cells | above, at most | where | below, at most | chosen |")
    print("|---|---|---|---|---|---|")
    for name, cells in table.items():
        if cells:
            worst, best = max(cells), min(cells)
            chosen = f"{sum(c[2] for c in cells)} of {len(cells)}" if "CV" in name else ""
            above, below = max(worst[0], 0.0), max(-best[0], 0.0)
            told = f"{above:.0e} | {worst[1]} | {below:.0e} | {chosen}"
            print(f"| {name} | {len(cells)} | {told} |")


if __name__ == "__main__":
    main()
