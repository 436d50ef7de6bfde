"""Problem (1) of the paper, minimize F(x) = f(x) + Psi(x), bound together: blocks, L_i, mu.

`Composite` is all that a method sees of a problem: block gradients, block proxes, constants.
"""

from __future__ import annotations

import math
from copy import copy
from functools import cached_property

import numpy as np

from .. import functions, penalties
from .._base import validation as check
from .._base.types import Block, Blocks
from .._base.validation import Index, Vector
from .._kernels.losses.terms import Outer, Psi
from .._kernels.paper.coordinate import Model
from ..data import Matrix
from ..functions import LinearComposite, OwnFunction
from ..penalties import OwnPenalty, Penalty, Zero
from ..theory import moved_convexity

_NONE = np.empty(0, dtype=np.intp)


class Composite:
    """F(x) = f(x) + sum_i psi_i(x_i) over n blocks x_i of x in R^N.

    `members[starts[i]:starts[i + 1]]` are the coordinates of block i. Without `blocks` every
    coordinate is a block, both are empty, and blocks are passed to f and psi as numbers instead of
    arrays.
    """

    def __init__(
        self,
        f: LinearComposite | OwnFunction,
        psi: Penalty | OwnPenalty | None,
        N: int,
        blocks: Blocks | None = None,
    ) -> None:
        self._f, self.N = f, N
        self.psi: Penalty | OwnPenalty = Zero() if psi is None else psi
        if blocks is None and N > 1 and isinstance(self.psi, Penalty) and self.psi.is_block:
            raise ValueError(
                f"psi is a penalty of blocks, {self.psi!r}, and blocks are not given; give their "
                f"sizes, blocks=[...], or blocks=[{N}] for one block of all coordinates."
            )
        if blocks is None and isinstance(self.psi, Penalty) and self.psi.is_block:
            blocks = [N]
        self.scalar = blocks is None
        self.members, self.starts = (_NONE, _NONE) if self.scalar else check.partition(blocks, N)
        self.n = N if self.scalar else len(self.starts) - 1
        self._check_terms()
        #: strong convexity that section 2.2 has moved here from Psi
        self.extra: float | Vector = 0.0
        self.L = self._constants()

    @property
    def f(self) -> LinearComposite:
        """f, if it is one of `apcg.functions`: its matrix and all that the kernels read."""
        if isinstance(self._f, LinearComposite):
            return self._f
        raise TypeError(f"the kernels do not know {self._f!r}: it runs in Python.")

    # ---- what is asked of f and psi ---------------------------------------------------------

    def _check_terms(self) -> None:
        terms: tuple[tuple[object, str, type, tuple[str, ...]], ...] = (
            (self._f, "f", LinearComposite, ("value", "partial_gradient", "L")),
            (self.psi, "psi", Penalty, ("value", "prox")),
        )
        for term, name, known, wanted in terms:
            if isinstance(term, type):
                raise TypeError(
                    f"{name} must be an object, got the class {term.__name__}; make an object of "
                    f"it, {term.__name__}(...)."
                )
            missing = [w for w in wanted if not isinstance(term, known) and not hasattr(term, w)]
            if missing:
                home = "functions" if name == "f" else "penalties"
                raise TypeError(
                    f"{name} must have {', '.join(wanted)}; {term!r} has no {', '.join(missing)}. "
                    f"Take one of apcg.{home}, or give your own object these."
                )
        if isinstance(self._f, LinearComposite):
            functions.refuse_ignored(self._f)
        if isinstance(self.psi, Penalty):
            penalties.refuse_ignored(self.psi)
        if isinstance(self._f, LinearComposite) and self.f.n_coordinates != self.N:
            raise ValueError(
                f"x0 must have length {self.f.n_coordinates}, one entry for each column of A; "
                f"got length {self.N}."
            )
        size = self.psi.size if isinstance(self.psi, Penalty) else None
        of_blocks = isinstance(self.psi, Penalty) and self.psi.is_block
        have, what = (self.n, "blocks") if of_blocks else (self.N, "coordinates")
        if size not in (None, have):
            raise ValueError(
                f"psi has parameters for {size} {what}, but there are {have}; give it a number, or "
                f"one for each of the {what}."
            )

    def _constants(self) -> Vector:
        if isinstance(self._f, LinearComposite):
            if self.scalar:
                return self._f.lipschitz()
            return self._f.lipschitz(self.members, self.starts)
        given = self._f.L() if callable(self._f.L) else self._f.L
        if np.ndim(given) == 0:
            given = np.full(self.n, check.number(given, "L", infinite=True))
        L = check.vector(given, None, "L", finite=False).copy()
        if L.size != self.n:
            raise ValueError(
                f"L must be a number or have one entry for each of the {self.n} blocks, got "
                f"{L.size} entries."
            )
        if not (np.isfinite(L).all() and L.min() > 0):
            bad = int(np.flatnonzero(~(np.isfinite(L) & (L > 0)))[0])
            raise ValueError(
                f"L must be finite and positive for every block, got L[{bad}] = {L[bad]:g}; "
                "L_i is a Lipschitz constant of the partial gradient of block i."
            )
        return L

    @property
    def shown(self) -> str:
        """f in words."""
        return repr(self._f)

    def f_value(self, x: Vector) -> float:
        """f(x), without psi."""
        return float(self._f.value(x))

    # ---- blocks -----------------------------------------------------------------------------

    def block(self, i: int) -> int | Index:
        """What indexes block i in a vector: a number if blocks are coordinates."""
        return i if self.scalar else self.members[self.starts[i] : self.starts[i + 1]]

    def block_norms(self, x: Vector) -> Vector:
        """|x_i|_2 for every block."""
        if self.scalar:
            return np.abs(x)
        return np.sqrt(np.add.reduceat(x[self.members] ** 2, self.starts[:-1]))

    @cached_property
    def lengths(self) -> Vector:
        """How many numbers are stored of the columns of each block."""
        lengths = self.f.columns.lengths
        return lengths if self.scalar else np.add.reduceat(lengths[self.members], self.starts[:-1])

    def per_coordinate(self, per_block: Vector) -> Vector:
        """A number for each block, repeated over its coordinates."""
        if self.scalar:
            return per_block
        out = np.empty(self.N)
        out[self.members] = np.repeat(per_block, np.diff(self.starts))
        return out

    # ---- values, gradients, proxes ----------------------------------------------------------

    def value(self, x: Vector) -> float:
        """F(x)"""
        moved = 0.5 * float(np.sum(self.extra * x * x))
        return float(self._f.value(x)) + moved + self.psi_value(x)

    def value_from(self, x: Vector, rows: Vector) -> float:
        """F(x), given the rows A x less the shift of h."""
        moved = 0.5 * float(np.sum(self.extra * x * x))
        return self.f.value_from(x, rows) + moved + self.psi_value(x)

    def psi_value(self, x: Vector) -> float:
        """Psi(x)"""
        if isinstance(self.psi, Penalty):
            if self.psi.is_block:
                return self.psi.terms.value_of_blocks(x[self.members], self.starts)
            return self.psi.terms.value(x)
        return math.fsum(float(self.psi.value(x[self.block(i)], i)) for i in range(self.n))

    def partial_gradient(self, i: int, x: Vector) -> Block:
        """grad_i f(x)"""
        b = self.block(i)
        extra = self.extra[b] if isinstance(self.extra, np.ndarray) else self.extra
        if isinstance(self._f, LinearComposite):
            return self._f.partial_gradient(b, x) + extra * x[b]
        return self._f.partial_gradient(i, x) + extra * x[b]

    def gradient(self, x: Vector) -> Vector:
        """The whole gradient of f."""
        if isinstance(self._f, LinearComposite):
            return self._f.gradient(x) + self.extra * x
        g = np.empty(self.N)
        for i in range(self.n):
            b = self.block(i)
            g[b] = _entries(self._f.partial_gradient(i, x), np.shape(b), "f.partial_gradient(i, x)")
        return g + self.extra * x

    def prox(self, i: int, v: Block, step: float) -> Block:
        """argmin psi_i(x_i) + |x_i - v|^2/(2 step)"""
        b = self.block(i)
        if isinstance(b, np.ndarray) and isinstance(self.psi, Penalty) and not self.psi.is_block:
            return self.psi.terms.prox(v, np.array([step]), b)
        return self.psi.prox(v, step, i)

    def prox_all(self, v: Vector, step: Vector) -> Vector:
        """The prox of every block, with a step for each."""
        out = np.empty(self.N)
        if isinstance(self.psi, Penalty):
            if not self.psi.is_block:
                return np.asarray(self.psi.prox(v, self.per_coordinate(step)))
            blocks = v[self.members]
            self.psi.terms.prox_of_blocks(blocks, step, self.starts)
            out[self.members] = blocks
            return out
        for i in range(self.n):
            b = self.block(i)
            out[b] = _entries(self.prox(i, v[b], step[i]), np.shape(b), "psi.prox(v, step, i)")
        return out

    def residual(self, x: Vector) -> float:
        """max_i L_i |x_i - T_i(x)|, with T_i the prox step of length 1/L_i on block i.

        Blocks with L_i = 0 have been solved once and for all and do not count.
        """
        return float(np.max(self.block_norms(x - self._prox_step(x)) * self.L, initial=0.0))

    def _prox_step(self, x: Vector) -> Vector:
        """T(x): the prox step of length 1/L_i on every block, all from x."""
        step = 1 / np.where(self.L > 0, self.L, 1.0)
        return self.prox_all(x - self.per_coordinate(step) * self.gradient(x), step)

    def with_zeros(self, x: Vector) -> Vector:
        """x with zeros where its prox step has them: x of an accelerated method is an average."""
        return np.where((self._prox_step(x) == 0) & (self.per_coordinate(self.L) > 0), 0.0, x)

    def nearest(self, x: Vector) -> Vector:
        """x, or if rounding has put it outside dom Psi, the point of dom Psi next to it.

        The iterates are convex combinations of points of dom Psi. The prox with a vanishing step
        is the projection on it.
        """
        terms = self.psi.terms if isinstance(self.psi, Penalty) and not self.psi.is_block else None
        if terms.contains(x) if terms else math.isfinite(self.psi_value(x)):
            return x
        inside = self.prox_all(x, 1e-16 / np.where(self.L > 0, self.L, 1.0))
        if terms:  # a prox moves all of x a little; zeros are to stay (rows of weight zero are)
            kept = np.where(x == 0, x, inside)
            inside = kept if terms.contains(kept) else inside
        return inside

    # ---- section 2.2 ------------------------------------------------------------------------

    @property
    def psi_convexity(self) -> float | Vector:
        """mu_Psi, a number or one for each coordinate."""
        mu = getattr(self.psi, "strong_convexity", 0.0)
        if np.ndim(mu) == 0:
            return check.number(mu, "strong_convexity of psi", low=0.0)
        mu = check.vector(mu, self.N, "strong_convexity of psi", each="coordinate")
        if mu.min() < 0:
            raise ValueError(f"strong_convexity of psi must not be negative, got {mu.min():g}.")
        return mu

    @property
    def mu(self) -> float:
        """What is known of the convexity parameter of f relative to |.|_L."""
        if not isinstance(self._f, LinearComposite):
            given = getattr(self._f, "mu", None)
            return 0.0 if given is None else check.number(given, "mu of f", low=0.0, high=1.0)
        L = self.per_coordinate(self.L)
        moving = L > 0
        sigma = np.broadcast_to(self.f.sigma, self.N)
        return float(np.min(sigma[moving] / L[moving], initial=1.0))

    def moved(self) -> tuple[Composite, float]:
        """(f-tilde, Psi-tilde) of section 2.2 and the mu of equation (mu).

        Psi-tilde = Psi - (mu_Psi/2)|x|^2. The paper subtracts the affine function at some x0 with
        some s0 as well and adds it to f; that changes neither the gradient of f-tilde plus the
        subgradient of Psi-tilde nor, therefore, any iterate.
        """
        new = copy(self)
        # Of a psi of the user's nothing is known but its prox with one step for a whole block.
        known = isinstance(self.psi, Penalty)
        mu_psi = self.psi_convexity if known else float(np.min(self.psi_convexity))
        new.extra = self.extra + mu_psi
        least = most = np.broadcast_to(mu_psi, self.N)
        if not self.scalar:
            least = np.minimum.reduceat(most[self.members], self.starts[:-1])
            most = np.maximum.reduceat(most[self.members], self.starts[:-1])
        new.L = self.L + most
        mu = moved_convexity(new.L - least, least)
        exact = isinstance(self.psi, Penalty) and self.psi.splits_exactly
        new.psi = (
            self.psi.without_strong_convexity()
            if isinstance(self.psi, Penalty)
            else _Moved(self.psi, float(mu_psi))
        )
        if not exact:
            # The prox of Psi-tilde comes from that of Psi if its step is under 1/mu_Psi. The step
            # is 1/(n alpha L_i) with n alpha >= sqrt(mu): larger L_i see to it, at the same mu.
            top = float(new.L.max())
            new.L = np.maximum(new.L, min(top, 2 * math.sqrt(float(np.max(mu_psi)) * top)))
        return new, mu

    # ---- for the kernels --------------------------------------------------------------------

    @property
    def compiled(self) -> bool:
        """Whether the kernels can run it: f and psi are both known to them."""
        return isinstance(self._f, LinearComposite) and isinstance(self.psi, Penalty)

    def model(self) -> Model:
        """The problem as the kernels read it."""
        if not isinstance(self.psi, Penalty):
            raise TypeError(f"the kernels do not know {self.psi!r}: it runs in Python.")
        return Model(
            self.f.outer,
            self.psi.terms,
            self.f.c,
            np.atleast_1d(np.asarray(self.f.sigma + self.extra, dtype=np.float64)),
            self.f.sign,
            self.L,
            self.f.columns.shape[1] - (self.f.columns.constant != 0),  # without the border
            self.members,
            self.starts,
            self.f.columns.constant,
        )

    @property
    def work(self) -> int:
        """The cost of a pass in multiply-adds, roughly."""
        return self.f.columns.nnz + self.N if self.compiled else 1000 * self.n


def _entries(given: Block, shape: tuple[int, ...], what: str) -> Block:
    """What a function of the user's gave for one block, if it has the block's shape."""
    got = np.shape(given)
    if given is None or got not in (shape, () if shape == (1,) else shape):
        wanted = f"an array of shape {shape}, the entries of block i" if shape else "a number"
        raise ValueError(
            f"{what} must give {wanted}; got {'None' if given is None else f'shape {got}'}."
        )
    return given


class _Moved:
    """Psi - (mu/2)|x|^2 for a psi of the user's: the prox is psi's with another step."""

    def __init__(self, psi: OwnPenalty, mu: float) -> None:
        self.psi, self.moved = psi, mu

    def value(self, x: Block, i: int) -> float:
        return float(self.psi.value(x, i)) - 0.5 * self.moved * float(np.sum(np.square(x)))

    def prox(self, v: Block, step: float, i: int) -> Block:
        r = 1 - self.moved * step
        return self.psi.prox(v / r, step / r, i)


class Smooth(LinearComposite):
    """An f made of compiled parts, with the squared norms of its columns known."""

    def __init__(
        self,
        columns: Matrix,
        outer: Outer,
        smoothness: float,
        norms: Vector,
        *,
        shift: Vector | None = None,
        sign: Vector | None = None,
        c: Vector | None = None,
        sigma: float | Vector = 0.0,
    ) -> None:
        self._outer, self._norms = outer, norms
        self._set(columns, smoothness, shift=shift, sign=sign, c=c, sigma=sigma)

    def _make(self) -> Outer:
        return self._outer

    def _diagonal(self) -> Vector:
        return self._norms


class Terms(Penalty):
    """A compiled psi without a Python class of its own."""

    def __init__(self, terms: Psi) -> None:
        self._terms = terms

    def _make(self) -> Psi:
        return self._terms


def settle_zero_blocks(problem: Composite, start: Vector) -> tuple[Index, Vector]:
    """Blocks with L_i = 0 go to the minimiser of <c_i, x_i> + psi_i(x_i); others are sampled."""
    zero = np.flatnonzero(problem.L == 0)
    if zero.size:
        start = start.copy()
        linear = problem.gradient(start)  # constant in these blocks
        for i in zero:
            b = problem.block(int(i))
            start[b] = _minimizer(problem, int(i), start[b], linear[b])
    return np.flatnonzero(problem.L > 0).astype(np.intp), start


def _minimizer(problem: Composite, i: int, x: Block, c: Block) -> Block:
    """argmin <c, x_i> + psi_i(x_i), by proximal points with steps that grow without bound.

    If there is no minimum, x grows with the step; if there is one, x tends to it.
    """
    size, slope = np.max(np.abs(x)), float(np.max(np.abs(c)))
    first = 1 / max(slope, 1e-300) if 0 < slope < 1 else 1.0  # so that the first step moves x by 1
    for power in range(0, 61, 3):
        step = min(first, 1e300 / 10.0**power) * 10.0**power
        before, x = x, problem.prox(i, x - step * c, step)
        size = max(size, np.max(np.abs(x)))
        if np.all(np.isfinite(x)) and np.max(np.abs(x - before)) <= 1e-14 * size:
            return x
    if np.all(np.isfinite(x)) and np.max(np.abs(x)) <= 10 * np.max(np.abs(before)):
        return x  # as well as the prox knows it
    columns = getattr(problem.f, "columns", None)
    own = None if columns is None else columns.rows(np.atleast_1d(problem.block(i)))
    if own is not None and own.absolute().adjoint(np.ones(own.shape[0])).max() > 0:
        raise ValueError(
            f"the squares of column {i} underflow, and with them the curvature that steps go by; "
            "scale the features (to a standard deviation of 1, say)."
        )
    raise ValueError(
        f"The problem is unbounded below: block {i} has no curvature (a zero column of A), and "
        "psi has no minimum over it. Remove the column, or add a penalty or bounds."
    )
