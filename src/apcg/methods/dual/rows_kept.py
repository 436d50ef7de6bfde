"""The rows that sweeps step on: those at rest are dropped, and come back if they should."""

from __future__ import annotations

import numpy as np

from ..._base.validation import Index, Matrix, Vector
from .setup_k import SetupK
from .setup_one import SetupOne


class RowsKept:
    """The rows that are left."""

    def __init__(self, setup: SetupOne | SetupK, shrink: bool) -> None:
        self._setup, self._shrink = setup, shrink
        self.keep = setup.all

    def drop(self, listed: Index, gap: float, primal: float) -> None:
        """After a sweep: rows i that it marked with ~i are left out; thresholds for the next."""
        setup, rows = self._setup, ~listed[listed < 0]
        if rows.size:
            kept = np.ones(setup.problem.n_samples, dtype=bool)
            kept[rows] = False
            self.keep = self.keep[kept[self.keep]]
        if self._shrink:
            setup.set_thresholds(gap, primal)
        else:
            setup.tally.open()

    def open(self) -> None:
        """All rows again, and none dropped in the next sweep."""
        self.keep = self._setup.all
        self._setup.release()
        self._setup.tally.open()

    def bring_back(self, a: Vector | Matrix, z: Vector | Matrix) -> bool:
        """Rows left out that do not rest beyond the thresholds, by their predictions; any?"""
        setup = self._setup
        if self.keep.size == setup.all.size:
            return False
        out = np.ones(setup.problem.n_samples, dtype=bool)
        out[self.keep] = False
        rows = setup.all[out[setup.all]]
        back = rows[~setup.resting(a, z, rows)]
        if back.size:
            self.keep = np.sort(np.concatenate([self.keep, back]))
            setup.release()
            setup.tally.open()
        return bool(back.size)
