"""P, D and gradients of a problem whose rows are in shards, from sums.

    P(w) = (1/n) sum_k sum_i in k s_i phi_i(a_i'w) + lambda g(w)
    D(x) = -(1/n) sum_k sum_i in k s_i phi_i*(-x_i/s_i) - lambda g*(v),   v = A x/(lambda n)

w, and v of a sum of A_k x_k, are here; z and x are with the shards. Moving x from one point to
another moves v and A x on a line too: D at points between them needs sums of phi* alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.validation import Matrix as Table
from ..._base.validation import Vector
from ...certify.certificate import stated
from ...certify.points import Certificate
from ...engines import Engine
from .problem import Sharded
from .shard import TRIALS

_EPS = float(np.finfo(float).eps)
#: Rounds of bringing x into balance, at most.
_ROUNDS = 6
#: v is shrunk into its bounds with this to spare.
_SLACK = 1e-12


class Sums:
    """Where all shards are, and what is known there. Counts what goes over the network.

    w         the point, its intercept included
    gradient  of the smooth part of P there; `smooth` is its value
    primal    P(w)
    v, dual   of the best dual point that the shards have; D without the balance that an intercept
              asks for, which `certify` brings about
    messages  round trips; `vectors` of them brought as many numbers as there are features
    passes    over the data, by each shard
    """

    def __init__(self, engine: Engine, problem: Sharded, w: Table) -> None:
        self.engine, self.problem, self.w = engine, problem, w
        self.messages = self.vectors = self.grams = 0
        self.passes = 0.0
        self.begin()

    def begin(self) -> None:
        """Tell all shards where we are. They know nothing else."""
        self.v: Table = np.zeros((self.problem.d, *self.problem.shape[1:]))
        self.dual, self._keep = -math.inf, 0.0
        self.gradient, self.mean = np.zeros_like(self.w), np.zeros_like(self.w)
        self.smooth = self.primal = math.inf
        self.tell("begin", self.problem.job, self.w)
        self.passes += 0.5

    def sum(self, task: str, *args: Any) -> Any:
        """A message, and the sum of what all say."""
        self.messages += 1
        return self.engine.sum(task, *args)

    def tell(self, task: str, *args: Any) -> None:
        """A message without a reply."""
        self.messages += 1
        self.engine.tell(task, *args)

    @property
    def gap(self) -> float:
        """P(w) - D(x), about: what is out of balance counts b times."""
        off = float(np.abs(self.w[-1] * self.gradient[-1]).sum()) if self.problem.intercept else 0.0
        return self.primal - self.dual + off

    # ---- looks ----------------------------------------------------------------------------------

    def look(
        self, c: Vector | None = None, step: Table | None = None, *, new: bool = False,
        curved: bool = False,
    ) -> Table | None:  # fmt: skip
        """Move by directions times c, which is `step` in w, and look there: one vector.

        new     `step` is a direction that the shards do not know yet
        curved  give the Hessian there too
        """
        p = self.problem
        if step is not None:
            self.w = self.w + step
        c = np.ones(int(new)) if c is None else c
        more = (step if new else None, curved) if new or curved else ()
        G, smooth, total, conjugates, H = self.sum("slope", c, self._taken(), *more)
        self.vectors += 1
        self.passes += 1.0 if new else 0.5
        self.mean = G / p.n
        self.gradient = self.mean + p.ridge * self.w
        self.smooth = smooth / p.n + 0.5 * float(np.sum(p.ridge * self.w * self.w))
        self.primal = p.value(total, self.w)
        self.meet(-self.mean[: p.d] / p.alpha, conjugates)
        return self._counted(H) if curved else None

    def back(self, w: Table) -> None:
        """Be at w again."""
        self.w = w
        self.tell("at", w)
        self.passes += 0.5

    def meet(self, v: Table, conjugates: Vector) -> None:
        """Go from the best dual point to a new one, that of v, as far as is best."""
        p, start = self.problem, self.v
        if p.g.strong_convexity == 0:  # D is finite only where v is within bounds
            self._meet_shrunk(v)
            return
        each = zip(TRIALS, conjugates, strict=True)
        tried = [p.dual(f, start + t * (v - start)) for t, f in each]
        best = int(np.argmax(tried))
        self._keep, self.dual = TRIALS[best], tried[best]
        self.v = start + self._keep * (v - start)

    def _meet_shrunk(self, v: Table) -> None:
        p = self.problem
        by = 1 / max(1.0, p.g.excess(v) * (1 + _SLACK))
        dual = p.dual(self.sum("shrink", by), by * v)
        if dual > self.dual:
            self._keep, self.dual, self.v = 1.0, dual, by * v

    def _taken(self) -> float:
        """How far x goes to the new one, told with the next message."""
        keep, self._keep = self._keep, 0.0
        return keep

    def local(self, alpha: float, passes: int, seed: int) -> Table:
        """A step of each shard on its own dual; their mean is what w should become: one vector."""
        p = self.problem
        lam = np.broadcast_to(p.ridge, self.w.shape)
        args = self._taken(), self.mean, self.w, lam, alpha, passes, seed
        total, conjugates = self.sum("local", *args)
        self.vectors += 1
        self.passes += passes
        mean = total / p.n
        v = (alpha * mean - (alpha - lam) * self.w)[: p.d] / p.alpha
        self.meet(v, conjugates)
        return np.asarray(mean)

    def hessian(self) -> Table:
        """The Hessian of the smooth part of P: one message of the size of a Gram matrix."""
        return self._counted(np.asarray(self.sum("hessian")))

    def _counted(self, sum_of_shards: Table) -> Table:
        p, H = self.problem, sum_of_shards / self.problem.n
        self.grams += 1
        self.passes += p.gram_passes
        ridge = np.broadcast_to(p.ridge, p.shape).reshape(-1)
        H[np.diag_indices(len(H))] += ridge
        return H

    def furthest(self, task: str, *args: Any) -> tuple[Any, ...]:
        """A message; of the first number of each reply the largest, of the others the sum."""
        self.messages += 1
        replies = self.engine.each(task, *args)
        most = max(reply[0] for reply in replies)
        return most, *(sum(each) for each in zip(*(reply[1:] for reply in replies), strict=True))

    def look_inside(self, t: float) -> tuple[Any, ...]:
        """P and D where interior points are after t of their step, of the x that they have there.

        Gives what the next step begins with; `gradient` is lambda b w - A x/n.
        """
        p = self.problem
        total, conjugate, Ax, *found = self.sum("interior", t, self.w)
        self.vectors += 1
        self.grams += 1
        self.passes += 1.5 + p.gram_passes
        self.gradient = p.ridge * self.w - Ax / p.n
        self.primal = self.smooth = p.value(total, self.w)
        self.v = Ax[: p.d] / (p.n * p.alpha)
        self.dual, self._keep = p.dual(conjugate, self.v), 0.0
        return tuple(found)

    def centre(self, gamma: float, cold: bool) -> None:
        """Smooth a loss of lines around the last dual point, or around 0."""
        self.tell("smooth", gamma, self._taken(), cold)

    # ---- certificates ---------------------------------------------------------------------------

    def certify(self, w: Table, good: bool) -> Certificate:
        """The exact certificate of w and of the best x, from these alone: one vector.

        good  whether the last certificate is the best so far: the shards then keep its x
        """
        p = self.problem
        if keep := self._taken():
            self.tell("keep", keep)
        balanced, slack = not p.intercept or self._balance(), _SLACK
        while True:
            total, conjugate, Ax = self.sum("certify", w, good)
            good = False
            self.vectors += 1
            self.passes += 1
            v = Ax / (p.alpha * p.n)
            excess = p.g.excess(v)
            # other sums of the same x are other by rounding, and within bounds too
            if excess <= 1 - 0.5 * _SLACK or slack > 1:
                break
            self.tell("scale", *[1 / (excess * (1 + slack))] * 2)
            slack *= 100
        primal, dual = p.value(total, w), p.dual(conjugate, v) if balanced else -math.inf
        self.v, self.dual = v, dual
        weights, b = p.split(w)
        return stated(weights, np.empty(0), b, np.empty(0), primal, dual)

    def _balance(self) -> bool:
        """Bring sum_i y_i x_i to zero, but for rounding; False if that fails."""
        K = self.problem.K
        for _ in range(_ROUNDS):
            off, size, room = self.sum("off_balance")
            if np.all(np.abs(off) <= 0.5 * _EPS * size):
                return True
            if K == 1:
                if not abs(off) < room:
                    break
                self.tell("tilt", off / room)
                continue
            H = room + (float(np.trace(room)) / K or 1.0) / K
            by = np.linalg.solve(H, off)
            by -= by.mean()
            if not np.abs(by).max() < 0.5:
                return False
            self.tell("tilt", by)
        if np.all(np.abs(off) <= 32 * _EPS * size):
            return True
        if K > 1:
            return False
        up, down = self.sum("halves")
        least = min(up, down)
        self.tell("scale", least / up if up else 1.0, least / down if down else 1.0)
        return True
