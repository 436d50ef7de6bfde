"""How much of a gap is rounding of products with X, and a sentence that names the columns.

The rounding of products with X grows with its numbers. With u = eps/2 and |.| entry
by entry, z = X w + b and e = lambda w - X'psi/n are off by about

    zb = u (sqrt(d) + 2) (|X||w| + |b|)      eb = u (sqrt(n) + 2) (|X|'|x|/n + lambda |w|)

(square roots, because roundings go up and down; in the worst case n and d take their place). Then P
is off by the mean of |x| zb and D by <|w|, eb>. And for every x in double precision D is about
|eb|^2/(2 lambda) below its maximum.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dasum

from ..problems.erm import ERM
from .points import Certificate

_EPS = float(np.finfo(float).eps)
#: Beside P at w = 0, a gap of this part is rounding.
FLOOR = 16 * _EPS
#: Column norms so many times apart are worth a sentence; so is lambda gamma n at this part of the
#: rounding of the largest |a_i|^2.
APART, HIDDEN = 1e4, 1e-3
#: Numbers of X in a block.
_BLOCK = 1_000_000


def at_zero(problem: ERM) -> float:
    """P(0), with the best b."""
    w, z = (np.zeros((rows, problem.K)) for rows in (problem.d, problem.n_samples))
    if problem.K == 1:
        w, z = w[:, 0], z[:, 0]
    if problem.intercept:
        z += problem.best_shift(z)
    return problem.primal_from(w, z)


def at_most(problem: ERM, found: Certificate) -> float:
    """A bound of `rounding` by norms alone, without arrays: |X||w| is at most R |w| in each row."""
    w, x = found.w.reshape(-1), found.x.reshape(-1)
    size, total = math.sqrt(float(np.dot(w, w))), float(dasum(x)) / problem.n
    shift, sigma = float(np.abs(found.b).max()), problem.strong_convexity
    zb = 0.5 * _EPS * (math.sqrt(problem.d) + 2) * (problem.R * size + shift)
    eb = 0.5 * _EPS * (math.sqrt(problem.n_samples) + 2) * (problem.R * total + sigma * size)
    return total * zb + size * eb + (0.5 * eb * eb / sigma if sigma > 0 else 0.0)


def rounding(problem: ERM, found: Certificate) -> float:
    """What rounding can make of the gap: see above."""
    w, x = np.abs(found.w), np.abs(found.x)
    n, d = problem.n_samples, problem.d
    zb, eb = np.empty(x.shape), np.zeros(w.shape)
    for at, part in problem.samples.chunks(max(1, _BLOCK // max(d, 1))):
        size = part.absolute()
        zb[at] = size.times(w)
        eb += size.adjoint(x[at])
    sigma = problem.strong_convexity
    zb = 0.5 * _EPS * (math.sqrt(d) + 2) * (zb + np.abs(found.b))
    eb = 0.5 * _EPS * (math.sqrt(n) + 2) * (eb / problem.n + sigma * w)
    square = 0.5 * float(np.vdot(eb, eb)) / sigma if sigma > 0 else 0.0
    return float(np.vdot(x, zb)) / problem.n + float(np.vdot(w, eb)) + square


def is_rounding(problem: ERM, found: Certificate) -> bool:
    """Whether the gap is no more than rounding can make of it, or nothing beside P(0)."""
    with np.errstate(over="ignore", invalid="ignore"):  # a bound that is no number says nothing
        if found.gap <= FLOOR * at_zero(problem):
            return True
        return found.gap <= at_most(problem, found) and found.gap <= rounding(problem, found)


def sentence(problem: ERM) -> str:
    """On the norms of the columns of X, if they are a reason to be stuck; else nothing."""
    s = np.broadcast_to(problem.weights, problem.n_samples)
    sizes = np.sqrt(problem.samples.column_squares(s))
    sizes = sizes[sizes > 0]
    if not sizes.size:
        return ""
    least, most = float(sizes.min()), float(sizes.max())
    own = problem.strong_convexity * (problem.loss.gamma or 1.0) * problem.n
    hides = HIDDEN * own <= problem.R**2 * 0.5 * _EPS
    if most < APART * least and not hides:
        return ""
    return (
        f"The columns of X have norms from {least:.1e} to {most:.1e}, and alpha is "
        f"{problem.alpha:.1e}: products with X are rounded by more than the tolerance allows. "
        "Scale the columns, to a standard deviation of 1, say."
    )
