"""What a driver asks of an engine.

A shard is an object with some rows of the data. A task is the name of one of its methods. The
replies of all shards are added in the order of the shards, so that the bits of a sum do not depend
on who answered first, or on which machine a shard is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Any

#: Times in a row that shards are lost before the cluster is given up.
LOSSES = 20


class Lost(Exception):
    """Some shards have lost what they knew; `shards` says which. `Engine.rebuild` brings them back.

    What they had been told is gone: the driver tells them again.
    """

    def __init__(self, shards: Sequence[int], why: str = "") -> None:
        super().__init__(f"shards {list(shards)} are lost{': ' if why else ''}{why}")
        self.shards = tuple(shards)


class NoWorkers(RuntimeError):
    """No machine is left that could hold a shard. `best` is the answer so far, if there is one."""

    best: Any = None


class Engine(ABC):
    """Shards 0 to K - 1, which compute where they are."""

    @property
    @abstractmethod
    def shards(self) -> int:
        """How many there are."""

    @abstractmethod
    def each(self, task: str, *args: Any) -> list[Any]:
        """The reply of every shard, in their order. Raises `Lost` if one cannot answer."""

    @abstractmethod
    def rebuild(self, shard: int) -> None:
        """Bring a lost shard back, as it was before it was told anything."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all shards."""

    def sum(self, task: str, *args: Any) -> Any:
        """The sum of the replies: numbers, arrays, or tuples of those."""
        return reduce(_added, self.each(task, *args))

    def ask(self, task: str) -> list[Any]:
        """The reply of every shard to what it knows from its rows alone.

        Shards that are lost meanwhile are brought back, and asked again.
        """
        for _ in range(LOSSES):
            try:
                return self.each(task)
            except Lost as loss:
                lost = loss.shards
            for shard in lost:
                self.rebuild(shard)
        raise NoWorkers(f"shards were lost {LOSSES} times in a row: the cluster is not stable.")

    def ask_sum(self, task: str) -> Any:
        """The sum of what all say to `ask`."""
        return reduce(_added, self.ask(task))

    def tell(self, task: str, *args: Any) -> None:
        """Have every shard do something that needs no reply."""
        self.each(task, *args)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _added(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_added(*pair) for pair in zip(a, b, strict=True))
    return a + b
