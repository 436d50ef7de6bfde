"""Default against default: the classes of apcg.linear_model and scikit-learn's own.

    python benchmarks/linear_model.py                              # a table in Markdown
    python benchmarks/linear_model.py --only Lasso --data diabetes
    APCG_DATA_DIR=... python benchmarks/linear_model.py            # with 20 newsgroups, California

Both are called with their default parameters, in one process and one thread, in turn. A fit that is
short is repeated to 30 ms; the time is the best of several such rounds, in milliseconds of the
processor for one fit. In brackets is how far the objective of each
is above the best one seen, relative to that; "!" marks a ConvergenceWarning. At the end are the
geometric means of the ratios, ours over scikit-learn's, by size of the data, and the worst cells.
"""

import argparse
import math
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
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from apcg import datasets, linear_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "common"))
from sklearn_objectives import huber, logistic, net, quantile, ridge, svc, svr

#: The classes, with what makes their fits comparable
CLASSIFIERS = {"LogisticRegression": logistic, "LinearSVC": svc, "RidgeClassifier": None,
               "RidgeClassifierCV": None, "LogisticRegressionCV": None}  # fmt: skip
REGRESSORS = {"Ridge": ridge, "Lasso": net, "ElasticNet": net, "LinearSVR": svr,
              "HuberRegressor": huber, "QuantileRegressor": quantile, "MultiTaskLasso": net,
              "MultiTaskElasticNet": net, "LassoCV": None, "ElasticNetCV": None, "RidgeCV": None,
              "MultiTaskLassoCV": None, "MultiTaskElasticNetCV": None}  # fmt: skip
#: To keep deprecations of the defaults quiet
QUIET = {"LogisticRegressionCV": {"l1_ratios": (0,), "scoring": "neg_log_loss",
                                  "use_legacy_attributes": False}}  # fmt: skip
#: Samples times features at most, where scikit-learn takes so long that the others say enough
MOST = {"LogisticRegressionCV": 40_000, "QuantileRegressor": 5_000}
#: A round lasts so long, in milliseconds, and all rounds of a cell so long at most.
ROUND, LONGEST = 30, 10_000
#: The groups of the summary: name, whether data of n x d belong to it, the largest ratio wanted
GROUPS = [("tiny", lambda n, d: n * d <= 1000, 1.3),
          ("below 1,000 samples", lambda n, d: n < 1000, 1.3),
          ("1,000 samples and more", lambda n, d: n >= 1000, 1.0)]  # fmt: skip


def classification():
    """Name, X and y."""
    for where, X, y in generated():
        yield where, X, (y > np.median(y)).astype(int)
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        short = name.removeprefix("breast_")
        yield (f"{short} raw" if name in ("wine", "breast_cancer") else short), X, y
        if name in ("wine", "breast_cancer"):
            yield f"{short} scaled", scale(X), y
    folder = os.environ.get("APCG_DATA_DIR")
    if folder and (Path(folder) / "news20_multiclass.train.bz2").exists():
        found = datasets.load(str(Path(folder) / "news20_multiclass.train.bz2"))
        X, y = sp.csr_matrix(found.X)[:5000], np.asarray(found.y)[:5000]
        X.data = np.log1p(X.data)
        X = sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))))
        yield "news20, 20 classes", X, y
        yield "news20, two classes", X, (y < 10).astype(int)


def regression():
    """Name, X and y."""
    yield from generated()
    X, y = np.random.default_rng(0).standard_normal((200, 5000)), np.arange(200) % 7
    yield "200x5,000", X, X[:, :5].sum(axis=1) + y
    X, y = sklearn.datasets.load_diabetes(return_X_y=True)
    yield "diabetes", X, y
    yield "diabetes scaled", scale(X), y
    path = Path(os.environ.get("APCG_DATA_DIR", ".")) / "cal_housing.csv.bz2"
    if path.exists():
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        yield "California", scale(table[:, :-1]), table[:, -1] / 1e5


def generated():
    """Name, X and y of all sizes: normal numbers, raw ones, and counts of words by a power law."""
    rng = np.random.default_rng(0)
    for name, n, d in (("tiny 100x10", 100, 10), ("20,000x8", 20_000, 8),
                       ("20,000x50", 20_000, 50), ("100,000x20", 100_000, 20)):  # fmt: skip
        X = rng.standard_normal((n, d))
        y = X[:, :5] @ rng.standard_normal(5) + rng.standard_normal(n)
        yield name, X, y
        if d == 8:
            yield f"{name} raw", X * 10.0 ** np.arange(-3, 5) + 3, y
    n, d, words = 3000, 8000, 60
    places = (d ** rng.random((n, words))).astype(int) - 1
    X = sp.csr_matrix((np.ones(n * words), (np.repeat(np.arange(n), words), places.ravel())))
    X = sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))))
    yield "text", X, X @ rng.standard_normal(X.shape[1]) + 0.1 * rng.standard_normal(n)


def timed(make, X, y, repeat):
    """CPU milliseconds of a fit, one of so many; the model, and whether it warned."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        began = time.process_time()
        for _ in range(repeat):
            model = make().fit(X, y)
        took = 1e3 * (time.process_time() - began) / repeat
    return took, model, any(issubclass(w.category, ConvergenceWarning) for w in told)


def race(name, X, y, rounds):
    """Best times of scikit-learn and ours, their models, whether they warned."""
    home = sklearn.svm if hasattr(sklearn.svm, name) else sklearn.linear_model
    kinds = getattr(home, name), getattr(linear_model, name)
    makers = [lambda c=c: c(**QUIET.get(name, {})) for c in kinds]
    best, found, warned = [np.inf, np.inf], [None, None], [False, False]
    spent, repeat = 0.0, [1, 1]
    for _ in range(1 + rounds):
        for k, make in enumerate(makers):
            took, found[k], warned[k] = timed(make, X, y, repeat[k])
            best[k] = min(best[k], took)
            spent += took * repeat[k]
            repeat[k] = math.ceil(ROUND / best[k])
        if spent > LONGEST:
            break
    return best, found, warned


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", help="a class")
    parser.add_argument("--data", action="append", help="a part of the name of the data")
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    cells = []
    print("| class | data | scikit-learn, ms | apcg, ms | ratio |\n|---|---|---|---|---|")
    with threadpool_limits(1):
        for classes, source in ((CLASSIFIERS, classification), (REGRESSORS, regression)):
            for where, X, y in source():
                if given.data and not any(part in where for part in given.data):
                    continue
                for name, objective in classes.items():
                    if given.only and name not in given.only:
                        continue
                    if X.shape[0] * X.shape[1] > MOST.get(name, math.inf):
                        continue
                    many = name.startswith("MultiTask")
                    if sp.issparse(X) and (many or name == "RidgeCV"):
                        continue  # theirs cannot, or makes a matrix of all samples
                    Y = np.column_stack([y, y[::-1]]) if many else y
                    best, found, warned = race(name, X, Y, given.rounds)
                    line(name, where, best, found, warned, objective, X, Y)
                    cells.append((*X.shape, best[1] / best[0], f"{name} {where}"))
    for group, belongs, most in GROUPS:
        summary(group, [c[2:] for c in cells if belongs(*c[:2])], most)


def summary(group, cells, most):
    """The geometric mean of some ratios, and which are above the largest that is wanted."""
    if cells:
        ratios = [ratio for ratio, _ in cells]
        mean = np.exp(np.mean(np.log(ratios)))
        above = [f"{name} {ratio:.2f}" for ratio, name in sorted(cells)[::-1] if ratio > most]
        print(f"\n{group}: {len(cells)} cells, geometric mean {mean:.2f}, from {min(ratios):.2f} "
              f"to {max(ratios):.2f}; above {most}: {', '.join(above) or 'none'}")  # fmt: skip


def line(name, where, best, found, warned, objective, X, y):
    """One row of the table."""
    excess = ["", ""]
    if objective is not None:
        values = [objective(m, X, y, np.ones(X.shape[0])) for m in found]
        least = min(values)
        excess = [f" ({(v - least) / abs(least):.0e})" if v > least else "" for v in values]
    marks = ["!" if w else "" for w in warned]
    cells = [f"{b:.2f}{m}{e}" for b, m, e in zip(best, marks, excess, strict=True)]
    print(f"| {name} | {where} | {cells[0]} | {cells[1]} | {best[1] / best[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
