"""Random ERM problems for the tests, and P and D written out independently in NumPy."""

import numpy as np
import scipy.sparse as sp

from apcg import ERM, datasets, losses
from apcg.certify.certificate import certify

LOSSES = {
    "hinge": losses.Hinge(),
    "smoothed_hinge": losses.SmoothedHinge(0.5),
    "squared_hinge": losses.SquaredHinge(),
    "logistic": losses.Logistic(),
    "squared": losses.Squared(),
    "huber": losses.Huber(0.8),
    "epsilon_insensitive": losses.EpsilonInsensitive(0.1),
}
SMOOTH = [name for name, loss in LOSSES.items() if loss.gamma > 0]


class Own(losses.Loss):
    """phi*(-x) = -k x + epsilon|x| + (gamma/2)x^2 on a domain: a loss as a user writes one."""

    name = "own"

    def __init__(self, domain, gamma, epsilon=0.0, margin=False):
        self.domain, self.gamma, self.epsilon, self.margin = domain, gamma, epsilon, margin

    @property
    def theta(self):
        return float(self.margin), self.epsilon, self.gamma, *self.domain


#: Domains that no loss with a name has: half open to either side, and kinks within wide bounds.
OWN = [
    Own((-np.inf, 1.0), 0.5),
    Own((-0.5, np.inf), 2.0),
    Own((-np.inf, 2.0), 1.0, epsilon=0.3),
    Own((-5.0, 4.0), 0.3, epsilon=0.2),
    Own((-5.0, 4.0), 0.0, epsilon=0.2),
    Own((-np.inf, np.inf), 0.4, epsilon=0.5),
    Own((0.0, 3.0), 0.4, epsilon=0.5, margin=True),
    Own((-0.3, 0.7), 0.0),
]


def data(loss, n=40, d=12, seed=0, density=0.6, sparse=True):
    """X, y for the loss, labels from a noisy linear rule."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density) * rng.uniform(0.3, 2, d)
    z = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    y = np.where(z > 0, 1.0, -1.0) if LOSSES[loss].margin else z
    return (sp.csr_array(X) if sparse else X), y


def problem(loss, penalty="l2", alpha=1e-2, *, weighted=False, seed=0, **rest):
    shape = {k: rest.pop(k) for k in ("n", "d", "density", "sparse") if k in rest}
    X, y = data(loss, seed=seed, **shape)
    weights = np.random.default_rng(seed + 1).uniform(0.2, 3, len(y)) if weighted else None
    return ERM(X, y, LOSSES[loss], penalty, alpha, sample_weight=weights, **rest)


def feasible(p, rng):
    """A random point of the dual domain."""
    low, high = (max(min(v, 2.0), -2.0) for v in p.loss.domain)
    return p.weights * rng.uniform(low, high, p.n_samples)


def dense(p):
    return p.samples.stored.toarray() if sp.issparse(p.samples.stored) else p.samples.stored


def primal(p, w):
    """P(w), from the definition."""
    s = np.broadcast_to(p.weights, p.n_samples)
    a, b, lower, upper = (np.broadcast_to(v, p.d) for v in (p.g.a, p.g.b, p.g.lower, p.g.upper))
    if (w < lower).any() or (w > upper).any():
        return np.inf
    g = np.sum(a * np.abs(w) + b / 2 * w**2)
    return np.sum(s * p.loss.value(dense(p) @ w, p.y)) / p.n + p.alpha * g


def dual(p, x):
    """D(x), from the definition, with g* by its maximiser coordinate by coordinate."""
    s = np.broadcast_to(p.weights, p.n_samples)
    A = dense(p).T * (p.y if p.loss.margin else 1.0)
    v = A @ x / (p.alpha * p.n)
    a, b, lower, upper = (np.broadcast_to(q, p.d) for q in (p.g.a, p.g.b, p.g.lower, p.g.upper))
    w = np.clip(np.sign(v) * np.maximum(np.abs(v) - a, 0) / b, lower, upper)
    g_star = np.sum(v * w - a * np.abs(w) - b / 2 * w**2)
    y = None if p.loss.margin else p.y
    return -np.sum(s * p.loss.conjugate(-x / s, y)) / p.n - p.alpha * g_star


def text_like(n=1000, d=500, nonzeros=20, seed=0, noise=0.3):
    """Sparse unit rows with features of Zipf frequencies, and noisy labels."""
    return datasets.text_like(n, d, nonzeros, noise=noise, random_state=seed)


def one_hot(n=2000, groups=6, levels=5, seed=0, rare=0):
    """Few features, collinear: the columns of each group sum to one; `rare` more in 3 rows each."""
    rng = np.random.default_rng(seed)
    choice = rng.integers(levels, size=(n, groups)) + levels * np.arange(groups)
    X = np.zeros((n, groups * levels + rare))
    X[np.arange(n)[:, None], choice] = 1
    for j in range(rare):
        X[rng.choice(n, 3, replace=False), groups * levels + j] = 1
    z = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(n)
    return sp.csr_array(X), np.where(z > np.median(z), 1.0, -1.0)


def voice(n=40, d=90, seed=0, loss="logistic"):
    """Data of the kind of raw voice features: columns alike, with means, of scales 1e-7 to 1e10."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 8))
    X = common @ rng.standard_normal((8, d)) / 3 + 0.3 * rng.standard_normal((n, d))
    scales = 10 ** rng.uniform(-7, 1, d)
    scales[:6] = 10 ** rng.uniform(3, 10.6, 6)
    z = common[:, 0] + 0.7 * rng.standard_normal(n)
    y = np.where(z > np.quantile(z, 0.25), 1.0, -1.0) if losses.by_name(loss).margin else z
    return (X + rng.uniform(-2, 2, d)) * scales, y


#: Losses with kinks, of one output.
KINKED = [losses.Hinge(), losses.EpsilonInsensitive(0.1), losses.EpsilonInsensitive(0.0)]


def look(p, point):
    """The certificate of a point, from its w and x alone."""
    return certify(p, point.bare())
