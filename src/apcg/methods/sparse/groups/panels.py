"""Groups of columns side by side in panels of eight, with what is left of the targets: sweeps.

    minimize scale |R|^2/2 + sum_q a_q |W_q|,   R = Y - X W

A sweep needs no Gram matrix but those of its sets, a panel or a few each, and costs 2 n d K. Where
columns are nearly orthogonal a handful is enough. Where it is not, by the rate that was seen, the
Gram matrix of what is not zero takes less time, and it is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._base.validation import Index, Matrix, Vector
from ...._kernels.sparse import panels

_WIDTH = 8


@dataclass(frozen=True)
class PanelTuning:
    """Constants of sweeps over panels.

    Where no figure is given a value is a first guess, which was not varied.
    """

    #: groups of more than one column are put together in sets of so many columns
    set_columns: int = 16
    #: turns over the groups of a set, until one goes less than this part of the first
    inner: int = 5
    part: float = 0.1
    #: sweeps before the rate is looked at; between looks there are up to four times as many
    look: int = 4
    #: a round ends after so many looks, or models, so that the time that is left is looked at
    looks: int = 20
    models: int = 2
    #: a multiply-add of a Gram matrix, and of a sweep on it, over one of a sweep over panels
    gram_cost: float = 1.0
    model_cost: float = 0.7
    #: so many sweeps on a Gram matrix are predicted at most: Newton steps then do the rest. Without
    #: it few rows had no model. (A first guess, not varied)
    model_sweeps: int = 100
    #: a Gram matrix is made if it takes less than this part of the predicted time of the sweeps
    margin: float = 0.7
    #: or if the sweeps since the last one took so many times as long. 300 x 300 of rank 10 and
    #: noise, 6 outputs, /30 and /100 to 1e-3 take 0.47 and 0.37 of the time without it.
    #: 2,000 x 200 columns alike at /30 take 1.4 with 1 here, and 0.97 with 2
    spent: float = 2.0
    #: with so many rows a column there are no stages; 4 was slower on random and low rank data
    #: (300 x 300, 6 outputs, /100 to 1e-3) and faster on columns alike (3,000 x 100)
    tall_at: float = 1.0
    #: the Gram matrix of a set is made at once if it costs no more than so many sweeps, where there
    #: are no stages. 1,000 x 100 random columns, 4 outputs, at /30 take 1.2 times as long with 8,
    #: and columns alike at /100 half as long
    first_sweeps: float = 6.0
    #: a first set of more than this part of all groups has all of them, where there are no stages:
    #: of 200 random columns at lambda_max/30 195 violate at zero, and 3 more later
    most: float = 0.75
    #: a set grows by up to this share of all columns, if so many violate and there are stages
    share: float = 0.1


TUNING = PanelTuning()


def gram_first(rows: int, columns: int, K: int) -> bool:
    """Whether a Gram matrix takes less time than a few sweeps over panels."""
    return 0.5 * rows * columns**2 <= TUNING.first_sweeps * 2 * rows * columns * K


@dataclass(frozen=True)
class Layout:
    """Which column is where. Set s has the panels panel[s]:panel[s + 1], and so on for groups.

    real   the places of columns of X among those of the panels, the rest are zeros
    start  the place of the first column of each group, and the end
    at     where the Gram matrix of each set begins
    """

    real: Index
    start: Index
    panel: Index
    group: Index
    at: Index

    @classmethod
    def of(cls, sizes: Index) -> Layout:
        """Of groups with so many columns."""
        if sizes.size == 0 or sizes.max() == 1:
            count = sizes.size
            sets = -(-count // _WIDTH)
            steps = np.arange(sets + 1)
            start = np.arange(count + 1)
            start[-1] = _WIDTH * sets
            group = np.minimum(_WIDTH * steps, count)
            return cls(np.arange(count), start, steps, group, _WIDTH**2 * steps[:-1])
        starts, panel, ends = [0], [0], [0]
        for q, size in enumerate(sizes.tolist()):
            if starts[-1] + size > _WIDTH * panel[-1] + TUNING.set_columns and q > ends[-1]:
                panel.append(-(-starts[-1] // _WIDTH))
                starts[-1] = _WIDTH * panel[-1]
                ends.append(q)
            starts.append(starts[-1] + size)
        panel.append(-(-starts[-1] // _WIDTH))
        ends.append(len(sizes))
        starts[-1] = _WIDTH * panel[-1]
        start = np.array(starts)
        real = np.repeat(start[:-1] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        squares = (_WIDTH * np.diff(panel)) ** 2
        return cls(real, start, np.array(panel), np.array(ends), np.cumsum(squares) - squares)

    def joined(self, other: Layout, numbers: int) -> Layout:
        """Both, one after the other; there are `numbers` in the Gram matrices of the first."""
        panels_, groups = int(self.panel[-1]), int(self.group[-1])
        columns = _WIDTH * panels_
        return Layout(
            np.concatenate([self.real, other.real + columns]),
            np.concatenate([self.start[:-1], other.start + columns]),
            np.concatenate([self.panel[:-1], other.panel + panels_]),
            np.concatenate([self.group[:-1], other.group + groups]),
            np.concatenate([self.at, other.at + numbers]),
        )


@dataclass(frozen=True)
class PanelSource:
    """Where columns are from: rows times `root`, less their means; either may be empty."""

    X: Any
    mean: Vector
    root: Vector
    scale: float

    def columns(self, numbers: Index) -> Matrix:
        """Some columns, side by side; X itself if that is all there is to it."""
        every = numbers.size == self.X.shape[1] and bool((numbers[1:] > numbers[:-1]).all())
        X = self.X if every else self.X[:, numbers]
        X = X if X.dtype == np.float64 else X.astype(np.float64)
        if self.mean.size:
            X = X - self.mean[numbers]
        return np.asarray(X * self.root[:, None] if self.root.size else X)


class Panels:
    """The groups of a working set: their columns, W and sweeps."""

    by_gram = False

    def __init__(
        self, source: PanelSource, columns: Index, sizes: Index, a: Vector, W: Matrix, R: Matrix
    ) -> None:
        """Group q has the next sizes[q] of `columns`; W has a row for each of these."""
        self._source, self._scale, self.a = source, source.scale, a
        K = R.shape[1]
        #: what is left of the targets, with zeros up to a multiple of four for the kernels
        self.R = np.zeros((len(R), K if K == 1 else -(-K // 4) * 4))
        self.R[:, :K] = R
        self._sizes = sizes
        self.layout, self.X, self._grams = self._made(columns, sizes)
        self._place(W)
        #: multiply-adds so far
        self.work = 0.0

    def extend(self, columns: Index, sizes: Index, a: Vector, W: Matrix) -> None:
        """With more groups; `a` and W are of all of them."""
        lay, X, grams = self._made(columns, sizes)
        self.layout = self.layout.joined(lay, self._grams.size)
        self.X = np.concatenate([self.X, X])
        self._grams = np.concatenate([self._grams, grams])
        self._sizes, self.a = np.concatenate([self._sizes, sizes]), a
        self._place(W)

    def _made(self, columns: Index, sizes: Index) -> tuple[Layout, Any, Vector]:
        """The panels of these columns, and the Gram matrices of their sets."""
        lay, of = Layout.of(sizes), self._source
        count = int(lay.panel[-1])
        places = np.full(_WIDTH * count, -1)
        places[lay.real] = columns
        X = np.empty((count, of.X.shape[0], _WIDTH))
        panels.pack(of.X, places, of.mean, of.root, X)
        grams = np.empty(int(lay.at[-1]) + (_WIDTH * int(lay.panel[-1] - lay.panel[-2])) ** 2)
        panels.grams(X, lay.panel, lay.at, of.scale, grams)
        return lay, X, grams

    def _place(self, W: Matrix) -> None:
        lay, K = self.layout, W.shape[1]
        widest = _WIDTH * int(np.max(np.diff(lay.panel)))
        self._room = np.empty(max(3 * widest * K + _WIDTH * (self.R.shape[1] + K), 2 * widest**2))
        self.W = np.zeros((_WIDTH * self.X.shape[0], K))
        self.W[lay.real] = W
        self._alive = np.zeros(lay.at.size, np.uint8)
        self._bend = np.empty(self._sizes.size)
        panels.largest(self._grams, lay.panel, lay.group, lay.at, lay.start, self._room, self._bend)
        self._bend *= 1 + 1e-12
        self._gram: tuple[Index, Matrix] | None = None

    @property
    def weights(self) -> Matrix:
        """W, a row for each column that was given."""
        return self.W[self.layout.real]

    def sweeps(self, whole: bool, most: int, wanted: tuple[float, float, float, float]) -> Vector:
        """Up to `most` sweeps: how far each went, relative to a_q."""
        t, lay, far = TUNING, self.layout, np.empty(most)
        done = panels.sweeps(
            self.X, self._grams, lay.panel, lay.group, lay.at, lay.start, self._bend, self.a,
            self._scale, self.R, self.W, self._room, self._alive, whole, t.inner, t.part, *wanted,
            far,
        )  # fmt: skip
        self.work += 2.0 * done * self.W.size * self.X.shape[1]
        return far[:done]

    def solve(self, wanted: tuple[float, float, float, float], model: Any) -> None:
        """Sweeps, and where these are slow a model on what is not zero, until it is as wanted.

        `model(G, g, W, starts, bend, a, wanted)` gives the new W.
        """
        t = TUNING
        most, whole, models, failed, done = t.look, True, 0, False, 0
        for _ in range(t.looks):
            far = self.sweeps(whole, most, wanted)
            if far.size < most or far[-1] == 0:
                return
            whole = False
            left = self._sweeps_left(far, wanted)
            if left <= 0:
                return
            done += far.size
            if failed or not self._gram_pays(left, done):
                most = int(min(max(left, 2), 4 * t.look, max(self._worth() - done, 2)))
                continue
            if models == t.models:
                return
            models, failed = models + 1, not self._by_gram(wanted, model)
            most, whole, done = t.look, True, 0

    def _sweeps_left(self, far: Vector, wanted: tuple[float, float, float, float]) -> float:
        """How many more sweeps, at the rate of the last ones."""
        target, enough, fine, least = wanted
        total = self.total() or 1.0
        goal = max(min(target, enough / total), min(fine, least / total), 1e-15)
        if far[-1] <= goal:
            return 0.0
        rate = (far[-1] / far[0]) ** (1 / (far.size - 1)) if far[0] > 0 else 0.0
        return math.log(goal / far[-1]) / math.log(rate) if 0 < rate < 1 else math.inf

    def total(self) -> float:
        """sum_q a_q |W_q|"""
        squares = np.add.reduceat(np.einsum("jk,jk->j", self.W, self.W), self.layout.start[:-1])
        return float(self.a @ np.sqrt(squares))

    def _some(self) -> Index:
        """The panels of sets that are not zero."""
        kept = np.repeat(self._alive.astype(bool), np.diff(self.layout.panel))
        return np.flatnonzero(kept)

    def _worth(self) -> float:
        """The sweeps that take as long as a Gram matrix; with few rows that is not looked at."""
        size = _WIDTH * self._some().size
        if size > 2 * self.X.shape[1]:
            return math.inf
        return float(TUNING.spent * TUNING.gram_cost * 0.25 * size / self.W.shape[1])

    def _gram_pays(self, left: float, done: int = 0) -> bool:
        """Whether a Gram matrix is predicted to take less time, or so many sweeps took as long.

        The rate is that of the first sweeps, and later ones are often slower.
        """
        t, n, K = TUNING, self.X.shape[1], self.W.shape[1]
        size = _WIDTH * self._some().size
        made = self._gram is not None and np.array_equal(self._gram[0], self._some())
        once = 0.0 if made else t.gram_cost * 0.5 * n * size * size
        if done >= self._worth():
            return True
        left, sweep = min(left, 1e4), 2.0 * n * size * K
        by_gram = once + t.model_cost * min(left, t.model_sweeps) * size * size * K
        return bool(by_gram < t.margin * left * sweep)

    def value(self) -> float:
        """scale |R|^2/2 + sum_q a_q |W_q|"""
        return 0.5 * self._scale * float(np.vdot(self.R, self.R)) + self.total()

    def _by_gram(self, wanted: tuple[float, float, float, float], model: Any) -> bool:
        """The model on what is not zero, by its Gram matrix; False and undone if P is above."""
        some, lay = self._some(), self.layout
        if self._gram is None or not np.array_equal(self._gram[0], some):
            G = np.empty((_WIDTH * some.size,) * 2)
            panels.gram(self.X, some, self._scale, G)
            self._gram = some, G
            self.work += 0.5 * self.X.shape[1] * G.size
        G = self._gram[1]
        g = np.empty_like(self.W)
        panels.products(self.X, self.R, self._scale, self._room, g)
        rows = (_WIDTH * some[:, None] + np.arange(_WIDTH)).ravel()
        alive = np.repeat(self._alive.astype(bool), np.diff(lay.group))
        starts = np.concatenate([[0], np.cumsum(np.diff(lay.start)[alive])])
        made = model(G, g[rows], self.W[rows], starts, self._bend[alive], self.a[alive], wanted)
        before, W, R = self.value(), self.W.copy(), self.R.copy()
        change = np.zeros_like(self.W)
        change[rows] = made - self.W[rows]
        self.W[rows] = made
        panels.move(self.X, change, self._room, self.R)
        if self.value() <= before * (1 + 1e-12):
            return True
        self.W, self.R[:] = W, R
        return False
