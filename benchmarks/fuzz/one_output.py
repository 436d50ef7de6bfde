"""Random ERM problems for the fuzzer, with P and D by their definition in extended precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from apcg import ERM, losses, penalties

LONG = np.longdouble
EPS = LONG(np.finfo(float).eps)
#: Numbers below this are not those of floating point any more.
TINY = LONG(1e-300)


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

    def steepest(self, m, off):
        """|phi'| at most near m: a rounding may put m on the other side of a kink."""
        around = (self.derivative(m + k * EPS * off) for k in (-4, 0, 4))
        return np.max([np.abs(slope) for slope in around], axis=0)

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
    groups: np.ndarray | None = None  # of each feature, if g is (a, b) of norms: a for each group

    def problem(self):
        made = ERM(
            self.X,
            self.y,
            self.loss,
            self.penalty,
            self.alpha,
            sample_weight=self.sample_weight,
            intercept=self.intercept,
            **self.options,
        )
        if self.alpha == 0:
            self.g = 0.0, 0.0, *self.g[2:]
        if self.groups is None:  # without a penalty and a bound: the gap is that on a box
            a, b, lower, upper = np.broadcast_arrays(*self.g, np.empty(made.d))[:4]
            bounds = made.interval.lower.reshape(-1), made.interval.upper.reshape(-1)
            free = (a == 0) & (b == 0)
            self.g = (
                a, b, np.where(free & (lower == -np.inf), bounds[0], lower),
                np.where(free & (upper == np.inf), bounds[1], upper),
            )  # fmt: skip
        return made

    def values(self, w, x, b, alpha):
        """P, D, and how far rounding may have moved either; D is None if x is not feasible."""
        A = (self.X.toarray() if sp.issparse(self.X) else self.X).astype(LONG)
        y, w, x, b = (np.asarray(v, dtype=LONG) for v in (self.y, w, x, b))
        margin = self.loss.margin
        s, n = self.scaled_weights()
        alpha = LONG(alpha or 1)  # without a penalty it has no say

        z = A @ w + b
        m = z * y if margin else z - y
        phi = self.phi.value(m)
        P = np.sum(s * phi) / n + alpha * self.penalty_at(w)[0]
        off = np.abs(A) @ np.abs(w) + np.abs(b) + np.abs(y)
        room = np.abs(P) + np.sum(s * self.phi.steepest(m, off) * off) / n
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
        g_star, room_g, inside = self.conjugate_at(v, dv, w)
        feasible &= inside
        D = -total / n - alpha * g_star
        room_D = EPS * sizes / n + alpha * room_g
        # the slope of phi* where x/s is rounded
        room_D += EPS * np.sum(np.abs(x) * np.abs(m)) / n
        if self.intercept:
            room_D += EPS * np.abs(signed).sum() * abs(b) / n
        return P, (D if feasible else None), room_P + room_D + TINY

    def scaled_weights(self):
        """s, which sum to n, and n"""
        given = np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight
        s = given.astype(LONG)
        n = np.count_nonzero(s)
        return s * (n / s.sum()), n

    def penalty_at(self, w):
        """g(w), and the sum of the sizes of its terms"""
        if self.groups is not None:
            norms, a, b = self.norms(w), np.asarray(self.g[0], dtype=LONG), LONG(self.g[1])
            value = np.sum(a * norms + b / 2 * norms**2)
            return value, value
        a, b, lower, upper = self._parts(w)
        value = np.sum(a * np.abs(w) + b / 2 * w**2)
        return (LONG(np.inf) if np.any((w < lower) | (w > upper)) else value), value

    def conjugate_at(self, v, dv, w):
        """g*(v), its rounding, and whether it is finite"""
        if self.groups is None:
            return conjugate_of_g(v, dv, w, *self._parts(w))
        a, b = np.asarray(self.g[0], dtype=LONG), LONG(self.g[1])
        norms, dn = self.norms(v), self.norms(dv)
        over = np.maximum(norms - a, 0)
        if b == 0:
            inside = not np.any(over > 1000 * (dn + EPS * a))
            return LONG(0), np.sum(dn * self.norms(w)), inside
        value = np.sum(over**2) / (2 * b)
        dn = dn + EPS * (norms + a)
        return value, EPS * value + np.sum(over * dn + dn**2) / b, True

    def norms(self, w):
        """|w_q| of each group of features"""
        squares = np.zeros(self.groups.max() + 1, dtype=LONG)
        np.add.at(squares, self.groups, w**2 if w.ndim == 1 else np.sum(w**2, axis=1))
        return np.sqrt(squares)

    def _parts(self, w):
        each = (np.asarray(v, dtype=LONG) for v in self.g)
        return (np.broadcast_to(v[:, None] if v.ndim and w.ndim > 1 else v, w.shape) for v in each)

    def _bend(self):
        gamma = 4.0 if self.phi.parts is None else self.phi.parts[2]
        first = 1 / LONG(gamma) if gamma else LONG(0)
        return first + (0 if self.phi.eta is None else 1 / LONG(self.phi.eta))


def conjugate_of_g(v, dv, w, ga, gb, lower, upper):
    """g*(v), how far rounding of v by dv may have moved it, and whether it is finite."""
    g_star, at = _largest(v, ga, gb, lower, upper)
    # next to a kink of g* the maximiser may be another one
    near = [np.abs(_largest(v + k * dv, ga, gb, lower, upper)[1]) for k in (-64, 0, 64)]
    far = np.max(near, axis=0)
    flat = gb == 0
    inside = not np.any(flat & (upper == np.inf) & (v > ga + 1000 * dv))
    inside &= not np.any(flat & (lower == -np.inf) & (-v > ga + 1000 * dv))
    second = np.where(gb > 0, dv**2 / np.where(gb > 0, gb, 1), dv * (far + np.abs(w)))
    room = EPS * np.sum(np.abs(g_star) + np.abs(v * at)) + np.sum(far * dv + second)
    return np.sum(g_star), room, inside


def _largest(v, ga, gb, lower, upper):
    """max_w v w - g(w) for each feature, over finite w, and the w."""
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
    return g_star, at


# ---- random problems ----------------------------------------------------------------------------


def random_loss(rng):
    one = rng.integers(13)
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
    if one == 11:
        q = float(rng.choice([0.5, 0.9, rng.uniform(0.01, 0.99)]))
        return losses.Pinball(q), Phi((0.0, 0.0, 0.0, q - 1.0, q))
    if one == 12:
        epsilon = float(rng.choice([0.0, 0.1, wide]))
        made = losses.SquaredEpsilonInsensitive(epsilon)
        return made, Phi((0.0, epsilon, 0.5, -np.inf, np.inf))
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
    if rng.random() < 0.1:
        ratio = float(rng.choice([1e-8, 1 - 1e-14]))
    wide = rng.choice([2, 2, 4])
    vector = 10 ** rng.uniform(-wide, wide, d)
    some = vector * (rng.random(d) < 0.7)
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
        (None, (0.0, 0.0, -inf, inf), {}),
        (penalties.L2(some), (0.0, some, -inf, inf), {}),
    ][rng.integers(12)]
    if rng.random() < 0.15:
        options = {**options, "positive": True}
        g = (*g[:2], np.maximum(g[2], 0.0), g[3])
    elif rng.random() < 0.1:
        options = {**options, "positive": (-vector, 2.0)}
        g = (*g[:2], np.maximum(g[2], -vector), np.minimum(g[3], 2.0))
    return penalty, g, options


def random_partition(rng, d):
    """A group lasso, its g, and the group of each feature."""
    group_of = np.sort(rng.integers(max(1, int(d ** rng.uniform(0, 1))), size=d))
    group_of = np.unique(group_of, return_inverse=True)[1]
    rng.shuffle(group_of)
    count = group_of.max() + 1
    a = 10 ** rng.uniform(-1, 1, count) if rng.random() < 0.5 else np.ones(count)
    members = [np.flatnonzero(group_of == q) for q in range(count)]
    return penalties.GroupLasso(members, a), (a, 0.0), group_of


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
        X[:, -1] = X[:, :-1] @ rng.standard_normal(d - 1) + rng.choice(
            [1e-9, 1e-13]
        ) * rng.standard_normal(n)
    if kind() < 0.15:
        X += rng.choice([1e3, 1e3, 1e6, 1e8])
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
    return [S, S, S, S.tocsc(), S.tocoo(), S.tobsr()][rng.integers(6)]


def random_weights(rng, n):
    """None, or weights over some decades, of which some may be zero."""
    if rng.random() >= 0.4:
        return None
    weight = 10 ** rng.uniform(rng.choice([-0.5, -0.5, -4, -4, -16, -60]), 1, n)
    weight[rng.random(n) < rng.choice([0.0, 0.3, 0.9])] = 0.0
    weight[0] = weight[0] or 1.0
    return weight


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
    weight = random_weights(rng, n)
    penalty, g, options = random_penalty(rng, d)
    alpha = float(10 ** rng.uniform(-8, 1)) if rng.random() < 0.97 else 0.0
    intercept, groups = bool(rng.random() < 0.35), None
    if rng.random() < 0.1 and alpha > 0:
        penalty, g, groups = random_partition(rng, d)
        options = {}
    return Case(stored(X, rng), y, weight, loss, phi, penalty, g, options, alpha, intercept,
                groups)  # fmt: skip
