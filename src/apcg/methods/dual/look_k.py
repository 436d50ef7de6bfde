"""Looks at plain sweeps with g = L2: a certificate from the W that they keep, and a step with it.

The sweeps keep W, which is V = scale A x up to rounding. A certificate needs P at some point, for
which W will do, and |V|^2 for D. With the predictions z = X W

    |V|^2 = 2 <V, W> - |W|^2 + |V - W|^2,    <V, W> = scale sum_i <x_i, z_i>

so D takes no product with X of its own. The last term is what rounding did, squared, and a bound on
it is small enough.

With z, all rows can also go a part of the way from x to T(W) = -phi'(z) at once. That is a good
step where rows hardly depend on each other (q small), and in the middle of a sweep: W has learned
from the rows that had their step, and the others have not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._base.validation import Matrix
from ...certify.certificate import Certificate, stated
from .setup_k import SetupK

_EPS = float(np.finfo(float).eps)


def _inner(x: Matrix, z: Matrix) -> float:
    """<x, z>, as a sum of sums over rows, which loses fewer digits than one long sum."""
    return float(np.einsum("ik,ik->i", x, z).sum())


def error_bound(setup: SetupK, steps: int, first: float) -> float:
    """A bound on |W - V| after so many steps; `first` is the sum of squares of the W of the start.

    A step on row i adds eps (|W_i| + (K + 8) |a_i h_i'|) at most, W_i the rows of W that it changes
    and h_i its change: K + 8 for the roundings of h_i and of pi_i, whose sum is 1 to K eps.
    Computing the W of a start is n such steps. |h_i| <= 2 scale s_i. And D rises, so that
    (sigma/2)|V|^2 <= P(0) - D <= P(0) + (sigma/2) first + gamma all along: phi* is at most gamma.
    """
    p = setup.problem
    sigma = p.alpha * setup.b
    most = 2 * (setup.primal_at_zero() + p.loss.gamma) / sigma + first
    row = float(np.sqrt(np.max(setup.q * setup.s, initial=0.0) * setup.scale))  # scale s_i |a_i|
    return _EPS * (steps + p.n_samples) * (2 * math.sqrt(most) + 2 * (p.K + 8) * row)


@dataclass(eq=False)
class LookK:
    """x and its W, the values there, and what is needed to go on from them."""

    setup: SetupK
    x: Matrix
    #: W as kept, and the x that its other rows follow from
    W: Matrix
    of: Matrix
    z: Matrix
    #: a bound on |V - W|; (1/n) sum_i s_i phi_i*(-x_i/s_i)
    error: float
    conjugate: float
    primal: float
    dual: float

    @classmethod
    def at(cls, setup: SetupK, blocks: Matrix, W: Matrix, error: float) -> LookK:
        """One product with X, for z."""
        p, x = setup.problem, setup.x(blocks)
        z = setup.predictions(W, x)
        square, conjugate = setup.square_of(W, x), p.conjugate_total(x) / p.n
        half = 0.5 * p.alpha * setup.b
        V = 2 * setup.scale * _inner(p.signed(x), z) - square + error**2
        P, D = p.loss_total(z) / p.n + half * square, -conjugate - half * V
        return cls(setup, x, W, x, z, error, conjugate, P, D)

    @property
    def charge(self) -> float:
        """What D is lower for the bound on |V - W|."""
        return 0.5 * self.setup.problem.alpha * self.setup.b * self.error**2

    def certificate(self) -> Certificate:
        """The pair with its values."""
        w, b = self.setup.expand(self.W, self.of), np.zeros(self.setup.K)
        return stated(w, self.x, b, self.z, self.primal, self.dual)

    def step(self) -> None:
        """All rows go towards T(W) as far as is best for D, by a model of it, if D rises.

        x and D are those of the new point afterwards, and W, P and z stay as they are.
        """
        setup, p = self.setup, self.setup.problem
        way = p.loss.duals(self.z, p.y, p.weights)
        way -= self.x
        U = setup.rows(way)
        length = setup.square_of(U, way)
        half = 0.5 * p.alpha * setup.b
        # D rises by 2 gap t - t^2 (gap + (sigma/2)|U|^2), to the second order
        gap = self.primal - self.dual
        t = gap / (gap + half * length) if gap > 0 else 0.0
        x = self.x + t * way
        # |V + t U|^2 - |V|^2, with W for V
        more = t * (2 * setup.scale * _inner(p.signed(way), self.z) + t * length)
        more += 2 * t * self.error * math.sqrt(length)
        D = self.dual + self.conjugate - p.conjugate_total(x) / p.n - half * more
        if self.dual < D < math.inf:
            self.x, self.dual = x, D
