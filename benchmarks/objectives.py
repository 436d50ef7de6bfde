"""The objective of every class of apcg.linear_model, and of scikit-learn's at a tight tolerance.

    python benchmarks/objectives.py                              # a table in Markdown
    python benchmarks/objectives.py --only LinearSVC --data wine
    APCG_DATA_DIR=... python benchmarks/objectives.py            # with 20 newsgroups

Each is trained raw and scaled, with and without weights. A number of the table is how far ours is
above scikit-learn's, relative to it; below zero scikit-learn's is the worse one. At the end is the
largest one.
"""

import argparse
import os
import sys
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


#: A class, its parameters, those that make scikit-learn's exact, the objective
CLASSIFIERS = [
    ("LogisticRegression", {}, {"solver": "newton-cholesky", "tol": 1e-12}, logistic),
    ("LogisticRegression", {"solver": "liblinear"}, {"tol": 1e-10}, logistic),
    ("LogisticRegression", {"solver": "saga", "l1_ratio": 1.0}, {"tol": 1e-8}, logistic),
    ("LogisticRegression", {"C": 100.0}, {"solver": "newton-cholesky", "tol": 1e-12}, logistic),
    ("LinearSVC", {}, {"dual": False, "tol": 1e-10}, svc),
    ("LinearSVC", {"loss": "hinge"}, {"tol": 1e-8}, svc),
    ("LinearSVC", {"penalty": "l1", "dual": False}, {"tol": 1e-8}, svc),
    ("RidgeClassifier", {}, {"solver": "auto"}, _signed),
]
REGRESSORS = [
    ("Ridge", {}, {"solver": "svd"}, ridge),
    ("Ridge", {"alpha": 1e-3}, {"solver": "svd"}, ridge),
    ("Lasso", {}, {"tol": 1e-12}, net),
    ("Lasso", {"alpha": 0.01}, {"tol": 1e-12}, net),
    ("ElasticNet", {"alpha": 0.01}, {"tol": 1e-12}, net),
    ("LinearSVR", {"epsilon": 1.0}, {"tol": 1e-8}, svr),
    ("LinearSVR", {"loss": "squared_epsilon_insensitive"}, {"dual": False, "tol": 1e-10}, svr),
    ("HuberRegressor", {}, {"tol": 1e-10}, huber),
    ("QuantileRegressor", {"alpha": 0.01, "quantile": 0.8}, {}, quantile),
    ("MultiTaskLasso", {"alpha": 0.05}, {"tol": 1e-12}, net),
    ("MultiTaskElasticNet", {"alpha": 0.05}, {"tol": 1e-12}, net),
]


def problems():
    """Name, X, y, and the classes to train."""
    for name in ("breast_cancer", "digits", "iris", "wine"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        yield f"{name} raw", X, y, CLASSIFIERS
        yield f"{name} scaled", scale(X), y, CLASSIFIERS
    X, y = sklearn.datasets.load_diabetes(return_X_y=True)
    yield "diabetes raw", *sklearn.datasets.load_diabetes(return_X_y=True, scaled=False), REGRESSORS
    yield "diabetes scaled", scale(X), y, REGRESSORS
    path = Path(os.environ.get("APCG_DATA_DIR", ".")) / "news20_multiclass.train.bz2"
    if path.exists():
        found = datasets.load(str(path))
        X, y = sp.csr_matrix(found.X)[:2000], np.asarray(found.y)[:2000]
        yield "20 newsgroups raw", X, y, CLASSIFIERS
        X = X.astype(np.float64)
        X.data = np.log1p(X.data)
        X = sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))))
        yield "20 newsgroups scaled", X, y, CLASSIFIERS


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
    """How far ours is above scikit-learn's, or None if either refuses."""
    home = sklearn.svm if hasattr(sklearn.svm, name) else sklearn.linear_model
    theirs, ours = getattr(home, name), getattr(linear_model, name)
    long = {"max_iter": LONG} if "max_iter" in theirs().get_params() else {}
    if sp.issparse(X) and exact.get("solver") == "newton-cholesky":
        exact = {"solver": "lbfgs", "tol": 1e-8}
        long = {"max_iter": 2000}
    fine = {"tol": 1e-8} if "tol" in theirs().get_params() else {}
    known = trained(theirs, parameters | exact | long, X, y, s)
    found = trained(ours, parameters | fine | long, X, y, s)
    if known is None or found is None:
        return None
    each = np.ones(X.shape[0]) if s is None else s
    if hasattr(known, "solver") and hasattr(found, "solver"):
        known.solver = found.solver  # which problem it is, of the intercept
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best, ours = objective(known, X, y, each), objective(found, X, y, each)
    return (ours - best) / abs(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", help="a class")
    parser.add_argument("--data", action="append", help="a part of the name of the data")
    given = parser.parse_args()
    worst, rng = -np.inf, np.random.default_rng(0)
    print("| class | data | without weights | with weights |\n|---|---|---|---|")
    with threadpool_limits(1):
        for where, X, y, classes in problems():
            if given.data and not any(part in where for part in given.data):
                continue
            s = rng.uniform(0.5, 2.0, X.shape[0])
            for name, parameters, exact, objective in classes:
                if given.only and name not in given.only:
                    continue
                if ("hinge" in parameters.values() or parameters.get("l1_ratio")) and (
                    "raw" in where or "news" in where
                ):
                    continue  # scikit-learn's solver does not arrive there
                if sp.issparse(X) and parameters.get("C"):
                    continue
                Y = np.column_stack([y, y[::-1]]) if name.startswith("MultiTask") else y
                told = parameters, exact, objective, X, Y
                cells = [excess(name, *told, each) for each in (None, s)]
                worst = max([worst, *(c for c in cells if c is not None)])
                text = ["refused" if c is None else f"{c:.0e}" for c in cells]
                what = ", ".join(f"{k}={v}" for k, v in parameters.items())
                print(f"| {name}({what}) | {where} | {text[0]} | {text[1]} |", flush=True)
    print(f"\nlargest: {worst:.1e}")


if __name__ == "__main__":
    main()
