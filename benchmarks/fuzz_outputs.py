"""Random problems with K outputs, each solved by every method that fits, the gaps computed again.

    python benchmarks/fuzz_outputs.py --problems 10000 [--sparse]

--sparse is the softmax with L1, elastic net and groups only.

P and D are computed here from w, x and b in extended precision, by their definition. A certificate
is wrong if it differs from that by more than rounding, if it is negative beyond rounding, or if its
D is above the P of another method: then its gap would be below the true one. What is wrong is
printed with the seed of its problem.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from apcg import ERM, losses, solve
from apcg.methods import registry
from apcg.methods.dual.tuning import MANY
from apcg.methods.plan.plan import Auto
from apcg.methods.sparse.softmax.method import ClassSet
from apcg.methods.sparse.tuning import SetTuning

LONG = np.longdouble
#: What `auto` does where W is large, done where it is small: features by frequency, sampled sweeps.
COMPACT = Auto(("newton",), outputs=replace(MANY, large=0.0))
#: Working sets on sparse columns, which `auto` takes for many rows.
ON_COLUMNS = ClassSet(SetTuning(few_rows=0))
#: Units in the last place of double precision, of the sum of the sizes of all terms.
ROUNDING = 200 * np.finfo(float).eps


def random_labels(rng, n, K):
    """Classes 0..K-1: even, one that dominates, or some absent."""
    kind = rng.integers(3)
    if kind == 0:
        return rng.integers(0, K, n)
    if kind == 1:
        return np.where(rng.random(n) < 0.9, 0, rng.integers(0, K, n))
    return rng.choice(rng.permutation(K)[: max(2, K // 2)], n)


def random_case(rng, sparse=False):
    """(X, y, loss, penalty, alpha, options); the softmax and a penalty that chooses if `sparse`."""
    n, d, K = int(rng.integers(3, 25)), int(rng.integers(1, 9)), int(rng.integers(2, 51))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.3, 1.0]))
    if rng.random() < 0.3:
        X = np.round(X)  # ties
    if rng.random() < 0.2:
        X[rng.integers(n)] = X[0]
    X *= 10.0 ** rng.choice([-2, 0, 0, 0, 1, 3])  # up to huge logits
    kind = rng.integers(2 if sparse else 8)
    if kind < 4:
        y = random_labels(rng, n, K)
        gamma = 10.0 ** rng.uniform(-2, 1)
        loss = [losses.Multinomial(K), losses.Multinomial(K), losses.MulticlassHinge(0.0, K),
                losses.MulticlassHinge(gamma, K)][kind]  # fmt: skip
        if len(np.unique(y)) < 2:
            y[:2] = 0, K - 1
    else:
        K = min(K, 12)
        loss = [losses.Squared(), losses.Huber(0.7), losses.Logistic(), losses.SmoothedHinge(0.5)]
        loss, z = loss[kind - 4], X @ rng.standard_normal((d, K)) + rng.standard_normal((n, K))
        y = np.where(z > 0, 1.0, -1.0) if loss.margin else z
    names = ["l2", "l2", "l2", "elasticnet", "l1", "group", "group_elasticnet"]
    penalty = rng.choice(["l1", *names[3:]] if sparse else names)
    if getattr(loss, "gamma", 0) == 0 and penalty in ("l1", "group"):
        penalty = "l2"
    weights = None
    if rng.random() < 0.4:
        weights = rng.uniform(0, 3, n) * (rng.random(n) < 0.8)
    if rng.random() < 0.3:
        X = X.astype(np.float32)
    if rng.random() < 0.5:
        X = sp.csr_array(X)
    options = {"sample_weight": weights, "intercept": bool(rng.random() < 0.4)}
    return X, y, loss, str(penalty), 10.0 ** rng.uniform(-4, 1), options


def conjugate(loss, s, x, y, K):
    """(sum_i s_i phi*(-x_i/s_i), the sizes of its terms, how far x is outside its domain)"""
    kept = s > 0
    outside = float(np.abs(x[~kept]).max(initial=0))
    s, x, y = s[kept, None], x[kept], y[kept]
    if isinstance(loss, losses.Columns):
        phi, u = loss.loss, x / s
        if not phi.margin:
            limit = LONG(np.inf) if phi.name == "squared" else LONG(phi.delta)
            outside = max(outside, float((np.abs(u) - limit).max(initial=0)))
            terms = [s * u**2 / 2, -x * y]
        else:
            outside = max(outside, float((-u).max(initial=0)), float((u - 1).max(initial=0)))
            u = np.clip(u, 0, 1)
            logs = [np.where(a > 0, a * np.log(np.where(a > 0, a, 1)), 0) for a in (u, 1 - u)]
            terms = logs if phi.name == "logistic" else [-u, phi.gamma * u**2 / 2]
            terms = [s * t for t in terms]
    else:
        e = np.eye(K, dtype=LONG)[y]
        pi = e - x / s
        outside = max(outside, float((-pi).max(initial=0)))
        outside = max(outside, float(np.abs(pi.sum(axis=1) - 1).max(initial=0)))
        pi = np.maximum(pi, 0)
        if loss.name == "multinomial":
            terms = [s * np.where(pi > 0, pi * np.log(np.where(pi > 0, pi, 1)), 0)]
        else:
            terms = [-s * pi * (1 - e), s * LONG(loss.gamma) / 2 * (pi - e) ** 2]
    return sum(t.sum() for t in terms), sum(float(np.abs(t).sum()) for t in terms), outside


def values(loss, z, y, K):
    """phi_i(z_i)"""
    if isinstance(loss, losses.Columns):
        phi = loss.loss
        if phi.margin:
            m = y * z
            if phi.name == "logistic":
                return (np.maximum(-m, 0) + np.log1p(np.exp(-np.abs(m)))).sum(axis=1)
            g = LONG(phi.gamma)
            far = np.where(m < 1 - g, 1 - m - g / 2, (1 - m) ** 2 / (2 * g))
            return np.where(m >= 1, 0, far).sum(axis=1)
        r = np.abs(z - y)
        if phi.name == "squared":
            return (r**2 / 2).sum(axis=1)
        h = LONG(phi.delta)
        return np.where(r <= h, r**2 / 2, h * (r - h / 2)).sum(axis=1)
    at = np.arange(len(y))
    if loss.name == "multinomial":
        top = z.max(axis=1)
        return np.log(np.exp(z - top[:, None]).sum(axis=1)) + (top - z[at, y])
    e = np.eye(K, dtype=LONG)[y]
    shifted = z - z[at, y][:, None] + 1 - e
    if loss.gamma == 0:
        return shifted.max(axis=1)
    g = LONG(loss.gamma)
    target = shifted / g + e
    order = -np.sort(-target, axis=1)
    means = (np.cumsum(order, axis=1) - 1) / np.arange(1, K + 1)
    count = (order > means).sum(axis=1)
    pi = np.maximum(target - means[at, count - 1][:, None], 0)
    return (pi * shifted).sum(axis=1) - g / 2 * ((pi - e) ** 2).sum(axis=1)


def penalties(problem, penalty, w, v):
    """(g(w), g*(v), how far v is outside the domain of g*); l1_ratio is 1/2 where it is used."""
    rows = penalty.startswith("group")
    sizes = [np.sqrt((t**2).sum(axis=1)) if rows else np.abs(t) for t in (w, v)]
    a, b = {"l2": (0, 1), "l1": (1, 0), "group": (1, 0)}.get(penalty, (LONG(0.5), LONG(0.5)))
    over = np.maximum(sizes[1] - a, 0)
    g = a * sizes[0].sum() + b * (sizes[0] ** 2).sum() / 2
    if b == 0:
        return g, LONG(0), float(over.max(initial=0))
    return g, (over**2).sum() / (2 * b), 0.0


def recomputed(problem, penalty, r):
    """(P, D, the size of what rounding can do)"""
    p, K = problem, problem.K
    X = p.samples.stored
    X = np.asarray(X.toarray() if sp.issparse(X) else X).astype(LONG)
    s = np.broadcast_to(p.weights, p.n_samples).astype(LONG)
    n, lam = s.sum(), LONG(p.alpha)
    w, x, b = (np.asarray(t, dtype=LONG) for t in (r.w, r.x, r.intercept))
    y = p.y if p.y.ndim == 1 else p.y.astype(LONG)
    z = X @ w + b
    signed = y * x if isinstance(p.loss, losses.Columns) and p.loss.loss.margin else x
    v = X.T @ signed / (lam * n)
    cost, size, outside = conjugate(p.loss, s, x, y, K)
    g, gc, far = penalties(p, penalty, w, v)
    phi = values(p.loss, z, y, K)
    kept = s > 0
    P = (s[kept] @ phi[kept]) / n + lam * g
    D = -cost / n - lam * gc
    # z and v have rounding errors of their own, which slopes multiply
    slopes = np.abs(x).sum(axis=1)
    reach = float((np.abs(X) @ np.abs(w)).max(initial=0) + np.abs(b).max(initial=0))
    slopes = slopes + s * (phi > 0)  # of x, and of phi at z
    size = float(abs(P)) + (size + float(slopes.sum()) * (reach + 1)) / float(n)
    size += float(lam * gc) + float(np.abs(X).T @ slopes @ np.abs(w).max(axis=1)) / float(n)
    if p.intercept:
        off = float(np.abs(signed.sum(axis=0)).max())
        outside = max(outside, off / max(float(np.abs(x).sum()), 1e-300) - 1e-12)
    # what is scaled to be feasible is so up to the rounding of v
    rounding = float((np.abs(X).T @ np.abs(x)).max(initial=0) / (lam * n)) * np.finfo(float).eps
    return P, D, size, max(outside, far - max(1e-12, rounding))


def one(seed, counts, sparse=False):
    """Solve problem `seed` by all methods; what is wrong, in words."""
    rng = np.random.default_rng(seed)
    X, y, loss, penalty, alpha, options = random_case(rng, sparse)
    try:
        problem = ERM(X, y, loss, penalty, alpha, **options)
    except ValueError as error:  # a class without samples and an intercept, or no weight at all
        counts["refused: " + str(error)[:24]] += 1
        return []
    tol, passes = 10.0 ** rng.uniform(-10, -1), int(rng.choice([3, 30, 300]))
    wrong, found = [], []
    methods = {name: name for name in registry.fitting(problem)}
    if sp.issparse(problem.samples.stored):
        methods["compact"] = COMPACT
        if "working_set" in methods:
            methods["on columns"] = ON_COLUMNS
    for method, chosen in methods.items():
        try:
            r = solve(problem, chosen, tol=tol, max_epochs=passes, random_state=0)
        except ValueError as error:
            if "overflow" in str(error) or "scale" in str(error):
                counts["refused: " + str(error)[:24]] += 1
                continue
            raise
        P, D, size, outside = recomputed(problem, penalty, r)
        slack = ROUNDING * problem.K * size
        counts["solves"] += 1
        counts[method] += 1
        counts["converged"] += r.converged
        counts[method + " not converged"] += passes == 300 and not r.converged
        if outside > 1e-11:
            wrong.append(f"{method}: outside the domain by {outside:.1e}")
        if abs(float(P - D) - r.gap) > slack:
            gap = float(P - D)
            wrong.append(f"{method}: gap {r.gap:.3e}, in fact {gap:.3e}, slack {slack:.1e}")
        if r.gap < -slack:
            wrong.append(f"{method}: negative gap {r.gap:.3e}, slack {slack:.1e}")
        if r.converged and r.gap > tol * abs(r.primal):
            wrong.append(f"{method}: converged at {r.gap:.3e}")
        found.append((method, P, D, slack))
    for method, _, D, slack in found:
        least = min(found, key=lambda f: f[1])
        if least[1] + slack + least[3] < D:
            wrong.append(f"{method}: D is {float(D - least[1]):.3e} above the P of {least[0]}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sparse", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, start, bad = Counter(), time.perf_counter(), 0
    for seed in range(given.seed, given.seed + given.problems):
        try:
            wrong = one(seed, counts, given.sparse)
        except Exception as error:  # what was not foreseen is what is looked for
            wrong = [f"{type(error).__name__}: {error}"]
        bad += bool(wrong)
        for text in wrong:
            print(f"seed {seed}: {text}", flush=True)
    print(f"{given.problems} problems, {bad} wrong, {time.perf_counter() - start:.0f} s")
    print(", ".join(f"{k} {v}" for k, v in sorted(counts.items())))


if __name__ == "__main__":
    main()
