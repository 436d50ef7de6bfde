"""Many classes: seconds to the same suboptimality, against other solvers of the same problem.

    pip install 'apcg[peers]'
    python benchmarks/multiclass.py --data news20_multiclass digits --alpha 1e-3 1/n
    python benchmarks/multiclass.py --loss "ovr logistic" --peers LIBLINEAR snapml
    python benchmarks/multiclass.py --data images:10000:200:10 text:15000:40000:35 \
        onehot:15000:16:26 --alpha 1e-4

P(W) = mean loss + (lambda/2)|W|^2, no intercept, is computed here from the W of each solver.
Each has the loosest tolerance of its grid looked up at which P(W) - P* <= eps P*, and is then timed
with that: one process, one thread, all solvers in turn, best of several, in seconds of the
processor. A solver is given up when one run takes longer than --limit. P* is from a run of ours to
a relative duality gap of 1e-9. The ratios are our time over the best of the others: "apcg" is
asked for a certified gap of eps, "apcg by P" has its tolerance looked up as the others have.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from apcg import ERM, datasets, solve


def load(name):
    """X and labels 0..K-1."""
    if name.startswith("images:"):
        return images(*map(int, name.split(":")[1:]))
    if name.startswith("text:"):
        return text(*map(int, name.split(":")[1:]))
    if name.startswith("onehot:"):
        return onehot(*map(int, name.split(":")[1:]))
    if name in ("digits", "iris", "wine"):
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return X / np.abs(X).max(), y
    found = datasets.load(str(Path(os.environ.get("APCG_DATA_DIR", ".")) / f"{name}.train.bz2"))
    return sp.csr_matrix(found.X), np.unique(found.y, return_inverse=True)[1]


def images(n, d, K):
    """Dense rows of classes that overlap, pixels in [0, 1] that depend on each other."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((d // 8, d)) / np.sqrt(d // 8)
    centres = 0.7 * rng.standard_normal((K, d // 8))
    y = rng.integers(K, size=n)
    X = (centres[y] + rng.standard_normal((n, d // 8))) @ factors
    return np.clip(0.5 + 0.5 * X + 0.1 * rng.standard_normal((n, d)), 0.0, 1.0), y


def text(n, d, K):
    """Counts of words by Zipf's law, some of them likelier in a class, log-scaled, unit rows."""
    rng = np.random.default_rng(0)
    rank = np.arange(1, d + 1)
    y = rng.integers(K, size=n)
    rows, columns = [], []
    chance = 1 / rank
    own = [chance * np.where(rng.random(d) < 0.02, 8.0, 1.0) for _ in range(K)]
    own = [np.cumsum(c / c.sum()) for c in own]
    for i in range(n):
        words = np.searchsorted(own[y[i]], rng.random(rng.integers(40, 300)))
        columns.append(words)
        rows.append(np.full(words.size, i))
    rows, columns = np.concatenate(rows), np.minimum(np.concatenate(columns), d - 1)
    X = sp.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(n, d))
    X.data = 1 + np.log(X.data)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / norms) @ X), y


def onehot(n, columns, K):
    """One of 16 values in each of some columns, which depend on the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    chances = rng.dirichlet(np.full(16, 0.5), size=(K, columns))
    u = rng.random((n, columns, 1))
    values = np.minimum((u > np.cumsum(chances[y], axis=2)).sum(axis=2), 15)
    places = (values + 16 * np.arange(columns)).ravel()
    start = np.arange(0, n * columns + 1, columns)
    return sp.csr_matrix((np.ones(places.size), places, start), shape=(n, 16 * columns)), y


def ours(X, y, loss, lam):
    def fit(tol):
        problem = ERM(X, y, loss, "l2", lam)  # what it does to the data is in its time
        return solve(problem, tol=tol, max_epochs=10**5, random_state=0).w

    return fit


def scikit(solver):
    def make(X, y, loss, lam):
        from sklearn.linear_model import LogisticRegression

        def fit(tol):
            # saga counts passes; the others stop by the gradient
            stop = {"tol": 1e-12, "max_iter": round(1 / tol)} if solver == "saga" else {
                "tol": tol, "max_iter": 10**5}  # fmt: skip
            model = LogisticRegression(
                C=1 / (lam * len(y)), solver=solver, fit_intercept=False, random_state=0, **stop
            )
            return model.fit(X, y).coef_.T

        return fit

    return make


def cyanure(solver):
    def make(X, y, loss, lam):
        from cyanure.estimators import Classifier

        def fit(tol):
            model = Classifier(
                loss="multiclass-logistic", penalty="l2", lambda_1=lam, solver=solver, tol=tol,
                max_iter=2000, duality_gap_interval=5, fit_intercept=False, verbose=False,
                n_threads=1)  # fmt: skip
            W = np.asarray(model.fit(X, y).get_weights())
            return W if W.shape[0] == X.shape[1] else W.T

        return fit

    return make


def liblinear(X, y, loss, lam):
    from liblinear.liblinearutil import parameter, problem, train

    data = problem(y, sp.csr_matrix(X))

    def fit(tol):
        model = train(data, parameter(f"-s 4 -q -e {tol} -c {1 / (lam * len(y))}"))
        order = np.argsort(model.get_labels())
        w = np.ctypeslib.as_array(model.w, (X.shape[1] * len(order),))
        return w.reshape(X.shape[1], -1)[:, order].copy()

    return fit


def ours_ovr(X, y, loss, lam):
    from apcg import APCGClassifier

    def fit(tol):
        model = APCGClassifier(
            loss, multi_class="ovr", alpha=lam, tol=tol, fit_intercept=False, max_epochs=10**5,
            random_state=0)  # fmt: skip
        return model.fit(X, y).coef_.T

    return fit


def liblinear_ovr(X, y, loss, lam):
    from liblinear.liblinearutil import parameter, problem, train

    data = problem(y, sp.csr_matrix(X))
    kind = {"logistic": 7, "squared_hinge": 1, "hinge": 3}[loss]

    def fit(tol):
        model = train(data, parameter(f"-s {kind} -q -e {tol} -c {1 / (lam * len(y))}"))
        order = np.argsort(model.get_labels())
        w = np.ctypeslib.as_array(model.w, (X.shape[1] * len(order),))
        return w.reshape(X.shape[1], -1)[:, order].copy()

    return fit


def linear_svc(X, y, loss, lam):
    from sklearn.svm import LinearSVC

    def fit(tol):
        model = LinearSVC(
            loss=loss, C=1 / (lam * len(y)), tol=tol, fit_intercept=False, random_state=0,
            max_iter=10**5)  # fmt: skip
        return model.fit(X, y).coef_.T

    return fit


def snapml(X, y, loss, lam):
    import snapml as snap

    def fit(tol):
        options = {"regularizer": lam * len(y), "max_iter": 10**5, "fit_intercept": False,
                   "n_jobs": 1, "tol": tol, "random_state": 0}  # fmt: skip
        if loss == "logistic":
            model = snap.LogisticRegression(dual=True, **options)
        else:
            model = snap.SupportVectorMachine(loss=loss, **options)
        return np.asarray(model.fit(X, y).coef_, dtype=float).reshape(-1, X.shape[1]).T

    return fit


TIGHT = np.geomspace(1e-1, 1e-9, 17)
#: ours with the loosest tolerance at which P is low enough, as the others have it
BY_P = "apcg by P"
CONTESTANTS = {
    "multinomial": {
        "apcg": (ours, None),
        BY_P: (ours, TIGHT),
        "lbfgs": (scikit("lbfgs"), TIGHT),
        "newton-cg": (scikit("newton-cg"), TIGHT),
        "newton-cholesky": (scikit("newton-cholesky"), TIGHT),
        "saga": (scikit("saga"), 1 / np.array([3, 5, 8, 12, 20, 35, 60, 100, 200, 400])),
        "cyanure": (cyanure("auto"), TIGHT),
        "catalyst-miso": (cyanure("catalyst-miso"), TIGHT),
    },
    "multiclass_hinge": {
        "apcg": (ours, None),
        BY_P: (ours, TIGHT),
        "LIBLINEAR -s 4": (liblinear, np.geomspace(1, 1e-6, 19)),
    },
    **{
        f"ovr {loss}": {
            "apcg": (ours_ovr, None),
            BY_P: (ours_ovr, TIGHT),
            "LIBLINEAR": (liblinear_ovr, np.geomspace(1, 1e-6, 13)),
            **(
                {} if loss == "logistic" else {"LinearSVC": (linear_svc, np.geomspace(1, 1e-6, 13))}
            ),
            "snapml": (snapml, np.geomspace(1, 1e-6, 13)),
        }
        for loss in ("logistic", "squared_hinge", "hinge")
    },
}


def seconds(fit, tol):
    start = time.process_time()
    W = fit(tol)
    return time.process_time() - start, W


def look_up(fit, grid, problem, aim, limit):
    """The loosest tolerance that gives P(W) <= aim; None if there is none within the limit."""
    for tol in grid:
        taken, W = seconds(fit, tol)
        if problem.primal(np.ascontiguousarray(W, dtype=np.float64)) <= aim:
            return tol
        if taken > limit:
            return None
    return None


def optimum(X, y, loss, lam):
    """The problem, and its P to a relative gap of 1e-9 (1e-7 where the loss has kinks)."""
    if not loss.startswith("ovr "):
        problem = ERM(X, y, loss, "l2", lam)
        tol = 1e-7 if problem.loss.gamma == 0 else 1e-9
        return problem, solve(problem, tol=tol, max_epochs=10**6, random_state=0).primal
    labels = np.where(y[:, None] == np.arange(y.max() + 1), 1.0, -1.0)
    first = ERM(X, labels[:, 0], loss[4:], "l2", lam)
    parts = [first, *(first.with_labels(each) for each in labels[:, 1:].T)]
    tol = 1e-7 if first.loss.gamma == 0 else 1e-9
    best = sum(solve(p, tol=tol, max_epochs=10**6, random_state=0).primal for p in parts)
    return ERM(X, labels, loss[4:], "l2", lam), best


def cell(name, X, y, loss, lam, targets, repeats, limit, peers):
    problem, best = optimum(X, y, loss, lam)
    for eps in targets:
        aim = best * (1 + eps)
        ready = {}
        for who, (make, grid) in CONTESTANTS[loss].items():
            if peers and who not in (*peers, "apcg", BY_P):
                continue
            if who == "newton-cholesky" and X.shape[1] * problem.K > 2000:
                continue
            try:
                fit = make(X, y, loss.removeprefix("ovr "), lam)
                # a certified gap of eps is asked of us, not only P
                tol = look_up(fit, [eps] if grid is None else grid, problem, aim, limit)
            except Exception as error:  # a peer that cannot do it is left out, with the reason
                print(f"    {who}: {type(error).__name__}: {str(error)[:80]}")
                continue
            if tol is not None:
                ready[who] = (fit, tol)
        taken = dict.fromkeys(ready, np.inf)
        for _ in range(repeats):
            for who, (fit, tol) in ready.items():
                taken[who] = min(taken[who], seconds(fit, tol)[0])
        own = [who for who in ("apcg", BY_P) if who in taken]
        others = [t for who, t in taken.items() if who not in own]
        ratio = ", ".join(f"{taken[who] / min(others):.2f}" for who in own) if others else "-"
        shown = ", ".join(f"{who} {t:.3f}" for who, t in taken.items())
        print(f"{name} {loss} lambda {lam:.2g} to {eps:g}: {shown}; ratios {ratio}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["digits"])
    parser.add_argument("--loss", nargs="+", choices=list(CONTESTANTS), default=["multinomial"])
    parser.add_argument("--alpha", nargs="+", default=["1e-3", "1/n", "1e-5", "1e-6"])
    parser.add_argument("--eps", nargs="+", type=float, default=[1e-3, 1e-6])
    parser.add_argument("--peers", nargs="*", help="only these, beside apcg")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in given.data:
            X, y = load(name)
            for loss in given.loss:
                for alpha in given.alpha:
                    lam = 1 / X.shape[0] if alpha == "1/n" else float(alpha)
                    cell(name, X, y, loss, lam, given.eps, given.repeats, given.limit, given.peers)


if __name__ == "__main__":
    main()
