"""Where sweeps over blocks start: the blocks, the intercepts, and the W that goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._base.validation import Matrix, Vector
from ..._kernels.data import products_k
from ...certify.points import Start
from ...losses.base import LOGISTIC, SIMPLEX, SOFTMAX

if TYPE_CHECKING:
    from .setup_k import SetupK

#: About so many rows are enough to tell by how much to shorten a start. (On digits 256 rows were
#: too few: the extra passes cost more than was saved.)
SOME = 2000
#: A start that should be shortened by less than this is taken as it is.
NEAR = 0.95
#: Newton's method for the root of a rising convex function: 4 to 12 steps were seen.
_STEPS = 60


def start(setup: SetupK, at: Start) -> tuple[Matrix, Vector, Matrix]:
    """The blocks, the intercepts and W (A x times the scale) to start from."""
    p = setup.problem
    b = np.zeros(p.K)
    if p.intercept:
        b = first_b(setup) if at.b is None else p.check_b(at.b)
    if at.x is not None:
        blocks = setup.block_of(p.loss.clip(at.x, p.y, p.weights))
        if setup.kind == SOFTMAX:
            return _shrunk(setup, blocks, b)
    elif at.w is not None:
        z = p.samples.times(at.w) + b
        blocks = setup.block_of(p.loss.duals(z, p.y, p.weights))
    elif setup.kind == SOFTMAX:
        return _probabilities(setup, b)
    elif setup.kind == LOGISTIC:
        return _halves(setup, b)
    else:
        blocks = np.zeros((p.n_samples, setup.size))
        if setup.simplex:
            blocks[np.arange(p.n_samples), p.y] = 1.0
    dual = setup.x(blocks)
    return blocks, b, setup.rows(dual) if dual.any() else setup.no_rows()


def first_b(setup: SetupK) -> Vector:
    """The best constant prediction, or about that."""
    p = setup.problem
    s = np.broadcast_to(p.weights, p.n_samples)
    if setup.kind == LOGISTIC:
        return np.asarray(2 * np.arctanh(np.clip((s @ p.y) / p.n, -1 + 1e-9, 1 - 1e-9)))
    if not setup.simplex:
        return np.asarray((s @ p.y) / p.n)
    share = np.bincount(p.y, s, minlength=p.K) / p.n
    if setup.kind == SIMPLEX:
        return np.zeros(p.K)
    b = np.log(np.maximum(share, 1e-9))
    return np.asarray(b - b.mean())


def _probabilities(setup: SetupK, b: Vector) -> tuple[Matrix, Vector, Matrix]:
    """Softmax: pi_i = e_i + t (softmax(b) - e_i), with the t in (0, 1] that is best for D."""
    p = setup.problem
    share = np.zeros(setup.size)
    e = np.exp(b - b.max())
    share[: p.K] = own = np.maximum(e / e.sum(), 1e-12)
    W = setup.no_rows()
    products_k.adjoint_labels(*setup.arrays, p.y, setup.scale * p.weights, share, W)
    mass = setup.mass
    full = own * np.log(own)
    slope = float(mass @ (full.sum() - full))
    unit = np.eye(setup.size)[: p.K]
    square = setup.square(W, np.broadcast_to(share, (p.n_samples, setup.size)))
    t = best_share(mass[None], 1 - own[None], slope, 2 * p.n * setup.square_cost(square))[0]
    W *= t
    return (unit + t * (share - unit))[p.y], b, W


def _shrunk(setup: SetupK, blocks: Matrix, b: Vector) -> tuple[Matrix, Vector, Matrix]:
    """Softmax: pi_i = e_i + t (pi_i - e_i) of given pi, with the t in (0, 1] that is best for D.

    The x of a larger alpha is too long: W is x over alpha.
    """
    p = setup.problem
    W = setup.rows(setup.x(blocks))
    some = setup.all[:: 1 + setup.all.size // SOME]
    others, at = blocks[some], (np.arange(some.size), p.y[some])
    part = np.minimum(1 - others[at], 1 - 1e-12)
    others[at] = 0.0
    s = setup.s[some] * (p.n / max(float(setup.s[some].sum()), 1e-300))
    slope = float(s @ (others * np.log(np.maximum(others, 1e-150))).sum(axis=1))
    cost = 2 * p.n * setup.square_cost(setup.square(W, blocks))
    t = best_share(s[None], part[None], slope, cost)[0]
    if t < NEAR:
        blocks *= t
        blocks[np.arange(p.n_samples), p.y] += 1 - t
        W *= t
    return blocks, b, W


def _halves(setup: SetupK, b: Vector) -> tuple[Matrix, Vector, Matrix]:
    """Logistic losses: x_i = t sigmoid(-y_i b), with a t for each column."""
    p = setup.problem
    x = np.zeros((p.n_samples, setup.size))
    x[:, : p.K] = 1 / (1 + np.exp(p.y * b))
    W = setup.rows(setup.x(x))
    up = setup.s @ (p.y > 0)
    mass = np.column_stack([up, setup.s.sum() - up])
    part = 1 / (1 + np.exp(np.column_stack([b, -b])))
    slope = (mass * part * np.log(part)).sum(axis=1)
    squares = (W[:, : p.K] ** 2).sum(axis=0) + setup.squares_alone(x)
    cost = 2 * p.n * np.array([setup.square_cost(float(square)) for square in squares])
    t = np.zeros(setup.size)
    t[: p.K] = best_share(mass, part, slope, cost)
    W *= t
    return x * t, b, W


def best_share(mass: Matrix, part: Matrix, slope: Vector | float, cost: Vector | float) -> Vector:
    """The t in (0, 1] that minimises, for each row of `mass` c and `part` m,

        sum c [(1 - t m) log(1 - t m) + t m log t] + t slope + t^2 cost/2

    which is -n D on a segment of dual points from zero. Its slope is convex in log t and rises:
    Newton's method from t = 1 falls to its root, unless the slope is negative all the way.
    """
    t = np.ones(mass.shape[0])
    weight = mass * part
    for _ in range(_STEPS):
        left = 1 - t[:, None] * part
        f = (weight * (np.log(t)[:, None] - np.log(left))).sum(axis=1) + slope + t * cost
        bend = (weight / left).sum(axis=1) + t * cost
        way = np.divide(f, bend, out=np.zeros_like(bend), where=bend > 0)  # 0/0: x is zero
        t = np.minimum(t * np.exp(-way), 1.0)
        if not np.any((np.abs(way) > 1e-3) & ((t < 1) | (way > 0))):
            break
    return t
