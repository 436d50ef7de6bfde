"""Looks at plain sweeps with g = L2: a certificate from the W that they keep.

The sweeps keep W, which is V = scale A x up to rounding. A certificate needs P at some point, for
which W will do, and |V|^2 for D. With the predictions z = X W

    |V|^2 = 2 <V, W> - |W|^2 + |V - W|^2,    <V, W> = scale sum_i <x_i, z_i>

so D takes no product with X of its own. The last term is what rounding did, squared, and a bound on
it is small enough.
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
    """x and its W, and the values there."""

    setup: SetupK
    x: Matrix
    #: W as kept, from which and from x its other rows follow
    W: Matrix
    z: Matrix
    #: a bound on |V - W|
    error: float
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
        return cls(setup, x, W, z, error, P, D)

    @property
    def charge(self) -> float:
        """What D is lower for the bound on |V - W|."""
        return 0.5 * self.setup.problem.alpha * self.setup.b * self.error**2

    def certificate(self) -> Certificate:
        """The pair with its values."""
        w, b = self.setup.expand(self.W, self.x), np.zeros(self.setup.K)
        return stated(w, self.x, b, self.z, self.primal, self.dual)
