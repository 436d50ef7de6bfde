"""The two forms of ERM as the kernels solve them: f + Psi over coordinates.

dual: the coordinates are x_i, one for each sample; f has g* and a square, psi_i the rest of phi_i*.
primal: they are w_j, one for each feature; f has the loss and the square of g, psi_j the rest of g.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.validation import Vector
from .._base.weights import divisor
from .._kernels.losses.terms import Outer, Psi
from ..data import Matrix, views
from ..losses import EpsilonInsensitive, Hinge, Loss, Pinball
from ..penalties.groups import GroupNorms
from ..penalties.interval import Interval
from .composite import Composite, Smooth, Terms


def check_solvable(problem: Any) -> None:
    """Refuse a loss and a penalty that no method is for, or that have no finite gap."""
    loss, g, penalty = problem.loss, problem.g, problem.penalty
    if loss.gamma == 0 and problem.K > 1:
        if loss.compiled and is_norms(g):
            return
        raise ValueError(
            f"loss {loss.name!r} is not smooth, and with K outputs it takes a penalty of L1, L2 or "
            f'norms of rows of W ("group"), without bounds, on each feature; got {penalty}. '
            "Take one of these, or a smooth loss: "
            '"multinomial", losses.MulticlassHinge(gamma=1.0), "smoothed_hinge" or "huber"; or '
            'solve for one output at a time, if the loss is a sum over them (with "l1" too).'
        )
    if loss.gamma == 0 and not g.separable:
        raise ValueError(
            f"loss {loss.name!r} is not smooth, and with a penalty of your own, {penalty}, only "
            'the primal can be solved. Take a smooth loss, "smoothed_hinge" or "huber" for example.'
        )
    if g.strong_convexity > 0:
        return
    lines = type(loss) in (Hinge, EpsilonInsensitive, Pinball)
    if loss.gamma == 0 and not (
        loss.in_pieces and isinstance(g, Interval) and (g.splits or (g.is_quadratic and lines))
    ):
        raise ValueError(
            f"loss {loss.name!r} is not smooth and penalty {penalty} is not strongly convex. That "
            "is solved for losses made of lines (hinge, epsilon_insensitive, pinball) with an L1 "
            "part for each feature or, but for a loss of your own, for none, and no bounds or "
            "w >= 0 for all. Else take a "
            'smooth loss ("smoothed_hinge", "squared_hinge", "huber"), or penalty "elasticnet".'
        )
    if g.leaves_free:
        raise ValueError(
            "penalty leaves features without any penalty or bounds, and then no duality gap "
            "is finite; give each a positive weight. (For w >= 0 with an L1 or L2 penalty say "
            "positive=True.)"
        )


def is_norms(g: Any) -> bool:
    """Whether g(W) is a|W_B| + (b/2)|W_B|^2 over its entries or rows, none of them without any."""
    if isinstance(g, GroupNorms):
        return g.of_rows and g.last is None and g.a + g.ridge > 0
    return isinstance(g, Interval) and g.is_unbounded and bool(np.min(g.a + g.b) > 0)


def of(problem: Any) -> Composite:
    """The dual, or the primal if g is not strongly convex, of a problem without an intercept."""
    p, loss, g = problem, problem.loss, problem.interval
    if p.K > 1 or not loss.compiled:
        raise ValueError(
            f"steps on coordinates are for one output and losses of apcg's, got {p.K} outputs "
            f"and loss {loss.name!r}."
        )
    if not p.dual_form and loss.gamma == 0:
        raise ValueError(
            f"loss {loss.name!r} is not smooth and penalty {p.penalty} is not strongly "
            "convex: there are no constants L_i, and no steps on coordinates. solve() takes "
            "interior points for it."
        )
    parts = p.samples, p.y, p.weights, loss, g, p.alpha, p.n
    return dual(*parts, p.squared_norms) if p.dual_form else primal(*parts)


def check_constants(L: Vector, alpha: float) -> None:
    """Refuse constants L_i that are not finite, in words of X and alpha."""
    if not np.isfinite(L).all():
        raise ValueError(
            f"the constants L_i overflow: X is too large for alpha = {alpha:g}; scale the "
            "features, or take a larger alpha."
        )
    if np.min(L, where=L > 0, initial=1.0) < 1e-290:
        raise ValueError(
            f"the constants L_i underflow: X is too small for alpha = {alpha:g}; scale "
            "the features, or take a smaller alpha."
        )


def dual(
    samples: Matrix, y: Vector, weights: Vector, loss: Loss, g: Interval, alpha: float, n: float,
    norms: Vector,
) -> Composite:  # fmt: skip
    """Equation (splitting): f has g* and (gamma/(2n)) sum_i x_i^2/s_i, psi_i the rest.

    `norms` are the squared norms of the samples, weighted if g differs from feature to feature.
    """
    gamma, s = loss.gamma, divisor(weights)
    smoothness = 1 / (alpha * g.strong_convexity * n**2)
    if g.is_l2:
        outer = Outer("square", weight=[smoothness])
    else:
        outer = Outer("support", weight=[alpha], sign=[1 / (alpha * n)], theta=g.theta)
    f = Smooth(
        samples,
        outer,
        smoothness,
        norms,
        sign=y if loss.margin else None,
        c=None if loss.margin else -y / n,
        sigma=gamma / (n * s) if s.size > 1 else gamma / n,
    )
    terms = Psi("dual:" + loss.kernel, [loss.theta], weight=1 / n, scale=s, gamma=gamma)
    return Composite(f, Terms(terms), samples.shape[0])


def primal(
    samples: Matrix, y: Vector, weights: Vector, loss: Loss, g: Interval, alpha: float, n: int
) -> Composite:
    """Coordinates are the weights w_j, columns those of X, h_i = s_i phi_i/n."""
    features = samples.view(views.transposed)  # a copy of X
    outer = Outer(
        loss.kernel,
        weight=weights / n,
        sign=y if loss.margin else (1.0,),
        theta=[loss.theta],
    )
    f = Smooth(
        features,
        outer,
        1 / (loss.gamma * n),
        features.squared_norms(None if weights.size == 1 else weights),
        shift=None if loss.margin else y,
        sigma=alpha * (g.b if g.b.size > 1 else float(g.b[0])),
    )
    theta = g.theta * [alpha, 0.0, 1.0, 1.0]  # the square is in f
    return Composite(f, Terms(Psi("interval", theta)), samples.shape[1])
