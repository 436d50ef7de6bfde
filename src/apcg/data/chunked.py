"""X whose rows come in parts: larger than memory, or from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from .._base.validation import Index, Vector, check_length
from .._base.validation import Matrix as Table
from .dense import Dense
from .matrix import Stored
from .sparse import Sparse, index_type

T = TypeVar("T")
P = ParamSpec("P")

#: Bytes of a number and its index.
_BYTES = 12


class Chunked:
    """A matrix of parts, one below the other. Each is loaded when it is used, and then let go.

    parts  functions that load a part, a `Stored` of some rows; all of one kind
    sizes  (rows, numbers stored) of each; without them, each part is loaded once to see

    Products are computed part by part, and summed in the order of the parts: so the bits of a
    result do not depend on who computes a part, or when. A class that uses threads, or machines
    that each hold some parts, overrides `each`.
    """

    in_memory = False
    #: Bytes of X that may be in memory at a time, for `groups`.
    room: float = 2**28

    def __init__(
        self,
        parts: Sequence[Callable[[], Stored]],
        sizes: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        if not parts:
            raise ValueError("a matrix in parts needs at least one.")
        self._parts, first = tuple(parts), parts[0]()
        self.sparse, self.constant, d = first.sparse, first.constant, first.shape[1]
        if sizes is None:
            found = (part() for part in self._parts)
            sizes = [(X.shape[0], X.nnz) for X in found if self._same(X, d)]
        self._sizes = tuple(sizes)
        self._starts = np.cumsum([0, *(rows for rows, _ in sizes)])
        self.shape = int(self._starts[-1]), d
        self.nnz = sum(stored for _, stored in sizes)

    def _same(self, part: Stored, d: int) -> bool:
        if (part.sparse, part.shape[1]) == (self.sparse, d):
            return True
        raise ValueError(f"all parts must be of one kind and have {d} columns, got {part!r}.")

    def __repr__(self) -> str:
        n, d = self.shape
        return f"Chunked({n} x {d}, {self.nnz} stored, in {len(self._parts)} parts)"

    def each(self, task: Callable[[slice, Stored], T]) -> Iterator[T]:
        """What the task gives for each part and the slice of its rows, in their order."""
        return (task(at, part) for at, part in self.chunks())

    def chunks(self, n: int | None = None) -> Iterator[tuple[slice, Stored]]:
        for load, first in zip(self._parts, self._starts.tolist(), strict=False):
            for at, part in load().chunks(n):
                yield slice(first + at.start, first + at.stop), part

    def groups(self, rng: np.random.Generator) -> Iterator[list[int]]:
        """All parts in random order, in groups that may be in memory together."""
        group, size = list[int](), 0.0
        for k in rng.permutation(len(self._parts)).tolist():
            own = _BYTES * self._sizes[k][1]
            if group and size + own > self.room:
                yield group
                group, size = [], 0.0
            group.append(k)
            size += own
        yield group

    def gather(self, which: Sequence[int]) -> Stored:
        """Some parts in memory, one below the other."""
        return stack([self._parts[k]() for k in which])

    def rows_of(self, which: Sequence[int]) -> Index:
        """The numbers of the rows that `gather` gives."""
        starts = self._starts
        return np.concatenate([np.arange(starts[k], starts[k + 1]) for k in which])

    def _sum(self, task: Callable[[slice, Stored], Table]) -> Table:
        found = self.each(task)
        total = next(found)
        for more in found:
            total = total + more
        return total

    def _stack(self, task: Callable[[slice, Stored], Table]) -> Table:
        return np.concatenate(list(self.each(task)))

    # ---- products -------------------------------------------------------------------------------

    def times(self, W: Table) -> Table:
        check_length(W, self.shape[1], "W", columns=True)
        if not W.any():
            return np.zeros((self.shape[0], *W.shape[1:]))
        return self._stack(lambda at, part: part.times(W))

    def adjoint(self, R: Table) -> Table:
        check_length(R, self.shape[0], "R", columns=True)
        if not R.any():
            return np.zeros((self.shape[1], *R.shape[1:]))
        return self._sum(lambda at, part: part.adjoint(R[at]))

    def gram(self, s: Vector, columns: Index | None = None) -> Table:
        check_length(s, self.shape[0], "s")
        return self._sum(lambda at, part: part.gram(s[at], columns))

    def gram_times(self, s: Vector, p: Vector, q: Vector) -> Vector:
        for given, size, name in ((s, self.shape[0], "s"), (q, self.shape[0], "q")):
            check_length(given, size, name)
        return self._sum(lambda at, part: part.gram_times(s[at], p, q[at]))

    def row_gram(self, weights: Vector | None = None) -> Table:
        raise TypeError(self._not_here("row_gram"))

    # ---- sizes ----------------------------------------------------------------------------------

    def squared_norms(self, weights: Vector | None = None) -> Vector:
        if weights is not None:
            return self._stack(lambda at, part: part.squared_norms(weights))
        return self._norms

    @cached_property
    def _norms(self) -> Vector:
        norms = self._stack(lambda at, part: part.squared_norms())
        norms.flags.writeable = False  # all who ask get the same array
        return norms

    def column_squares(self, s: Vector) -> Vector:
        check_length(s, self.shape[0], "s")
        return self._sum(lambda at, part: part.column_squares(s[at]))

    def largest(self) -> float:
        return max(self.each(lambda at, part: part.largest()))

    @cached_property
    def lengths(self) -> Vector:
        return self._stack(lambda at, part: part.lengths)

    @cached_property
    def gram_madds(self) -> float:
        return sum(self.each(lambda at, part: part.gram_madds))

    # ---- other forms of it ----------------------------------------------------------------------

    def rows(self, some: Index) -> Stored:
        order = np.argsort(some, kind="stable")
        wanted = np.asarray(some)[order]
        ends = np.searchsorted(wanted, self._starts)

        def own(at: slice, part: Stored) -> Stored:
            k = int(np.searchsorted(self._starts, at.start, side="right")) - 1
            return part.rows(wanted[ends[k] : ends[k + 1]] - at.start)

        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return stack(list(self.each(own))).rows(back)

    def pick(self, columns: Index) -> Stored:
        return stack(list(self.each(lambda at, part: part.pick(columns))))

    def view(self, kind: Callable[Concatenate[Stored, P], T], *args: P.args, **more: P.kwargs) -> T:
        raise TypeError(self._not_here(f"the layout {kind.__name__!r}"))

    def _not_here(self, what: str) -> str:
        return (
            f"{what} needs all of X in memory, and X comes in {len(self._parts)} parts; take a "
            'method that needs no more than products with X, as method="auto" does.'
        )

    def bordered(self, constant: float) -> Chunked:
        def with_border(load: Callable[[], Stored]) -> Callable[[], Stored]:
            return lambda: load().bordered(constant)

        return Chunked([with_border(load) for load in self._parts], self._sizes)

    @cached_property
    def with_ones(self) -> Chunked:
        return self.bordered(1.0)


def stack(parts: Sequence[Stored]) -> Stored:
    """Parts, one below the other, as one matrix in memory."""
    first, norms = parts[0], np.concatenate([part._squared_norms(np.empty(0)) for part in parts])
    if not first.sparse:
        return Dense(np.concatenate([part.stored for part in parts]), norms, first.constant)
    arrays: list[Any] = [part._arrays for part in parts]
    stored = np.cumsum([0, *(data.size for data, _, _ in arrays)])
    index = index_type(first._arrays[2].dtype, int(stored[-1]))
    starts = [a[2][:-1].astype(index) + begin for a, begin in zip(arrays, stored, strict=False)]
    return Sparse(
        np.concatenate([data for data, _, _ in arrays]),
        np.concatenate([indices for _, indices, _ in arrays], dtype=index),
        np.concatenate([*starts, stored[-1:]], dtype=index),
        first._d,
        norms,
        first.constant,
    )
