"""The penalty on groups, and least squares with it on a Gram matrix: sweeps and Newton steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from ...._base.validation import Index, Matrix, Vector
from ...._kernels.sparse import lasso, panels
from ....penalties.groups import safe_norms
from ....problems.erm import ERM
from ...linalg.factor import Factor
from ..gram import NEWTONS, IsOver, never
from ..tuning import SetTuning


@dataclass(frozen=True)
class ModelTuning:
    """Constants of a model of groups."""

    #: ns of a Newton step by a factor, over the cube of the support: one output, more (0.43 and 1.4
    #: ms at 300 columns)
    cube: tuple[float, float] = (0.02, 0.05)
    #: there are as many sweeps between Newton steps as take the time of one, in ns: of its calls;
    #: and of a sweep for each group and each multiply-add (0.07 at 500 columns, 0.2 at 50). With 4
    #: before the first one 300 x 300, 6 outputs, takes up to 2.5 times as long
    calls: float = 1e5
    group: float = 20.0
    madd: float = 0.1
    #: a model is left, solved or not, after so many turns of sweeps and Newton steps and passes
    turns: int = 5
    passes: float = 30.0


MODEL = ModelTuning()


class GroupPenalty:
    """alpha g on some groups, whose rows follow one another; W has a column for each output."""

    bounded = False
    #: violations are relative to a_q
    least = 1.0

    def __init__(self, a: Vector, starts: Index, b: float = 0.0) -> None:
        self.a, self.starts, self.b = a, starts, b

    @classmethod
    def of(cls, problem: ERM, width: int = 1) -> GroupPenalty:
        """Of all groups, in the order of `members`; a row of W has `width` entries of w."""
        g: Any = problem.g
        if not g.of_rows:
            return cls(problem.alpha * g.a, g.starts)
        each = np.full(problem.d, problem.alpha * g.a)
        starts = np.arange(problem.d + 1, dtype=np.intp) * width
        return cls(each, starts, problem.alpha * g.ridge)

    @property
    def ridged(self) -> bool:
        """Whether there is a square."""
        return self.b > 0

    def start(self, w: Any) -> Any:
        """The point nearest to w."""
        return w

    def on(self, some: Index) -> GroupPenalty:
        """That of some groups, one after the other."""
        sizes = np.diff(self.starts)[some]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return GroupPenalty(self.a[some], starts, self.b)

    def places(self, some: Index) -> Index:
        """Where their entries are."""
        starts = self.starts
        if starts.size == starts[-1] + 1:  # one each
            return some
        return np.concatenate([np.arange(starts[q], starts[q + 1]) for q in some])

    def norms(self, w: Matrix) -> Vector:
        """Of each group."""
        return safe_norms(self._squares, w)

    def _squares(self, w: Matrix) -> Vector:
        squares = np.einsum("jk,jk->j", w, w) if w.ndim == 2 else w * w
        if self.starts.size == squares.size + 1:  # groups of one row
            return squares
        return np.add.reduceat(squares, self.starts[:-1])

    def value(self, w: Matrix) -> float:
        """sum_q a_q |w_q| + (b/2) |w_q|^2"""
        total = float(self.a @ self.norms(w))
        return total + 0.5 * self.b * float(np.vdot(w, w)) if self.b else total

    def violations(self, w: Any, descent: Any) -> Vector:
        """How far each group is from rest, relative to a_q; `descent` as in `ScaledPenalty`."""
        norms, sizes, size = self.norms(w), np.diff(self.starts), w.shape[0]
        some = norms > 0
        pull = np.repeat(np.where(some, self.a / np.where(some, norms, 1.0), 0.0), sizes) + self.b
        off = self.norms(descent.reshape(size, -1) - pull[:, None] * w.reshape(size, -1))
        return np.where(some, off, np.maximum(off - self.a, 0.0)) / self.a

    def conjugate(self, descent: Matrix) -> float:
        """sum_q (|slope_q| - a_q)_+^2/(2 b), with b > 0"""
        over = np.maximum(self.norms(descent) - self.a, 0.0)
        return 0.5 * float(over @ over) / self.b

    def times(self, theta: float) -> GroupPenalty:
        """The same with theta a in the place of a."""
        return self if theta == 1 else GroupPenalty(theta * self.a, self.starts, self.b)

    def most(self, descent: Matrix) -> float:
        """The least theta at which w = 0 is at rest."""
        return float(np.max(self.norms(descent) / self.a, initial=0.0))


def largest(G: Matrix, starts: Index) -> Vector:
    """A bound of the largest eigenvalue of each group's part of G."""
    if starts.size == len(G) + 1:
        return G.diagonal().copy()
    out = np.empty(starts.size - 1)
    widest = int((starts[1:] - starts[:-1]).max())
    panels.largest_of(np.ascontiguousarray(G), starts, np.empty(2 * widest * widest), out)
    return out


class GroupModel:
    """M at v, which begins at w: (1/2)<v - w, G (v - w)> - <descent, v - w> + sum_q a_q |v_q|."""

    def __init__(
        self, G: Matrix, descent: Any, w: Any, on: GroupPenalty, tuning: SetTuning,
        bend: Vector | None = None, room: float = math.inf,
    ) -> None:  # fmt: skip
        """`bend` are the largest eigenvalues of the groups' parts of G, if they are known.

        After `room` ns it is left soon, solved or not.
        """
        size = w.shape[0]
        self.G, self._on, self._tuning = np.ascontiguousarray(G), on, tuning
        # a row for each output, so that a step of the sweeps goes along rows
        self._g = np.array(descent.reshape(size, -1).T, order="C")
        self._v = np.array(w.reshape(size, -1).T, order="C")
        bend = largest(self.G, on.starts) if bend is None else bend
        self._bend = np.maximum(bend, 0.0) * (1 + 1e-12)
        #: ns that it took, as predicted
        self.work, self._room = 0.0, room

    @property
    def v(self) -> Matrix:
        """A row for each column of G."""
        return self._v.T

    @property
    def g(self) -> Matrix:
        """descent - G (v - w)"""
        return self._g.T

    def solve(
        self, target: float, enough: float, fine: float, least: float, is_over: IsOver = never
    ) -> None:
        """As in `gram`, with violations relative to a_q."""
        t, on = self._tuning, self._on
        K, size = self._v.shape
        single = on.starts.size == size + 1
        room = np.empty(K * (1 if single else int((on.starts[1:] - on.starts[:-1]).max())))
        newton, sweep = self._newton_cost(size), self._sweep_cost(size, len(on.a), size)
        most = max(t.sweeps, int(newton / sweep))
        for turn in range(t.turns):
            if turn >= MODEL.turns and self.work > self._room:
                return
            sweeps, worst = lasso.group_sweeps(
                self.G, self._g, self._v, on.starts, self._bend, on.a, room, most, target, enough,
                fine, least,
            )  # fmt: skip
            moving = int(np.count_nonzero(self._v[0]))
            self.work += sweeps * self._sweep_cost(size, len(on.a), moving)
            if sweeps < most or worst == 0:
                return
            for _ in range(NEWTONS):
                if is_over(self.work):
                    return
                self.work += self._newton_cost(moving)
                if not self._newton():
                    break

    def _sweep_cost(self, size: int, groups: int, moving: int) -> float:
        return MODEL.group * groups + MODEL.madd * size * moving * len(self._v)

    def _newton_cost(self, size: int) -> float:
        return MODEL.calls + MODEL.cube[len(self._v) > 1] * size**3

    def _newton(self) -> bool:
        """A Newton step where the penalty is smooth; whether it was cut."""
        on, v = self._on, self.v
        norms = on.norms(v)
        sizes = on.starts[1:] - on.starts[:-1]
        S = np.flatnonzero(np.repeat(norms > 0, sizes))
        if not S.size:
            return False
        q = np.repeat(np.arange(norms.size), sizes)[S]
        G = self.G if S.size == len(self.G) else self.G[np.ix_(S, S)]
        unit, bend = v[S] / norms[q][:, None], on.a[q] / norms[q]
        solve = _by_columns if len(self._v) == 1 else _by_outputs
        step = solve(G, self.g[S] - on.a[q][:, None] * unit, unit, bend, q)
        if not np.isfinite(step).all():
            return False
        change, before = G @ step, float(on.a @ norms)
        # of a long step where G is singular, rounding made curve negative, and P 1e20
        descent, curve = float(np.sum(self.g[S] * step)), max(float(np.sum(step * change)), 0.0)
        t = 1.0
        for _ in range(6):
            new = v.copy()
            new[S] += t * step
            if 0.5 * t * t * curve - t * descent + on.value(new) < before:
                self._v = np.ascontiguousarray(new.T)
                self._g -= t * (step.T @ self.G[S])
                break
            t *= 0.5
        else:
            t = 0.0
        return 0 < t < 1


def _by_columns(G: Matrix, pull: Matrix, unit: Matrix, bend: Vector, q: Index) -> Matrix:
    """H^-1 pull of one output: H = G + the blocks bend (I - u u')."""
    side = np.sqrt(bend) * unit[:, 0]
    H = G - np.where(q[:, None] == q, np.outer(side, side), 0.0)
    at = np.arange(q.size)
    H[at, at] = G.diagonal() + bend * (1 - unit[:, 0] ** 2) + 1e-300
    return Factor(H).solve(np.ascontiguousarray(pull[:, 0]))[:, None]


def _by_outputs(G: Matrix, pull: Matrix, unit: Matrix, bend: Vector, q: Index) -> Matrix:
    """H^-1 pull of K outputs, whose groups are single rows: two factors of the size of G.

    H is M (x) I less bend_j u_j u_j' for each row j, M = G + diag(bend). By the formula of Woodbury

        H^-1 r = y + M^-1 U B T^-1 B U'y,   y = M^-1 r,   T = I - B (M^-1 * V V') B

    with B = sqrt(bend), V the rows u_j, * by entries, and U that takes t to the rows t_j u_j.
    """
    M, at = G.copy(), np.arange(q.size)
    M[at, at] += bend
    # its upper triangle by rows is the lower one by columns, as LAPACK reads it
    found, failed = lapack.dpotrf(M.T, lower=1, overwrite_a=1, clean=0)
    if failed == 0:
        found, failed = lapack.dpotri(found, lower=1, overwrite_c=1)
    if failed:
        return np.full_like(pull, np.nan)
    side = np.sqrt(bend)[:, None] * unit
    T = side @ side.T
    T *= found.T
    np.negative(T, out=T)
    T[at, at] += 1 + 1e-14
    y = blas.dsymm(1.0, found, pull, lower=1)
    t = Factor(T).solve(np.einsum("jk,jk->j", side, y))
    return np.asarray(y + blas.dsymm(1.0, found, t[:, None] * side, lower=1))
