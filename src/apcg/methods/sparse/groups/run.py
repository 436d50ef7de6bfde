"""Working sets of groups at work, for any smooth loss: rounds, the penalty, the model of a set.

    minimize P(W) = the mean loss + alpha sum_q a_q |W_q|_2

A round is one of `working_set` with groups in the place of columns: the gradient, the groups that
may move, a model on them by their Gram matrix, a search along the line. Sweeps over blocks find
which groups are zero; where they are slow, Newton steps on those that are not, where the
penalty is smooth, find the rest.

The squared loss may have K outputs: its Gram matrix is that of one. The softmax has the K entries
of a row of W as a group, and the model of a set is by their second derivatives (`EntryColumns`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._base.validation import Index, Vector
from ....certify.points import Start
from ....problems import costs
from ....problems.erm import ERM
from ...base import Target
from ..run import SparseRun
from ..tuning import SetTuning
from .model import MODEL, GroupModel, GroupPenalty


@dataclass(frozen=True, eq=False)
class GroupsChosen:
    """Some groups, the places of their entries in w, and their columns."""

    groups: Index
    places: Index
    block: Any


class GroupRun(SparseRun):
    """The method at work. w and slopes are those of all groups, one after the other."""

    penalty: Any
    #: with so many rows a column slopes say well enough which groups matter: all that violate are
    #: in a set, and there are no stages
    tall_at = 4.0

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        super().__init__(problem, at, target, tuning)
        if self._tall:
            self.theta = 1.0
        self._set: Any = None

    @property
    def _tall(self) -> bool:
        return self.problem.n_samples >= self.tall_at * self.problem.d

    # ---- where it is ----------------------------------------------------------------------------

    def most_inside(self, near: Vector | None) -> float:
        if self._set is None:
            return 1.0
        slopes = self._set.block.descent(self.losses.rows(self.at.slope))
        return self._on().most(slopes) * (1 + self.slack)

    # ---- a round --------------------------------------------------------------------------------

    def _on(self) -> GroupPenalty:
        """The penalty of the groups chosen."""
        on: GroupPenalty = self.penalty.times(self.theta).on(self._set.groups)
        return on

    def round(self, gap: float, value: float) -> bool:
        self._choose()
        steps = 1 if self.losses.constant or self.theta > 1 else self.tuning.steps
        moved = False
        for k in range(steps):
            near = self.descent[self._set.places] if k == 0 else None
            if near is None:
                near = self._set.block.descent(self.losses.rows(self.at.slope))
            if not self._step(near, gap, value):
                break
            moved = True
            if self.is_over():
                break
        if moved:
            self.descend()
        return moved or self.lifts()

    def _choose(self) -> None:
        """The groups that are not zero and those nearest to it; the same set if it will do."""
        penalty = self.penalty.times(self.theta)
        score, inside = penalty.norms(self.descent) / penalty.a, penalty.norms(self.w) > 0
        count, support = score.size, int(np.count_nonzero(inside))
        score[inside] = np.inf
        if self._set is not None:
            beyond = score.copy()
            beyond[self._set.groups] = 0.0
            if not np.any(beyond > 1):
                return
        outside = int(np.count_nonzero(score > 1)) - support
        # so many columns that their Gram matrix costs about as much as a pass
        few = min(self.tuning.first, math.sqrt(2 * self.problem.d * self.losses.outputs))
        least = max(1, int(few * count / self.problem.d))
        most = outside if self._tall else max(support, least)
        size = min(max(2 * support, support + min(outside, most), least), count)
        chosen = (
            np.arange(count) if size == count else np.sort(np.argpartition(-score, size - 1)[:size])
        )
        places, members = penalty.places(chosen), self.losses.members
        features = places if members is None else members[places]
        self._set = GroupsChosen(chosen, places, self.columns.make(features))
        self.cost += 0.5 * places.size / self.w.shape[0]

    def _step(self, descent: Any, gap: float, value: float) -> bool:
        on, block, places = self._on(), self._set.block, self._set.places
        bend = self.bend() if self.losses.outputs == 1 else self.bend()[:: self.losses.outputs]
        if self.columns.count(self.theta == 1):
            self.begin_again()
        G, mean = block.gram(bend, self.problem.intercept, kept=self.losses.constant)
        self.cost += block.cost
        w = self.w[places]
        wanted = self.wanted(descent, w, on, gap, value)
        if on.b:
            G = G.copy() if self.losses.constant else G  # that of the set is kept
            G[np.diag_indices(len(G))] += on.b
            descent = descent - on.b * w
        room = MODEL.passes * costs.look(self.problem) * self.losses.outputs
        model = GroupModel(G, descent, w, on, self.tuning, room=room)
        self.solve(model, *wanted)
        v = model.v.reshape(w.shape)
        step = v - w
        if not step.any():
            return False
        way_b: Any = 0.0 if mean is None else -(mean @ step)
        way = self.losses.shifted(block.times(step), way_b)
        return self.move(places, v, way, way_b, on) > 0
