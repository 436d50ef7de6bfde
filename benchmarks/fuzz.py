"""Random ERM problems, each solved by every method that fits, each certificate computed again.

    python benchmarks/fuzz.py --problems 1000 --seed 0

P and D are computed here from w, x and b in extended precision, by their definition, with the
conjugates written out: nothing of the library is used for it. What does not agree is printed with
the seed of its problem; `--seed S --problems 1` makes that problem again.
"""

from __future__ import annotations

import argparse
import signal
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from apcg import ERM, losses, path, penalties, solve
from apcg.methods import registry
from apcg.points import Start

LONG = np.longdouble
EPS = LONG(np.finfo(float).eps)
#: Seconds after which a solve counts as hanging.
PATIENCE = 20.0


class Own(losses.Loss):
    """phi*(-x) = -k x + epsilon|x| + (gamma/2)x^2 on a domain, as a user writes one."""

    name = "own"

    def __init__(self, domain, gamma, epsilon=0.0, margin=False):
        self.domain, self.gamma, self.epsilon, self.margin = domain, gamma, epsilon, margin

    @property
    def theta(self):
        return float(self.margin), self.epsilon, self.gamma, *self.domain


# ---- losses and penalties by their definition, in extended precision ----------------------------


def soft(t, a):
    return np.sign(t) * np.maximum(np.abs(t) - a, 0)


@dataclass
class Phi:
    """phi, phi' and phi*(-x) of a loss; `parts` are (k, epsilon, gamma, lower, upper) or None."""

    parts: tuple | None  # None: logistic
    eta: float | None = None  # of a term t^2/(2 eta)

    def slope(self, m):
        """-phi'(m), without the term"""
        if self.parts is None:
            return 1 / (1 + np.exp(np.clip(m, -11000, 11000)))
        k, epsilon, gamma, lower, upper = self.parts
        s = soft(k - m, epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(s == 0, 0, s / LONG(gamma))
        return np.clip(x, lower, upper)

    def value(self, m):
        x = self.slope(m)
        if self.parts is None:
            out = np.logaddexp(LONG(0), -m)
        else:
            k, epsilon, gamma, _, _ = self.parts
            out = (k - m) * x - epsilon * np.abs(x) - gamma / LONG(2) * x**2
        return out if self.eta is None else out + m**2 / (2 * LONG(self.eta))

    def derivative(self, m):
        return -self.slope(m) + (0 if self.eta is None else m / LONG(self.eta))

    def conjugate(self, x):
        """phi*(-x), and the sum of the sizes of its terms"""
        if self.eta is None:
            return self._plain(x)
        eta = LONG(self.eta)
        if self.parts is None:
            low, high = -eta * (np.abs(x) + 1) - 1, eta * (np.abs(x) + 1) + 1
            for _ in range(200):
                t = (low + high) / 2
                up = t + eta * (1 / (1 + np.exp(-t)) - x) < 0
                low, high = np.where(up, t, low), np.where(up, high, t)
            x1 = 1 / (1 + np.exp(-(low + high) / 2))
        else:
            k, epsilon, gamma, lower, upper = self.parts
            x1 = np.clip(soft(k + eta * x, epsilon) / (gamma + eta), lower, upper)
        value, size = self._plain(x1)
        more = eta / 2 * (x - x1) ** 2
        return value + more, size + more + eta * np.abs(x - x1) * (np.abs(x) + np.abs(x1))

    def _plain(self, x):
        if self.parts is None:
            with np.errstate(divide="ignore", invalid="ignore"):
                a = np.where(x > 0, x * np.log(x), 0)
                b = np.where(x < 1, (1 - x) * np.log1p(-x), 0)
            return a + b, np.abs(a) + np.abs(b) + np.abs(x)
        k, epsilon, gamma, _, _ = self.parts
        terms = -k * x, epsilon * np.abs(x), gamma / LONG(2) * x**2
        return sum(terms), sum(map(np.abs, terms))

    @property
    def domain(self):
        if self.eta is not None:
            return -np.inf, np.inf
        return (0.0, 1.0) if self.parts is None else self.parts[3:]


@dataclass
class Case:
    """A problem with all that its values are computed from."""

    X: object
    y: np.ndarray
    sample_weight: np.ndarray | None
    loss: object
    phi: Phi
    penalty: object
    g: tuple  # a, b, lower, upper
    options: dict
    alpha: float
    intercept: bool

    def problem(self):
        return ERM(
            self.X,
            self.y,
            self.loss,
            self.penalty,
            self.alpha,
            sample_weight=self.sample_weight,
            intercept=self.intercept,
            **self.options,
        )

    def values(self, w, x, b, alpha):
        """P, D, and how far rounding may have moved either; D is None if x is not feasible."""
        A = (self.X.toarray() if sp.issparse(self.X) else self.X).astype(LONG)
        y, w, x, b = (np.asarray(v, dtype=LONG) for v in (self.y, w, x, b))
        margin = self.loss.margin
        given = np.ones(len(y)) if self.sample_weight is None else self.sample_weight
        s = given.astype(LONG)
        n = np.count_nonzero(s)
        s = s * (n / s.sum())
        ga, gb, lower, upper = (np.broadcast_to(np.asarray(v, dtype=LONG), w.shape) for v in self.g)
        alpha = LONG(alpha)

        z = A @ w + b
        m = z * y if margin else z - y
        phi, slope = self.phi.value(m), self.phi.derivative(m)
        P = np.sum(s * phi) / n + alpha * np.sum(ga * np.abs(w) + gb / 2 * w**2)
        if np.any((w < lower) | (w > upper)):
            P = LONG(np.inf)
        off = np.abs(A) @ np.abs(w) + np.abs(b) + np.abs(y)
        room = np.abs(P) + np.sum(s * np.abs(slope) * off) / n
        bend = self._bend()
        room_P = EPS * (room + EPS * np.sum(s * off**2) / n * bend)

        u = np.divide(x, s, out=np.zeros_like(x), where=s > 0)
        low, high = self.phi.domain
        slack = 8 * EPS
        feasible = not np.any(x[s == 0] != 0)
        feasible &= bool(np.all(u >= low - slack * abs(low)) if np.isfinite(low) else True)
        feasible &= bool(np.all(u <= high + slack * abs(high)) if np.isfinite(high) else True)
        u = np.clip(u, low, high)
        signed = y * x if margin else x
        if self.intercept:
            feasible &= abs(signed.sum()) <= 100 * EPS * np.abs(signed).sum()
        v = A.T @ signed / (alpha * n)
        dv = EPS * (np.abs(A).T @ np.abs(x)) / (alpha * n)
        conj, size = self.phi.conjugate(u)
        total, sizes = np.sum(s * conj), np.sum(s * size)
        if not margin:
            total, sizes = total - np.sum(x * y), sizes + np.sum(np.abs(x * y))
        best = np.clip(np.zeros_like(v), lower, upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(gb > 0, soft(v, ga) / gb, best)
        g_star = np.full(v.shape, LONG(-np.inf))
        at = best
        for w1 in (best, np.clip(inner, lower, upper), lower, upper):
            with np.errstate(invalid="ignore"):
                value = v * w1 - ga * np.abs(w1) - gb / 2 * w1**2
            better = np.isfinite(w1) & (value > g_star)
            g_star, at = np.where(better, value, g_star), np.where(better, w1, at)
        flat = gb == 0
        feasible &= not np.any(flat & (upper == np.inf) & (v > ga + 1000 * dv))
        feasible &= not np.any(flat & (lower == -np.inf) & (-v > ga + 1000 * dv))
        D = -total / n - alpha * np.sum(g_star)
        second = np.where(gb > 0, dv**2 / np.where(gb > 0, gb, 1), dv * (np.abs(at) + np.abs(w)))
        room_D = EPS * (sizes / n + alpha * np.sum(np.abs(g_star) + np.abs(v * at)))
        room_D += alpha * np.sum(np.abs(at) * dv + second)
        # the slope of phi* where x/s is rounded
        room_D += EPS * np.sum(np.abs(x) * np.abs(m)) / n
        if self.intercept:
            room_D += EPS * np.abs(signed).sum() * abs(b) / n
        return P, (D if feasible else None), room_P + room_D

    def _bend(self):
        gamma = 4.0 if self.phi.parts is None else self.phi.parts[2]
        first = 1 / LONG(gamma) if gamma else LONG(0)
        return first + (0 if self.phi.eta is None else 1 / LONG(self.phi.eta))


# ---- random problems ----------------------------------------------------------------------------


def random_loss(rng):
    one = rng.integers(11)
    wide = float(10 ** rng.uniform(-3, 2))
    if one == 0:
        return losses.Hinge(), Phi((1.0, 0.0, 0.0, 0.0, 1.0))
    if one == 1:
        return losses.SmoothedHinge(wide), Phi((1.0, 0.0, wide, 0.0, 1.0))
    if one == 2:
        return losses.SquaredHinge(), Phi((1.0, 0.0, 0.5, 0.0, np.inf))
    if one in (3, 4):
        return losses.Logistic(), Phi(None)
    if one == 5:
        return losses.Squared(), Phi((0.0, 0.0, 1.0, -np.inf, np.inf))
    if one == 6:
        return losses.Huber(wide), Phi((0.0, 0.0, 1.0, -wide, wide))
    if one == 7:
        epsilon = float(rng.choice([0.0, 0.1, wide]))
        return losses.EpsilonInsensitive(epsilon), Phi((0.0, epsilon, 0.0, -1.0, 1.0))
    if one == 8:
        base = [
            (losses.Logistic(), None),
            (losses.SmoothedHinge(0.5), (1.0, 0.0, 0.5, 0.0, 1.0)),
            (losses.Huber(0.8), (0.0, 0.0, 1.0, -0.8, 0.8)),
            (losses.SquaredHinge(), (1.0, 0.0, 0.5, 0.0, np.inf)),
        ][rng.integers(4)]
        return losses.StronglyConvex(base[0], wide * 10), Phi(base[1], wide * 10)
    domain, gamma, epsilon, margin = [
        ((-np.inf, 1.0), 0.5, 0.0, False),
        ((-0.5, np.inf), 2.0, 0.0, False),
        ((-np.inf, 2.0), 1.0, 0.3, False),
        ((-5.0, 4.0), 0.3, 0.2, False),
        ((-5.0, 4.0), 0.0, 0.2, False),
        ((-np.inf, np.inf), 0.4, 0.5, False),
        ((0.0, 3.0), 0.4, 0.5, True),
        ((-0.3, 0.7), 0.0, 0.0, False),
    ][rng.integers(8)]
    return Own(domain, gamma, epsilon, margin), Phi((float(margin), epsilon, gamma, *domain))


def random_penalty(rng, d):
    """The penalty as it is given, its parameters, and the other options."""
    inf, ratio = np.inf, float(rng.uniform(0.05, 0.95))
    vector = 10 ** rng.uniform(-2, 2, d)
    penalty, g, options = [
        ("l2", (0.0, 1.0, -inf, inf), {}),
        ("l2", (0.0, 1.0, -inf, inf), {}),
        ("l2", (0.0, 1.0, -inf, inf), {}),
        (penalties.L2(vector), (0.0, vector, -inf, inf), {}),
        (penalties.L2(2.5), (0.0, 2.5, -inf, inf), {}),
        ("elasticnet", (ratio, 1 - ratio, -inf, inf), {"l1_ratio": ratio}),
        (
            penalties.ElasticNet(vector, ratio),
            (vector * ratio, vector * (1 - ratio), -inf, inf),
            {},
        ),
        ("l1", (1.0, 0.0, -inf, inf), {}),
        (penalties.L1(vector), (vector, 0.0, -inf, inf), {}),
        (penalties.Box(-vector, 2 * vector), (0.0, 0.0, -vector, 2 * vector), {}),
    ][rng.integers(10)]
    if rng.random() < 0.15:
        options = {**options, "positive": True}
        g = (*g[:2], np.maximum(g[2], 0.0), g[3])
    return penalty, g, options


def random_data(rng):
    n, d = (int(np.ceil(top ** rng.uniform(0, 1))) for top in (200, 60))
    if rng.random() < 0.3:
        n = max(n, 150)
    X = rng.standard_normal((n, d))
    kind = rng.random
    if kind() < 0.5:
        X *= rng.random((n, d)) < rng.choice([0.05, 0.3, 0.7])
    if kind() < 0.2:
        X[:, rng.integers(d)] = X[:, rng.integers(d)]
    if kind() < 0.2 and d > 2:
        X[:, -1] = X[:, :-1] @ rng.standard_normal(d - 1) + 1e-9 * rng.standard_normal(n)
    if kind() < 0.15:
        X += 1e3
    if kind() < 0.2:
        X *= 10 ** rng.uniform(-4, 4, d)
    if kind() < 0.15:
        X *= 10 ** rng.uniform(-4, 4)
    if kind() < 0.2:
        X[rng.random(n) < 0.3] = 0.0
    if kind() < 0.2:
        X[:, rng.random(d) < 0.3] = 0.0
    if kind() < 0.15:
        X[:] = X[rng.integers(n, size=n)]
    if kind() < 0.03:
        X[:] = 0.0
    return X


def stored(X, rng):
    """X as a user may have it: dense or CSR, of either width."""
    dtype = np.float32 if rng.random() < 0.25 else np.float64
    X = X.astype(dtype)
    if rng.random() < 0.5:
        return np.asfortranarray(X) if rng.random() < 0.2 else X
    S = sp.csr_matrix(X) if rng.random() < 0.5 else sp.csr_array(X)
    if rng.random() < 0.3:
        half = S.copy()
        half.data = half.data / dtype(2)
        indptr = 2 * S.indptr
        rows = [slice(S.indptr[i], S.indptr[i + 1]) for i in range(S.shape[0])]
        both = [np.concatenate([half.data[r], half.data[r]]) for r in rows]
        columns = [np.concatenate([S.indices[r], S.indices[r]]) for r in rows]
        S = type(S)((np.concatenate(both), np.concatenate(columns), indptr), shape=S.shape)
    if rng.random() < 0.3:
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S.tocsc() if rng.random() < 0.1 else S


def random_case(rng):
    loss, phi = random_loss(rng)
    X = random_data(rng)
    n, d = X.shape
    size = np.abs(X).max() or 1.0
    z = X @ rng.standard_normal(d) / size + rng.choice([0.0, 0.3]) * rng.standard_normal(n)
    if loss.margin:
        y = np.where(z > (np.median(z) if rng.random() < 0.7 else 0.0), 1.0, -1.0)
        if n > 1 and abs(y.sum()) == n:
            y[rng.integers(n)] *= -1
        if n == 1:
            X, y, n = np.repeat(X, 2, axis=0), np.array([1.0, -1.0]), 2
    else:
        y = z * 10 ** rng.uniform(-2, 2) + rng.choice([0.0, 0.0, 1e3])
        if rng.random() < 0.1:
            y[:] = rng.choice([0.0, 1.0, -700.0])
    weight = None
    if rng.random() < 0.4:
        weight = 10 ** rng.uniform(-4 if rng.random() < 0.5 else -0.5, 1, n)
        weight[rng.random(n) < rng.choice([0.0, 0.3, 0.9])] = 0.0
        weight[0] = weight[0] or 1.0
    penalty, g, options = random_penalty(rng, d)
    alpha = float(10 ** rng.uniform(-8, 1))
    intercept = bool(rng.random() < 0.35)
    return Case(stored(X, rng), y, weight, loss, phi, penalty, g, options, alpha, intercept)


# ---- solving and checking -----------------------------------------------------------------------


class Hangs(BaseException):
    """A solve took longer than PATIENCE."""


def _alarm(signum, frame):
    raise Hangs


def frozen(case, x0):
    """The bytes of everything that was given."""
    X = case.X
    parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    parts += [case.y] + ([] if case.sample_weight is None else [case.sample_weight])
    if isinstance(x0, np.ndarray):
        parts.append(x0)
    elif x0 is not None:
        parts += [v for v in (x0.x, x0.w) if v is not None]
    return [v.tobytes() for v in parts]


def random_start(rng, problem, name, before):
    """None, an earlier solution, an array, or a Start with any of its parts."""
    kind = rng.random()
    if kind < 0.6:
        return None
    if kind < 0.75:
        return before[rng.integers(len(before))] if before else None
    low, high = (float(np.clip(v, -2, 2)) for v in problem.loss.domain)
    x = problem.weights * rng.uniform(low, high, problem.n_samples)
    w = problem.g.clip(rng.standard_normal(problem.d) * 10 ** rng.uniform(-3, 1))
    if kind < 0.85:
        side = getattr(registry.find(name), "side", "dual" if problem.dual_form else "primal")
        return x if side == "dual" else w
    b = float(rng.standard_normal()) if problem.intercept and rng.random() < 0.5 else None
    side = [None, "dual", "primal"][rng.integers(3)]
    take = rng.integers(3)
    return Start(x if take != 1 else None, w if take != 0 else None, b, None, side)


class Fuzz:
    """The problems solved so far, and what was wrong with them."""

    def __init__(self, only):
        self.only = only
        self.problems = self.solves = self.converged = 0
        self.kinds, self.refused, self.by_method = Counter(), Counter(), Counter()

    def wrong(self, kind, seed, text):
        self.kinds[kind] += 1
        print(f"seed {seed}: {kind}: {text}", flush=True)

    def problem(self, seed):
        rng = np.random.default_rng(seed)
        case = random_case(rng)
        try:
            problem = case.problem()
        except ValueError as error:
            self.refused[str(error)[:60]] += 1
            return
        self.problems += 1
        tol = float(10 ** rng.uniform(-12, -2))
        every = [None, None, 1, 7][rng.integers(4)]
        epochs = int(rng.choice([0, 1, 5, 40, 400, 400, 400]))
        options = {"tol": tol, "max_epochs": epochs, "check_every": every, "random_state": seed}
        about = f"{problem!r}, intercept={case.intercept}, tol={tol:.1e}, {epochs=}, {every=}"
        before, lowest, highest = [], [], []
        for name in registry.fitting(problem):
            x0 = random_start(rng, problem, name, before)
            if self.only and name not in self.only:
                continue
            r = self.solve(case, problem, name, seed, x0, options, about)
            if r is None:
                continue
            before.append(r)
            P, D, room = self.check(case, r, tol, case.alpha, seed, f"{name} of {about}", x0)
            lowest.append((P + room, name))
            if D is not None:
                highest.append((D - room, name))
        if lowest and highest and min(lowest)[0] < max(highest)[0] * (1 - 1e-15):
            self.wrong("P below D", seed, f"{min(lowest)} {max(highest)} of {about}")
        if before and rng.random() < 0.1:
            self.path(case, problem, seed, rng, options, about)

    def guarded(self, call, seed, text):
        """What `call` gives, or None; anything but a ValueError is wrong."""
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return call()
        except Hangs:
            self.wrong("hangs", seed, text)
        except ValueError as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.wrong("refused", seed, f"{text}: {error}")
        except Exception as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.wrong(
                type(error).__name__, seed, f"{text}: {error} at {where.filename}:{where.lineno}"
            )
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return None

    def solve(self, case, problem, name, seed, x0, options, about):
        start = "" if x0 is None else f", x0={type(x0).__name__}"
        text = f"{name} of {about}{start}"
        given = frozen(case, x0)
        r = self.guarded(lambda: solve(problem, name, x0=x0, **options), seed, text)
        if r is None:
            return None
        self.solves += 1
        self.converged += r.converged
        self.by_method[name] += 1
        if frozen(case, x0) != given:
            self.wrong("input changed", seed, text)
        if seed % 10 == 0:
            again = self.guarded(lambda: solve(case.problem(), name, x0=x0, **options), seed, text)
            same = again is not None and all(
                np.array_equal(getattr(r, k), getattr(again, k), equal_nan=True)
                for k in ("w", "x", "primal", "dual", "epochs", "intercept")
            )
            if not same:
                self.wrong("not the same again", seed, text)
        return r

    def path(self, case, problem, seed, rng, options, about):
        alphas = 10 ** rng.uniform(-6, 1, 4)
        for name in registry.fitting(problem):
            text = f"path by {name} of {about}"
            call = partial(path, problem, alphas, name, **options)
            found = self.guarded(call, seed, text)
            for alpha, r in zip(alphas, found or [], strict=False):
                self.solves += 1
                self.check(case, r, options["tol"], alpha, seed, f"{text}, alpha={alpha}")

    def check(self, case, r, tol, alpha, seed, text, x0=None):
        text += f", {r.status.code}" + ("" if x0 is None else f", x0={type(x0).__name__}")
        with np.errstate(over="ignore"):
            P, D, room = case.values(r.w, r.x, r.intercept, alpha)
        room *= 64
        if not case.intercept and r.intercept != 0:
            self.wrong("intercept", seed, text)
        if D is None:
            self.wrong("x not feasible", seed, f"{text}, dual={r.dual}")
        if not (np.isfinite(r.primal) and np.isfinite(r.dual)):
            self.wrong("not finite", seed, f"{text}: P={r.primal} D={r.dual}")
            return P, D, room
        if not abs(P - r.primal) <= room:
            self.wrong("primal", seed, f"{text}: {r.primal} is {P}, room {float(room):.1e}")
        if D is not None and not abs(D - r.dual) <= room:
            self.wrong("dual", seed, f"{text}: {r.dual} is {D}, room {float(room):.1e}")
        if D is not None and r.converged and not tol * abs(P) + room >= P - D:
            self.wrong("not converged", seed, f"{text}: gap {float((P - D) / abs(P)):.2e}")
        if r.gap < -room:
            self.wrong("negative gap", seed, f"{text}: {r.gap}, room {float(room):.1e}")
        if not r.converged and r.gap <= tol * abs(r.primal) and r.status.code != "callback":
            self.wrong("converged but not said", seed, f"{text}: gap {r.gap:.2e} P {r.primal}")
        if r.status.code == "max_epochs" and r.epochs < case_epochs(text):
            self.wrong("epochs", seed, f"{text}: stopped after {r.epochs}")
        return P, D, room


def case_epochs(text):
    return int(text.split("epochs=")[1].split(",")[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so many")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, _alarm)
    fuzz, start = Fuzz(args.methods), time.perf_counter()
    for seed in range(args.seed, args.seed + args.problems):
        fuzz.problem(seed)
        if time.perf_counter() - start > args.seconds:
            break
    print(f"{fuzz.problems} problems, {fuzz.solves} solves, {fuzz.converged} converged; to {seed}")
    print("solves:", dict(fuzz.by_method))
    print("problems refused:", dict(fuzz.refused))
    print("violations:", dict(fuzz.kinds) or "none")
    raise SystemExit(bool(fuzz.kinds))


if __name__ == "__main__":
    main()
