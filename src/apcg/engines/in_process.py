"""Shards in this process, one after the other: for tests, and as the model of other engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .base import Engine, Lost


class InProcess(Engine):
    """Shards made by functions; `lose` makes the next message to a shard fail."""

    def __init__(self, makers: Sequence[Callable[[], Any]]) -> None:
        if not makers:
            raise ValueError("an engine needs at least one shard.")
        self._makers = tuple(makers)
        self._made: list[Any] = [make() for make in self._makers]

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self._makers)

    def each(self, task: str, *args: Any) -> list[Any]:
        """The reply of every shard."""
        gone = [k for k, shard in enumerate(self._made) if shard is None]
        if gone:
            raise Lost(gone)
        return [getattr(shard, task)(*args) for shard in self._made]

    def lose(self, shard: int) -> None:
        """Forget a shard, as if its machine had died."""
        self._made[shard] = None

    def rebuild(self, shard: int) -> None:
        """Make it again."""
        self._made[shard] = self._makers[shard]()

    def close(self) -> None:
        """Forget all."""
        self._made = []
