"""What one machine does with its rows: sums, and steps on its part of the dual.

    z   X w, the predictions                            x   the best dual point known
    Z   the predictions of some directions              new the dual point of the last look
    o   an offset of z (losses with kinks, see `lines`)

Methods of a `Shard` are the tasks that a driver sends to all of them. w has one entry more than
there are features if there is an intercept: X has then a border, a column of constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base.validation import Index, Vector
from ..._base.validation import Matrix as Table
from ..._kernels.paper.sdca import run_plain
from ...data import Stored, views
from ...losses import Loss
from ...penalties.interval import Interval
from ...problems import forms
from .curvature import Numbers, Simplex
from .interior_rows import InteriorRows

#: Where D is looked at between the best dual point and the new one.
TRIALS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class Job:
    """The problem, as far as a shard has to know it.

    loss      phi
    K         outputs
    n         samples of positive weight, in all shards
    unit      sample weights are multiplied by this, so that they sum to n
    constant  the number in the border of X; 0 without an intercept
    classes   the label of class k is classes[k]; None: labels are as they are
    positive  the class whose rows have the label 1, and all others -1; None: 0 to K - 1
    """

    loss: Any
    K: int
    n: int
    unit: float
    constant: float
    classes: Any = None
    positive: int | None = None


class Shard:
    """Some rows. `weights` is None if there are none, `number` says which shard it is."""

    def __init__(
        self, X: Stored, y: Any, weights: Vector | None, number: int = 0, rows: Index | None = None
    ) -> None:
        self.rows, self.labels, self.weights, self.number = X, y, weights, number
        self._places = np.arange(X.shape[0]) if rows is None else rows

    # ---- what there is --------------------------------------------------------------------------

    def sizes(self) -> tuple[Any, ...]:
        """(rows, of positive weight, their weight, numbers stored, sum of weight |a|^2, madds)."""
        X, n = self.rows, self.rows.shape[0]
        s = np.ones(n) if self.weights is None else self.weights
        squares = float(s @ X.squared_norms())
        return n, int(np.count_nonzero(s)), float(s.sum()), X.nnz, squares, X.gram_madds

    def shape(self) -> tuple[Any, ...]:
        """(d, whether it is sparse, the largest weight, the largest row norm)."""
        most = 1.0 if self.weights is None else float(self.weights.max())
        return self.rows.shape[1], self.rows.sparse, most, float(self.rows.squared_norms().max())

    def distinct(self) -> Any:
        """The labels of rows that have a weight, sorted."""
        kept = slice(None) if self.weights is None else self.weights > 0
        return np.unique(self.labels[kept])

    def everything(self) -> tuple[Any, ...]:
        """(rows, labels, weights, the places of the rows in the whole data)."""
        return self.rows, self.labels, self.weights, self._places

    # ---- state ----------------------------------------------------------------------------------

    def begin(self, job: Job, w: Table) -> None:
        """A new problem, at w; x = 0."""
        self.job, n = job, self.rows.shape[0]
        self.X = self.rows.bordered(job.constant) if job.constant else self.rows
        self.s = np.ones(1) if self.weights is None else job.unit * self.weights
        self.y = self.codes(job)
        self.loss = self._smooth = job.loss
        self._bend: type[Numbers | Simplex] = Numbers if job.K == 1 else Simplex
        self.x = np.zeros(n if job.K == 1 else (n, job.K))
        self.new: Any = self.x
        self._offset: Vector | None = None
        self._best = self._last = self.x
        self.at(w)

    def codes(self, job: Job) -> Any:
        """The labels as the loss reads them."""
        if job.positive is not None:
            return np.where(self.labels == job.classes[job.positive], 1.0, -1.0)
        y = self.labels if job.classes is None else np.searchsorted(job.classes, self.labels)
        return np.ascontiguousarray(y, dtype=np.float64 if job.K == 1 else np.int32)

    def at(self, w: Table) -> None:
        """Be at w, with no directions."""
        self.z = self.X.times(w)
        self._steps: list[Table] = []
        self._Z = np.empty((0, *self.z.shape))
        self._moved: Table | None = None

    def smooth(self, gamma: float, keep: float, cold: bool) -> None:
        """Smooth a loss of lines: phi* + (gamma/2)(x - c)^2, c the last dual point; cold: 0."""
        self.keep(keep)
        self._smooth = Lines(self.job.loss, gamma)
        sign = self.y if self.loss.margin else 1.0
        centre = np.zeros_like(self.x) if cold else self.new
        self._offset = -gamma * sign * centre / np.where(self.s > 0, self.s, 1.0)

    def keep(self, t: float) -> None:
        """x becomes the point t of the way to `new`."""
        if t:
            self.x = self.new if t == 1 else self.x + t * (self.new - self.x)

    @property
    def _z(self) -> Table:
        return self.z if self._offset is None else self.z + self._offset

    def _move(self, c: Vector) -> None:
        if c.size:
            step = np.tensordot(c, self._Z, 1)
            self.z = self.z + step
            self._moved = step if self._moved is None else self._moved + step

    # ---- looks ----------------------------------------------------------------------------------

    def slope(
        self, c: Vector, keep: float, way: Table | None = None, curved: bool = False
    ) -> tuple[Any, ...]:
        """Move by the first directions times c, or by all of a new direction, and look there.

        (gradient of the loss, smoothed loss, loss, phi* at five points between x and the new one,
        the Hessian of the smoothed loss if it is wanted)
        """
        self.keep(keep)
        if way is not None:
            self._aim(way, None)
        self._move(c)
        z = self._z
        self.new = self._smooth.duals(z, self.y, self.s)
        smooth = self._smooth.total(z, self.y, self.s)
        total = smooth if self._smooth is self.loss else self.loss.total(self.z, self.y, self.s)
        H = self.hessian() if curved else np.zeros(0)
        return self.gradient(), float(smooth), float(total), self._conjugates(), H

    def gradient(self) -> Table:
        """X' phi', of the last look."""
        return -self.X.adjoint(self.loss.signed(self.new, self.y))

    def _conjugates(self) -> Vector:
        points = (self.x + t * (self.new - self.x) for t in TRIALS)
        conjugate = self.loss.conjugate_total
        return np.array([conjugate(x, self.y, self.s) for x in points])

    def shrink(self, by: float) -> float:
        """Multiply the new dual point by a number; its sum of phi*."""
        self.new = by * self.new
        return float(self.loss.conjugate_total(self.new, self.y, self.s))

    def hessian(self) -> Table:
        """X' phi'' X at z, the upper triangle."""
        return self._curvature(self._z).gram(self.X)

    def gram_of(self, columns: Index, border: bool) -> Table:
        """X' phi'' X of some columns, and of the border if there is one to be added."""
        bend = self._bend.of(self._smooth, self._z, self.y, self.s).bend  # type: ignore[union-attr]
        H = self.rows.gram(bend, columns)
        if not border:
            return H
        c, size = self.job.constant, columns.size
        out = np.empty((size + 1, size + 1))
        out[:size, :size] = np.triu(H) + np.triu(H, 1).T
        out[size, :size] = out[:size, size] = c * self.rows.adjoint(bend)[columns]
        out[size, size] = c * c * float(bend.sum())
        return out

    def _curvature(self, z: Table) -> Numbers | Simplex:
        return self._bend.of(self._smooth, z, self.y, self.s)

    # ---- searches -------------------------------------------------------------------------------

    def directions(self, p: Table, memory: int | None) -> tuple[Any, ...]:
        """Directions: p, and the last steps and each intercept unless memory is None.

        Gives what `probe` does at c = 0.
        """
        self._aim(p, memory)
        return self.probe(np.zeros(len(self._Z)))

    def _aim(self, p: Table, memory: int | None) -> None:
        if self._moved is not None:
            self._steps = [self._moved, *self._steps]
            self._moved = None
        self._steps = self._steps[: memory or 0]
        ones = [] if memory is None else self._constants()
        self._Z = np.stack([self.X.times(p), *self._steps, *ones])

    def _constants(self) -> list[Table]:
        c, shape = self.job.constant, self.z.shape
        if not c:
            return []
        if self.job.K == 1:
            return [np.full(shape, c)]
        made = np.zeros((self.job.K, *shape))
        for k in range(self.job.K):
            made[k, :, k] = c
        return list(made)

    def probe(self, c: Vector) -> tuple[Any, ...]:
        """(smoothed loss, gradient in c, Hessian in c) at z + Z c, without moving there."""
        z = self._z + np.tensordot(c, self._Z, 1)
        slope = -self.loss.signed(self._smooth.duals(z, self.y, self.s), self.y)
        along = self._Z.reshape(len(c), -1) @ slope.reshape(-1)
        total = float(self._smooth.total(z, self.y, self.s))
        return total, along, self._curvature(z).form(self._Z)

    # ---- a step on the shard's own dual ---------------------------------------------------------

    def local(self, keep: float, mean: Vector, w: Vector, lam: Vector, alpha: float, passes: int,
              seed: int) -> tuple[Any, ...]:  # fmt: skip
        """Sweeps of SDCA on the rows of this shard, the others replaced by their gradient.

            v ~ argmin (1/S) sum_i s_i phi_i(a_i'v) + <l - G/S - r w, v> + (alpha/2)|v|^2

        S is the weight of this shard, G its gradient, l the mean one, r_j = alpha - lam_j. With
        v = (A x - shift)/(alpha S) and x of the last look, A x - shift = S (r w - l) at first.
        Gives (S v, phi* at five points); x of v is the new dual point.
        """
        self.keep(keep)
        n, s = self.rows.shape[0], self.s
        S = float(np.broadcast_to(s, n).sum())
        square = Interval(np.zeros(1), np.ones(1), np.full(1, -np.inf), np.full(1, np.inf))
        form = forms.dual(
            self.X,
            self.y,
            s,
            self.loss,
            square,
            alpha,
            S,
            self.X.squared_norms(),
        )
        r, x = S * ((alpha - lam) * w - mean), np.array(self.new)
        rng = np.random.default_rng((seed, self.number))
        kept = np.flatnonzero(np.broadcast_to(s > 0, n)).astype(np.intp)
        model, arrays = form.model(), self.X.view(views.arrays)
        for _ in range(passes):
            run_plain(*arrays, model, x, r, rng.permutation(kept))
        self.new = self.loss.clip(x, self.y, s)
        return r / alpha, self._conjugates()

    # ---- interior points ------------------------------------------------------------------------

    def interior_begin(self) -> None:
        """Pieces of the rows, in the middle."""
        self._pieces = InteriorRows(self.X, self.y, self.s, self.loss)

    def interior(self, t: float, w: Table) -> tuple[Any, ...]:
        """Move by t of the last step, to w: (sum of phi, of phi*, A x), and what a step needs."""
        own, self.z, self.x = self._pieces, self.X.times(w), np.zeros_like(self.x)
        self.x[own.kept] = own.move(t)
        self.x = self.loss.clip(self.x, self.y, self.s)
        total = float(self.loss.total(self.z, self.y, self.s))
        conjugate = float(self.loss.conjugate_total(self.x, self.y, self.s))
        return total, conjugate, self.X.adjoint(self.loss.signed(self.x, self.y)), *own.weigh()

    def interior_predict(self, dw: Vector) -> tuple[Any, ...]:
        """As `InteriorRows` does."""
        return self._pieces.predict(dw)

    def interior_correct(self, dw: Vector, centre: float) -> tuple[float]:
        """As `InteriorRows` does."""
        return (self._pieces.correct(dw, centre),)

    # ---- the certificate ------------------------------------------------------------------------

    def off_balance(self) -> tuple[Any, ...]:
        """(sum_i y_i x_i, of |x_i|, what `tilt` is solved with) for the best x."""
        signed = self.loss.signed(self.x, self.y)
        size = np.abs(signed).sum(axis=0)
        if self.job.K == 1:
            return float(signed.sum()), float(size), float(self.loss.room(self.x, self.s).sum())
        p, each = self._shares()
        return signed.sum(axis=0), size, np.diag(each @ p) - (p * each[:, None]).T @ p

    def tilt(self, by: Any) -> None:
        """Bring x nearer to balance: by its room, or by pi_k *= 1 + by_k - <pi, by>."""
        if self.job.K == 1:
            sign = self.y if self.loss.margin else 1.0
            x = self.x - by * sign * self.loss.room(self.x, self.s)
        else:
            p, each = self._shares()
            p = p * (1 + by - (p @ by)[:, None])
            x = -each[:, None] * p
            at = np.arange(len(x))
            x[at, self.y] = 0.0
            x[at, self.y] = -x.sum(axis=1)
        self.x = self.loss.clip(x, self.y, self.s)

    def _shares(self) -> tuple[Table, Vector]:
        each = np.broadcast_to(self.s, len(self.x))
        p = -self.x / np.where(each > 0, each, 1.0)[:, None]
        p[np.arange(len(p)), self.y] += 1.0
        return p, each

    def halves(self) -> tuple[float, float]:
        """The sums of the positive and of the negative y_i x_i."""
        signed = self.loss.signed(self.x, self.y)
        return float(signed[signed > 0].sum()), float(-signed[signed < 0].sum())

    def scale(self, up: float, down: float) -> None:
        """Multiply the positive y_i x_i by `up`, the negative by `down`."""
        signed = self.loss.signed(self.x, self.y)
        self.x = self.x * np.where(signed > 0, up, down)

    def certify(self, w: Table, good: bool) -> tuple[Any, ...]:
        """(sum of phi, of phi*, A x) from w and x alone; good: the last x was the best so far."""
        z, x = self.X.times(w), self.x
        self._best = self._last if good else self._best
        self._last = x
        total = float(self.loss.total(z, self.y, self.s))
        conjugate = float(self.loss.conjugate_total(x, self.y, self.s))
        return total, conjugate, self.rows.adjoint(self.loss.signed(x, self.y))

    def dual_point(self, good: bool) -> tuple[Index, Table]:
        """The x of the best certificate, and the places of its rows in the whole data."""
        return self._places, self._last if good else self._best


class Lines(Loss):
    """A loss made of lines with (gamma/2)x^2 more in its conjugate, which makes it smooth."""

    def __init__(self, loss: Loss, gamma: float) -> None:
        self._lines, self.gamma = loss, gamma
        self.margin, self.name = loss.margin, f"smoothed {loss.name}"

    @property
    def domain(self) -> tuple[float, float]:  # type: ignore[override]
        """That of the loss."""
        return self._lines.domain

    @property
    def theta(self) -> tuple[float, ...]:
        """Those of the loss, and gamma."""
        k, epsilon, _, lower, upper = self._lines.theta
        return k, epsilon, self.gamma, lower, upper
