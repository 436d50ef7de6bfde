"""Shards on the workers of a Dask cluster.

The rows of a shard are a future with lineage: Dask computes them again, from the collection, if
their worker is lost. What a shard is told lives in an actor beside them, which does not come back
by itself: `rebuild` makes a new one. Which rows form a shard never depends on where Dask puts them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client, Future, wait
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from .base import Engine, Lost, NoWorkers

#: What a lost worker shows itself by; some of these are raised just after the loss only.
_LOSSES = (OSError, TimeoutError, FutureCancelledError, KilledWorker)
#: Seconds between looks at the cluster, while it is silent.
_PATIENCE = 5.0


class DaskEngine(Engine):
    """Actors on the workers of a client.

    rows     a Dask collection for each shard, whose value `make` takes
    make     the shard of such a value and its number
    timeout  seconds that a cluster may be without workers
    """

    def __init__(
        self, client: Client, rows: Sequence[Any], make: Callable[[Any], Any], timeout: float = 60.0
    ) -> None:
        if client.asynchronous:
            raise ValueError(
                "client must not be asynchronous: the driver waits for sums. Give Client(address) "
                "of the same cluster."
            )
        self._client, self._rows, self._make, self._timeout = client, list(rows), make, timeout
        self._name = f"apcg-{uuid.uuid4().hex[:8]}"
        self._made = 0
        self._actors: list[Any] = [None] * len(rows)
        self._holders: list[Future | None] = [None] * len(rows)
        self._futures: list[Future] = client.compute(self._rows)
        try:
            for shard in range(len(rows)):
                self.rebuild(shard)
        except BaseException:
            self.close()
            raise

    @property
    def shards(self) -> int:
        """How many there are."""
        return len(self._rows)

    def each(self, task: str, *args: Any) -> list[Any]:
        """The reply of every actor, in their order."""
        calls: list[Any] = []
        for actor in self._actors:
            try:
                calls.append(getattr(actor, task)(*args))
            except RuntimeError:  # "Worker holding Actor was lost"
                calls.append(None)
        replies, lost = list[Any](), list[int]()
        for shard, call in enumerate(calls):
            try:
                replies.append(self._reply(shard, call))
            except Lost:
                lost.append(shard)
        if lost:
            raise Lost(lost)
        return replies

    def _reply(self, shard: int, call: Any) -> Any:
        """What the actor says; `Lost` if its worker is gone."""
        while call is not None:
            try:
                return call.result(timeout=_PATIENCE)
            except TimeoutError:
                holder = self._holders[shard]
                alive = holder is not None and holder.status in ("finished", "pending")
                if alive and self._workers():
                    continue  # it works on
            except _LOSSES:
                pass
            break
        raise Lost([shard])

    def _workers(self) -> list[str]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"])

    def rebuild(self, shard: int) -> None:
        """A new actor beside the rows, which are computed again if they are lost too."""
        since, pause = time.monotonic(), 0.05
        while True:
            found = ""
            try:
                found = self._begin(shard) if self._workers() else ""
            except _LOSSES:  # another worker went while we were at it
                self._actors[shard] = None
            if found == "made":
                return
            if found == "computing":
                since = time.monotonic()
            if time.monotonic() - since > self._timeout:
                raise NoWorkers(
                    f"no worker has taken shard {shard} for {self._timeout:g} seconds. Start "
                    "workers and fit again, or give a longer timeout."
                )
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _begin(self, shard: int) -> str:
        """Try once: "made", or "computing" while the rows are, or "lost"."""
        rows = self._futures[shard]
        if rows.status in ("cancelled", "lost", "error"):
            if rows.status == "error" and not isinstance(rows.exception(), _LOSSES):
                rows.result()  # raises what is wrong with the data
            rows = self._futures[shard] = self._client.compute(self._rows[shard])
        if rows.status == "pending":
            wait(rows, timeout=_PATIENCE)
        if rows.status == "pending":
            return "computing"
        # just after a loss rows may count as finished, and nobody has them
        where = sorted(self._client.who_has([rows])[rows.key])
        if rows.status != "finished" or not where:
            return "lost"
        self._made += 1
        holder = self._client.submit(
            self._make, rows, actor=True, workers=where[:1], pure=False,
            key=f"{self._name}-shard-{shard}-{self._made}",
        )  # fmt: skip
        self._actors[shard] = self._made_at(where[0], holder)
        self._holders[shard] = holder
        return "made"

    def _made_at(self, worker: str, holder: Future) -> Any:
        """The actor, once it is there: a worker that is alive may take long to import apcg."""
        while True:
            try:
                return holder.result(timeout=_PATIENCE)
            except TimeoutError:
                if worker not in self._workers():
                    raise

    def close(self) -> None:
        """Leave nothing on the workers."""
        held = [future for future in (*self._holders, *self._futures) if future is not None]
        self._actors, self._holders, self._futures = [], [], []
        try:
            self._client.cancel(held, force=True)
        except (*_LOSSES, RuntimeError):  # the cluster is gone, and all it held
            return
