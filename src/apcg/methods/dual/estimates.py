"""What sweeps know of the gap without a look, and when a look is likely to pass.

The parts of the gap of the rows, phi(m_i) + phi*(-a_i) + m_i a_i, are summed in passing, each at
the w of its step. The sum costs nothing and is close to the gap, which is therefore asked for only
where it can be small enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .setup_k import SetupK
from .setup_one import SetupOne
from .sweeps_k import MomentumK, PlainK
from .sweeps_one import MomentumOne, PlainOne

Sweeps = PlainOne | PlainK | MomentumOne | MomentumK

#: After a look that failed the next one is to pass with this much to spare.
SURE = 0.9
#: Below this, relative to P, an estimate is rounding.
ROUNDING = 1e-15


class Estimates:
    """The estimated gap after each sweep, and P as far as it is known."""

    def __init__(self, setup: SetupOne | SetupK, tol: float) -> None:
        self.setup, self.tol = setup, tol
        self.values: list[float] = []
        #: the gap as far as it can be told now
        self.now = math.inf
        #: P; whether a look has said so
        self.primal, self.sure = setup.primal_at_zero(), False
        #: the estimate that is likely to do over what is asked for, by the last look
        self.share: float | None = None
        #: how far b moved in the last two sweeps
        self.moves: tuple[Any, Any] = (0.0, 0.0)
        #: passes when P was last guessed
        self.guessed = -math.inf

    @property
    def last(self) -> float:
        """The estimate of the last sweep."""
        return self.values[-1]

    @property
    def relative(self) -> float:
        """The same over P."""
        return self.last / self.primal if self.values and self.primal > 0 else math.inf

    def add(self, estimate: float, *, plain: bool) -> None:
        """Of a sweep; what is below zero is rounding.

        The estimate is of the middle of the sweep, say. At the end of a plain one the gap is lower.
        """
        self.values.append(max(estimate, 0.0))
        self.now = self.last
        if plain and len(self.values) > 1 and self.last < self.values[-2] < math.inf:
            self.now *= (self.last / self.values[-2]) ** self.setup.tuning.late

    def forget(self) -> None:
        """Rows came back: what was estimated without them tells nothing of what is to come."""
        self.values[-1] = self.now = math.inf
        self.share = None

    # ---- looks ----------------------------------------------------------------------------------

    def wanted(self, factor: float) -> float:
        """The estimate that a look is likely to pass at: so much of what is asked for, at first."""
        share = factor if self.share is None else self.share
        return max(share * self.tol, ROUNDING) * self.primal

    def look_pays(self, sweeps: Sweeps, factor: float, passes: float) -> bool:
        """Whether the estimate is low enough, with P from D where P is not known yet."""
        est = self.now
        if est <= self.wanted(factor) and self.setup.constant:
            est += self.unbalanced(sweeps)
        if est <= self.wanted(factor) and not self.sure:
            self.guess_primal(sweeps, est, passes)
        return est <= self.wanted(factor)

    def looked(self, primal: float) -> None:
        """A look has found P."""
        self.primal, self.sure = abs(primal), True

    def failed(self, gap: float, factor: float) -> None:
        """A look that was to pass has found this gap: the next one waits for as much less."""
        if gap > 0:
            sure = SURE if self.setup.K == 1 else factor
            self.share = min(max(sure * self.now / gap, 0.01), factor)

    def unbalanced(self, sweeps: Sweeps) -> float:
        """What balancing x costs: <sum_i x_i, the way that b has still to go> over n.

        The moves of b fall like a geometric sequence, whose sum is that way.
        """
        before, last = self.moves
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.clip(np.where(before != 0, np.divide(last, before), 0.0), 0.0, 0.95)
        off = np.abs(self.setup.imbalance(sweeps.a)) / self.setup.problem.n
        return float(np.dot(off, np.abs(last) / (1 - ratio)))

    def guess_primal(self, sweeps: Sweeps, est: float, passes: float) -> None:
        """P = D + est, less what an intercept makes of an x that is not balanced."""
        self.guessed = passes
        setup, a, off = self.setup, sweeps.a, 0.0
        if setup.constant:
            off = float(np.dot(sweeps.b, setup.imbalance(a))) / setup.problem.n
        guess = abs(setup.dual(a, sweeps.w) + est - off)
        if math.isfinite(guess):
            self.primal = min(self.primal, guess)

    def seen(self, sweeps: Sweeps, passes: float) -> float | None:
        """The relative gap as estimated, for who wants to know it in between; None if unknown."""
        more, times = self.setup.tuning.guess
        if not self.values:
            return None
        if not self.sure and passes >= max(self.guessed + more, times * self.guessed):
            self.guess_primal(sweeps, self.last, passes)
        est = self.last + (self.unbalanced(sweeps) if self.setup.constant else 0.0)
        est /= min(self.share or 1.0, 1.0)  # a look found more than was estimated
        return est / self.primal if self.primal > 0 else None

    # ---- how many sweeps are left ---------------------------------------------------------------

    def sweeps_left(self, sweeps: Sweeps, factor: float, passes: float) -> tuple[float, float]:
        """How many sweeps seem to be left, and the rate of the later half that says so.

        The estimate falls by a factor exp(-rate) a sweep.
        """
        count = len(self.values)
        if count < self.setup.tuning.earliest:
            return 0.0, 0.0
        first, doubled = count == self.setup.tuning.earliest, count & (count - 1) == 0
        if not self.sure and (doubled if self.setup.K > 1 else first):  # P falls with them
            self.guess_primal(sweeps, self.last, passes)
        middle, rate = count // 2, 0.0
        before = self.values[middle - 1]
        if self.last > 0 and 0 < before < math.inf:  # it may be 0, with no row left to step on
            rate = math.log(before / self.last) / (count - middle)
        wanted = self.wanted(factor)  # 0 if P is
        return (math.log(self.last / wanted) / rate if rate > 0 and wanted > 0 else math.inf), rate
