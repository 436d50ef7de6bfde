"""The kinds of random problems that `python benchmarks/fuzz` has, and what is looked at in each.

one, outputs, groups   problems of one output, of K outputs, with norms of rows of W; all methods
paths                  a few alphas, one after the other
scales                 columns of X from 1e-8 to 1e8, L2; no answer is worse than w = 0
extreme                X and y from 1e-290 to 1e150
sparse                 L1 parts, by working sets in every shape and by interior points
everyday               what people have; how often `auto` does not converge is counted
estimators             classifiers and regressors with random settings, against `solve`
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from check import Fuzz, at_zero
from everyday import random_everyday
from k_outputs import OutputsCase, random_classes, random_outputs
from one_output import Case, Phi, random_case, random_loss, random_weights

from apcg import APCGClassifier, APCGRegressor, losses, solve
from apcg.methods.base import unmet
from apcg.methods.interior.interior_l1 import InteriorL1
from apcg.methods.sparse import SetTuning, WorkingSet

L2 = (0.0, 1.0, -np.inf, np.inf)


def random_groups(rng):
    """A problem of K outputs with a penalty on the rows of W."""
    while True:
        case = random_outputs(rng)
        if case.groups is not None:
            return case


def any_case(rng):
    """Of one output or of K."""
    return (random_case if rng.random() < 0.5 else random_outputs)(rng)


def random_extreme(rng):
    """A problem whose X, y and alpha are next to nothing, or next to too large."""
    case = any_case(rng)
    x, y = 10 ** rng.uniform(-290, 140), 1.0
    if not (case.loss.margin or isinstance(case.loss, losses.MulticlassHinge | losses.Multinomial)):
        y = 10 ** rng.uniform(-140, 140)
    X = (case.X.toarray() if sp.issparse(case.X) else np.asarray(case.X)).astype(np.float64)
    with np.errstate(all="ignore"):
        X = X / (np.abs(X).max() or 1.0) * x
        labels = case.y * y if y != 1.0 else case.y
    alpha = float(np.clip(x * y * 10 ** rng.uniform(-3, 3), 1e-300, 1e300))
    return replace(case, X=X, y=labels, alpha=alpha)


class Extreme(Fuzz):
    """A right answer, or a clear error: scale X or y. A gap may be what underflow leaves of P."""

    refusals = False

    def blames_rounding(self, case, r, room):
        return False


# ---- columns of any scale -----------------------------------------------------------------------


def scaled_data(rng):
    """Wide or tall; independent, of low rank, with noise, or far from 0; columns of any scale."""
    wide = rng.random() < 0.6
    n, d = (rng.integers(6, 60), rng.integers(60, 300)) if wide else (
        rng.integers(40, 300), rng.integers(2, 40))  # fmt: skip
    rank = rng.integers(2, min(n, d) + 1)
    X, kind = rng.standard_normal((n, d)), rng.integers(4)
    if kind in (1, 2):
        low = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
        X = low if kind == 1 else low + 0.1 * X
    if kind == 3:
        X = X + rng.standard_normal(d) * 10 ** rng.uniform(0, 3)
    return X, 10 ** (8 * np.sqrt(rng.random()) * rng.uniform(-1, 1, d))


def random_scaled(rng):
    """A problem of one output, or of K: classes, or columns of y."""
    X, scales = scaled_data(rng)
    (n, d), K = X.shape, int(rng.choice([1, 3, 4]))
    z = X @ rng.standard_normal((d, K)) / np.sqrt(d) + rng.random() * rng.standard_normal((n, K))
    alpha = 1 / n if rng.random() < 0.5 else float(10 ** rng.uniform(-8, 1))
    weight = random_weights(rng, n) if rng.random() < 0.5 else None
    free = bool(rng.random() < 0.5)
    if K > 1 and rng.random() < 0.6:
        loss, phi, y = random_classes(rng, z, n, K)
        weight = None
    else:
        loss, phi = random_loss(rng) if K == 1 else [
            (losses.Logistic(), Phi(None)),
            (losses.Squared(), Phi((0.0, 0.0, 1.0, -np.inf, np.inf))),
            (losses.Huber(1.0), Phi((0.0, 0.0, 1.0, -1.0, 1.0))),
            (losses.SmoothedHinge(1.0), Phi((1.0, 0.0, 1.0, 0.0, 1.0))),
        ][rng.integers(4)]  # fmt: skip
        y = np.where(z > np.median(z, axis=0), 1.0, -1.0) if loss.margin else z
        y = y[:, 0] if K == 1 else y
    made = (X * scales, y, weight, loss, phi, "l2", L2, {}, alpha, free)
    return Case(*made) if K == 1 else OutputsCase(*made)


class Auto(Fuzz):
    """`auto` at its defaults; how often it does not converge, and with what gap."""

    def __init__(self, make):
        super().__init__(("auto",), make)
        self.seconds, self.unsolved, self.largest = 0.0, [], 0.0

    def problem(self, seed):
        """Solve one problem and look at the answer."""
        case = self.make(np.random.default_rng(seed))
        try:
            problem = case.problem()
        except ValueError as error:
            self.refused[str(error)[:60]] += 1
            return
        self.problems += 1
        about = f"auto of {problem!r}, intercept={case.intercept}, epochs=1000,"
        start = time.process_time()
        r = self.guarded(lambda: solve(problem, random_state=seed), seed, about)
        self.seconds += time.process_time() - start
        if r is None:
            return
        self.solves, self.converged = self.solves + 1, self.converged + r.converged
        self.by_method[r.trace.notes[-1].split(":")[0]] += 1
        P, _, room = self.check(case, r, 1e-6, case.alpha, seed, about)
        if not r.converged:
            relative = r.gap / abs(r.primal)
            self.unsolved.append(r.status.code)
            self.largest = max(self.largest, relative)
            print(f"seed {seed}: not solved: {r.status.code}, gap {relative:.1e}: {about}")
        self.look(case, problem, r, P, room, seed, about)

    def look(self, case, problem, r, P, room, seed, about):
        """What else is asked of an answer."""

    def said(self):
        codes = {code: self.unsolved.count(code) for code in sorted(set(self.unsolved))}
        return f"not solved: {codes}, largest gap {self.largest:.1e}; {self.seconds:.1f} s of CPU"


class Scales(Auto):
    """Compared with w = 0."""

    def look(self, case, problem, r, P, room, seed, about):
        zero = at_zero(case, problem, r)
        if not zero + room >= P:
            self.wrong("worse than w = 0", seed, f"{about}: {float(P):g}, {float(zero):g} at 0")
        if r.status.code == "precision" and "columns of X have norms from" not in r.status:
            self.wrong("does not say why", seed, f"{about}: {r.status}")


# ---- L1 parts, estimators -----------------------------------------------------------------------

SHAPES = {
    "columns": WorkingSet(SetTuning(few_rows=0, tall=np.inf)),
    "rows": WorkingSet(SetTuning(few_rows=0, tall=np.inf, by_rows=0.0, few_cut=1.0)),
    "wide": WorkingSet(
        SetTuning(few_rows=10**9, tall=np.inf, tall_float32=np.inf, strip_columns=(1, 1))
    ),
    "tall": WorkingSet(SetTuning(tall=0.0, least_rows=20, strip_columns=(1, 1))),
    "interior": InteriorL1(),
}


class Sparse(Fuzz):
    """Working sets in a shape that is for larger data, and interior points."""

    def problem(self, seed):
        rng = np.random.default_rng(seed)
        case = random_case(rng)
        try:
            problem = case.problem()
        except ValueError as error:
            self.refused[str(error)[:60]] += 1
            return
        if not problem.separable or not problem.interval.a.any():
            return
        by_column = ("columns", "rows") if not sp.issparse(case.X) else ()
        ways = [s for s in SHAPES if unmet(SHAPES[s], problem) is None and s not in by_column]
        if not ways:
            return
        self.problems += 1
        name, tol = str(rng.choice(ways)), float(10 ** rng.uniform(-10, -2))
        options = {"tol": tol, "max_epochs": int(rng.choice([20, 500])), "random_state": seed}
        about = f"{problem!r}, intercept={case.intercept}, epochs={options['max_epochs']},"
        r = self.solve(case, problem, SHAPES[name], seed, None, options, about)
        if r is not None:
            self.check(case, r, tol, case.alpha, seed, f"{name} of {about}")


class Estimators(Fuzz):
    """Fits with random settings: no error, no warning, numbers that are finite."""

    def problem(self, seed):
        rng = np.random.default_rng(seed)
        n, d, K = int(rng.integers(20, 120)), int(rng.integers(1, 30)), int(rng.integers(2, 5))
        X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-1, 1, d)
        z = X @ rng.standard_normal((d, K)) + rng.standard_normal((n, K))
        X = sp.csr_matrix(X) if rng.random() < 0.3 else X
        alpha, penalty = (
            float(10 ** rng.uniform(-4, 0)),
            str(rng.choice(["l2", "l1", "elasticnet"])),
        )
        settings = {"alpha": alpha, "penalty": penalty, "tol": 1e-6, "random_state": 0,
                    "fit_intercept": bool(rng.random() < 0.5)}  # fmt: skip
        if rng.random() < 0.5:
            loss = str(rng.choice(["hinge", "smoothed_hinge", "squared_hinge", "logistic"]))
            y = z.argmax(axis=1)
            y[:K] = np.arange(K)
            way = str(rng.choice(["ovr", "auto"]))
            model = APCGClassifier(loss, multi_class=way, **settings)
        else:
            loss = str(rng.choice(["squared", "huber", "epsilon_insensitive"]))
            y, model = z[:, 0], APCGRegressor(loss, **settings)
        self.problems += 1
        made = self.guarded(lambda: model.fit(X, y), seed, repr(model))
        if made is None:
            return
        self.solves += 1
        gaps = np.atleast_1d(made.duality_gap_)
        if not (np.all(np.isfinite(gaps)) and np.all(np.isfinite(made.coef_))):
            self.wrong("not finite", seed, repr(model))
        ended = made.status_ if isinstance(made.status_, list) else [made.status_]
        self.converged += all(status.code == "converged" for status in ended)
        if made.predict(X).shape != y.shape:
            self.wrong("shape", seed, repr(model))


class Paths(Fuzz):
    """Paths alone."""

    def problem(self, seed):
        rng = np.random.default_rng(seed)
        case = any_case(rng)
        try:
            problem = case.problem()
        except ValueError as error:
            self.refused[str(error)[:60]] += 1
            return
        self.problems += 1
        tol = float(10 ** rng.uniform(-10, -2))
        options = {"tol": tol, "max_epochs": int(rng.choice([5, 200])), "random_state": seed}
        about = f"{problem!r}, intercept={case.intercept}, epochs={options['max_epochs']},"
        self.path(case, problem, seed, rng, options, about)


KINDS = {
    "one": lambda: Fuzz((), random_case),
    "outputs": lambda: Fuzz((), random_outputs),
    "groups": lambda: Fuzz((), random_groups),
    "paths": lambda: Paths((), any_case),
    "scales": lambda: Scales(random_scaled),
    "extreme": lambda: Extreme(("auto",), random_extreme),
    "sparse": lambda: Sparse((), random_case),
    "everyday": lambda: Auto(random_everyday),
    "estimators": lambda: Estimators((), None),
}
