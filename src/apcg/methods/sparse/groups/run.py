"""Working sets of groups at work, for any smooth loss: rounds, the penalty, the model of a set.

    minimize P(W) = the mean loss + alpha sum_q a_q |W_q|_2

A round is one of `working_set` with groups in the place of columns: the gradient, the groups that
may move, a model on them by their Gram matrix, a search along the line. Sweeps over blocks find
which groups are zero; where they are slow, conjugate gradients on those that are not, where the
penalty is smooth, find the rest.

The squared loss may have K outputs: its Gram matrix is that of one. Other smooth losses have one;
the softmax is in `softmax_set.groups`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ....certify.certificate import certify_given
from ....certify.points import Certificate, Point, Start
from ....data import Sparse, views
from ....problems.erm import ERM
from ...base import Target
from ..blocks import Copied, Sliced
from ..losses_at import Losses
from ..run import SparseRun
from ..tuning import SetTuning
from .model import GroupModel, GroupPenalty


class GroupRun(SparseRun):
    """The method at work. w and slopes are those of all groups, one after the other."""

    penalty: Any
    #: with so many rows a column slopes say well enough which groups matter: all that violate are
    #: in a set, and there are no stages
    tall_at = 4.0

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        g: Any = problem.g
        self._K = problem.K
        self._members = np.arange(problem.d) if g.of_rows else g.members
        self._chosen = np.empty(0, np.intp)
        super().__init__(problem, at, target, tuning)
        self._tall = problem.n_samples >= self.tall_at * problem.d
        if self._tall:
            self.theta = 1.0
        self._block: Any = None
        self._columns = problem.samples.view(views.whole).tocsc() if self._sparse else None

    @property
    def _sparse(self) -> bool:
        return isinstance(self.problem.samples, Sparse)

    def _prepare(self, problem: ERM, at: Start) -> None:
        self.penalty = GroupPenalty.of(problem)
        self.losses = Losses(problem)
        shape = (problem.d,) if problem.K == 1 else (problem.d, problem.K)
        self.w = np.zeros(shape) if at.w is None else at.w[self._members]
        self.b = np.zeros(problem.K) if at.b is None or problem.K == 1 else np.array(at.b, float)
        if problem.K == 1:
            self.b = float(at.b or 0.0)

    def _penalise(self, problem: ERM) -> None:
        self.penalty = GroupPenalty.of(problem)

    # ---- where it is ----------------------------------------------------------------------------

    def _own(self, w: Any) -> Any:
        """w by feature."""
        if self._K > 1:  # groups are rows
            return w.copy()
        made = np.empty_like(w)
        made[self._members] = w
        return made

    def point(self) -> Point | Certificate:
        w = self._own(self.w)
        if self._paired and self._pair is not None:
            return certify_given(self.problem, Point(w, self._pair[0], self.b, v=self._pair[1]))
        return Point(w, self._dual, self.b)

    def is_at(self, w: Any) -> bool:
        return np.array_equal(w, self._own(self.w))

    def predict(self) -> Vector:
        self.cost += 0.5
        return np.asarray(self.problem.samples.times(self._own(self.w)) + self.b).reshape(-1)

    def begin_at(self) -> Vector:
        return np.tile(np.atleast_1d(self.b), self.problem.n_samples).astype(np.float64)

    def settle(self) -> None:
        if self._K == 1:
            super().settle()
            return
        off = self.at.slope.reshape(-1, self._K).sum(axis=0)
        off /= self.at.bend.reshape(-1, self._K).sum(axis=0)
        self.b = self.b - off
        self.seen_at = self.losses.at(self.at.z - np.tile(off, self.problem.n_samples))

    def _x(self) -> Any:
        x = self.losses.dual_of(self.at.slope)
        return x if self._K == 1 else x.reshape(-1, self._K)

    def descend(self) -> None:
        """`slope` anew, of a dual point that is feasible unless another group violates."""
        p, x, s = self.problem, self._x(), 1.0
        if self._block is not None and self.theta == 1:
            near = self._block.slope(self._rows(self.at.slope))
            s = 1 / max(1.0, self._on().most(near) * (1 + self.slack))
            x = s * x
        v = p.v_of(x)
        self.slope = (v * (p.alpha / s))[self._members]
        self._pair = (x, v) if self.theta == 1 else None
        self.cost += 0.5

    def _rows(self, flat: Vector) -> Any:
        return flat if self._K == 1 else flat.reshape(-1, self._K)

    def _gap_at(self, theta: float) -> tuple[float, float]:
        penalty, losses = self.penalty.times(theta), self.losses
        value = self.at.value + penalty.value(self.w)
        self._paired = False
        if self._pair is not None and theta == 1 and self.problem.g.excess(self._pair[1]) <= 1:
            self._paired = True
            return value - losses.dual_value(self._pair[0].reshape(-1)), value
        s = 1 / max(1.0, penalty.most(self.slope) * (1 + self.slack))
        self._dual = s * self._x()
        return value - losses.dual_value(self._dual.reshape(-1)), value

    # ---- a round --------------------------------------------------------------------------------

    def _on(self) -> GroupPenalty:
        """The penalty of the groups chosen."""
        whole = self.penalty.times(self.theta)
        sizes = np.diff(whole.starts)[self._chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return GroupPenalty(whole.a[self._chosen], starts)

    def round(self, gap: float, value: float) -> bool:
        self._choose()
        steps = 1 if self.losses.constant or self.theta > 1 else self.tuning.steps
        moved = False
        for k in range(steps):
            near = self.slope[self._places] if k == 0 else None
            if near is None:
                near = self._block.slope(self._rows(self.at.slope))
            if not self._step(near, gap, value):
                break
            moved = True
        if moved:
            self.descend()
        return moved or self.lifts()

    def _choose(self) -> None:
        """The groups that are not zero and those nearest to it; the same set if it will do."""
        penalty = self.penalty.times(self.theta)
        score, inside = penalty.norms(self.slope) / penalty.a, penalty.norms(self.w) > 0
        count, support = score.size, int(np.count_nonzero(inside))
        score[inside] = np.inf
        if self._block is not None:
            beyond = score.copy()
            beyond[self._chosen] = 0.0
            if not np.any(beyond > 1):
                return
        outside = int(np.count_nonzero(score > 1)) - support
        # so many columns that their Gram matrix costs about as much as a pass
        few = min(self.tuning.first, math.sqrt(2 * self.problem.d * self._K))
        least = max(1, int(few * count / self.problem.d))
        most = outside if self._tall else max(support, least)
        size = min(max(2 * support, support + min(outside, most), least), count)
        chosen = (
            np.arange(count) if size == count else np.sort(np.argpartition(-score, size - 1)[:size])
        )
        self._chosen, starts = chosen, penalty.starts
        self._places = np.concatenate([np.arange(starts[q], starts[q + 1]) for q in chosen])
        features = self._members[self._places]
        self._block = self.pick(features)
        self.cost += 0.5 * features.size / self.problem.d

    def pick(self, features: Index) -> Any:
        """The columns of a set."""
        if self._sparse:
            return Sliced(self._columns, features)
        return Copied(self.problem, features)

    def _step(self, slope: Any, gap: float, value: float) -> bool:
        on, block, places = self._on(), self._block, self._places
        bend = self.bend() if self._K == 1 else self.at.bend[:: self._K]
        G, mean = block.gram(bend, self.problem.intercept, kept=self.losses.constant)
        self.cost += block.cost
        w = self.w[places]
        G, slope = self.ridged(G, slope, w)
        model = GroupModel(G, slope, w, on, self.tuning)
        model.solve(*self._wanted(on, slope, w, gap, value))
        v = model.v.reshape(w.shape)
        step = v - w
        if not step.any():
            return False
        way_b: Any = 0.0 if mean is None else -(mean @ step)
        way = self.shifted(block.times(step), way_b).reshape(-1)
        return self.move(places, v, way, way_b, on) > 0

    def ridged(self, G: Matrix, slope: Any, w: Any) -> tuple[Matrix, Any]:
        """The model with squares of the penalty, if it has any."""
        return G, slope

    def _wanted(
        self, on: GroupPenalty, slope: Any, w: Any, gap: float, value: float
    ) -> tuple[float, float, float, float]:
        """As in `wanted`; violations are relative to a_q."""
        t, share = self.tuning, self.tuning.enough * self._tol
        norms = on.norms(w)[:, None]
        rows, flat = slope.reshape(slope.shape[0], -1), w.reshape(w.shape[0], -1)
        each = np.repeat(np.where(norms > 0, on.a[:, None] / np.where(norms > 0, norms, 1.0), 0.0),
                         np.diff(on.starts), axis=0)  # fmt: skip
        off = on.norms(rows - each * flat)
        off = np.where(norms[:, 0] > 0, off, np.maximum(off - on.a, 0.0)) / on.a
        first, fine, least = float(off.max(initial=0.0)), math.sqrt(share), share * abs(value)
        if self.losses.constant:
            return t.exact * first, max(t.inner * gap, least), fine, least
        return t.forcing * first, math.inf, fine, least
