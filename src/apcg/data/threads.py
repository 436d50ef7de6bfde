"""Threads for products with a large X: each has a part of the rows.

    with threads.using(2):
        X.gram(s)

Sums over the parts are in the order of the rows. So the bits depend on the number of threads, and
on nothing else. BLAS gets one thread meanwhile: there are never more than were asked for.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .._base.validation import Matrix as Table
from .._base.validation import Vector

T = TypeVar("T")


class Parted(Protocol):
    """What is asked of an X in memory: its size, and some rows of it in the same memory."""

    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        """How many numbers are stored."""

    @property
    def lengths(self) -> Vector:
        """How many of each row."""

    def part(self, at: slice, norms: Vector | None) -> Any:
        """These rows."""

    def view(self, kind: Callable[..., Any], *args: Any) -> Any:
        """kind(X, *args), made once."""


#: An X with fewer numbers is one part: to wake a thread takes as long as a product with it.
LARGE = 2**19

#: How many threads, and what they are taken from. A thread of the pool has none itself.
_at_hand: ContextVar[tuple[int, ThreadPoolExecutor] | None] = ContextVar("threads", default=None)


def count(n_jobs: object) -> int:
    """How many threads n_jobs asks for: None is one, -1 one for each core, -2 one fewer, and so on.

    Examples
    --------
    >>> from apcg.data import threads
    >>> threads.count(None), threads.count(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be None, a number of threads, or -1 for all, got {n_jobs!r}."
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(n_jobs) if n_jobs > 0 else max((cores or 1) + 1 + int(n_jobs), 1)


@contextlib.contextmanager
def using(n_jobs: object) -> Iterator[None]:
    """Products with a large X are by so many threads in this block, BLAS included.

    None changes nothing: BLAS then has as many threads as the user gave it.
    """
    wanted = count(n_jobs)
    if n_jobs is None:
        yield
        return
    with one_in_blas():
        if wanted == 1:
            yield
            return
        with ThreadPoolExecutor(wanted) as pool:
            token = _at_hand.set((wanted, pool))
            try:
                yield
            finally:
                _at_hand.reset(token)


@contextlib.contextmanager
def one_in_blas() -> Iterator[None]:
    """BLAS has one thread in this block."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # it looks at every library that is loaded: once is enough


def split(X: Parted, parts: int) -> list[tuple[slice, Any]]:
    """X in parts of consecutive rows, with about as many numbers in each, in the same memory."""
    n = X.shape[0]
    ends = np.cumsum(X.lengths)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, parts) / parts) + 1
    edges = np.unique([0, *cuts.tolist(), n]).tolist()
    return [(at, X.part(at, None)) for at in map(slice, edges[:-1], edges[1:])]


def each(X: Parted, task: Callable[[slice, Any], T]) -> list[T] | None:
    """What the task gives for each part, in order; None if X is small, or there are no threads."""
    at_hand = _at_hand.get()
    if at_hand is None or X.nnz < LARGE:
        return None
    parts, pool = at_hand
    return list(pool.map(lambda part: task(*part), X.view(split, parts)))


def total(X: Parted, task: Callable[[slice, Any], Table]) -> Table | None:
    """The sum of what the task gives; None as in `each`."""
    found = each(X, task)
    if found is None:
        return None
    for more in found[1:]:
        found[0] += more
    return found[0]


def joined(X: Parted, task: Callable[[slice, Any], Table]) -> Table | None:
    """What the task gives, one below the other; None as in `each`."""
    found = each(X, task)
    return None if found is None else np.concatenate(found)
