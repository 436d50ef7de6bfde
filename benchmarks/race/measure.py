"""How a race is run: CPU seconds to a given suboptimality, all contestants in turn.

1. Each contestant is given the loosest tolerance of its ladder that is sufficient for a target.
   It is looked for in a forked child that is ended from outside after so many CPU seconds.
2. Those that are near the best then run in turn in one forked child, one thread, and the best CPU
   time of several counts. A short fit is repeated for 30 ms, and the mean counts.

There is no RLIMIT_CPU: with it the CPU clock of Linux goes in ticks of 4 ms, and the best of
several is a lucky tick.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from contestants import OURS, OURS_WITHOUT, Contestant, Event

FORK = multiprocessing.get_context("fork")
#: A fit is repeated until it has taken so many seconds.
SHORTEST = 0.03
#: A contestant is given up when one fit takes so many times the best time so far ...
HOPELESS = 4.0
#: ... but never one that takes less than this.
NEVER_HOPELESS = 0.3
#: Those slower than so many times the best are not timed again.
FAR = 2.5


@dataclass
class Limits:
    """In CPU seconds: for a search, for the optimum, for the timing of a cell; rounds at most."""

    search: float = 30.0
    optimum: float = 100.0
    timing: float = 4.0
    rounds: int = 9


@dataclass
class Try:
    """One fit: its tolerance, its values, its CPU seconds."""

    tol: float | None
    values: list[float]
    seconds: float


@dataclass
class Searched:
    """What the search of a contestant found."""

    tries: list[Try] = field(default_factory=list)
    prepare: float = 0.0
    error: str = ""

    def loosest(self, star: list[float], target: float) -> Try | None:
        """The try with the loosest tolerance that reaches the target."""
        return next((t for t in self.in_order() if _within(t.values, star, target)), None)

    def in_order(self) -> list[Try]:
        """From loose to tight."""
        return sorted(self.tries, key=lambda t: -math.inf if t.tol is None else -t.tol)


def suboptimality(values: list[float], star: list[float]) -> float:
    """The largest (P - P*)/P*."""
    worst = max(v / s - 1 for v, s in zip(values, star, strict=True))
    return math.inf if math.isnan(worst) else worst


def _within(values: list[float], star: list[float], target: float) -> bool:
    return suboptimality(values, star) <= target


def _cpu_seconds(pid: int) -> float:
    """Of another process; 0 where there is no /proc, and then only the wall clock ends it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


Send = Callable[[Any], None]


def in_a_child(work: Callable[[Send], None], limit: float, first: float = 0.0) -> list[Any]:
    """All that work(send) sends, until it ends or has taken `limit` CPU seconds.

    Until it sends something it may take `first` seconds, if that is more, and these do not count:
    what a peer compiles at its first fit can take longer than everything after it.
    """
    receive, send = FORK.Pipe(duplex=False)

    def run() -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):  # what compiled code prints
            os.dup2(nowhere, stream)
        warnings.simplefilter("ignore")  # of peers that stop early: the values decide
        try:
            work(send.send)
        except Exception:
            send.send(traceback.format_exc(limit=-3))
        send.close()
        os._exit(0)

    child = FORK.Process(target=run)
    child.start()
    send.close()
    began, allowed = 0.0, max(first, limit)
    got, end = [], time.monotonic() + 6 * (first + limit) + 20
    with contextlib.suppress(EOFError):
        while time.monotonic() < end and _cpu_seconds(child.pid) - began < allowed:
            if receive.poll(0.1):
                got.append(receive.recv())
                if len(got) == 1:
                    began, allowed = _cpu_seconds(child.pid), limit
    child.kill()
    child.join()
    return got


def _warm_up(contestant: Contestant) -> Any:
    """What it prepares. What is imported, compiled and kept for later is so before the clock."""
    prepared = contestant.prepare()
    contestant.fit(prepared, contestant.tolerances[0])
    return prepared


def _timed(contestant: Contestant, prepared: Any, tol: float | None) -> tuple[Any, float]:
    """The answer and the CPU seconds of a fit."""
    start, count = time.process_time(), 0
    while True:
        answer = contestant.fit(prepared, tol)
        count += 1
        spent = time.process_time() - start
        if spent >= SHORTEST:
            return answer, spent / count


def search(
    event: Event,
    c: Contestant,
    star: list[float] | None,
    limit: float,
    cut: float = math.inf,
    warm_up: float = 0.0,
) -> Searched:
    """Fits of one contestant: every third tolerance, then the two before the first that does.

    It is given up when it has taken `limit` CPU seconds, or one fit more than `cut`.
    """

    def work(send) -> None:
        _warm_up(c)
        start = time.process_time()
        prepared = c.prepare()
        send(time.process_time() - start)
        known: dict[int, Try] = {}

        def reaches(k: int, target: float) -> bool:
            if k not in known:
                answer, seconds = _timed(c, prepared, c.tolerances[k])
                known[k] = Try(c.tolerances[k], event.values(c, answer), seconds)
                send(known[k])
            return star is None or _within(known[k].values, star, target)

        last, start_at = len(c.tolerances) - 1, 0
        for target in event.targets:
            first = None
            for k in [*range(start_at, last, 3), last]:
                if reaches(k, target):
                    first = k
                    break
                if known[k].seconds > cut:
                    return
            if first is None:
                return
            earlier = range(max(first - 2, start_at), first)
            start_at = next((k for k in earlier if reaches(k, target)), first)

    found = Searched()
    for message in in_a_child(work, limit, warm_up):
        if isinstance(message, Try):
            found.tries.append(message)
        elif isinstance(message, str):
            found.error = message.strip().splitlines()[-1]
        else:
            found.prepare = message
    return found


def in_turn(runs: dict[tuple[str, float], tuple[Contestant, Any]], limits: Limits) -> dict:
    """The best CPU seconds of each (name, target), all in turn in one child."""

    def work(send) -> None:
        ready: dict[str, Any] = {}
        for c, _ in runs.values():
            if c.name not in ready:
                ready[c.name] = _warm_up(c)
        best: dict[tuple[str, float], float] = {}
        began, done = time.process_time(), 0
        while done < limits.rounds and (done < 3 or time.process_time() - began < limits.timing):
            for key, (c, tol) in runs.items():
                rivals = [s for (_, target), s in best.items() if target == key[1]]
                if done > 1 and best[key] > FAR * min(rivals):
                    continue
                seconds = _timed(c, ready[c.name], tol)[1]
                best[key] = min(best.get(key, math.inf), seconds)
            done += 1
            send(dict(best))

    got = [m for m in in_a_child(work, 40 + 12 * limits.timing) if isinstance(m, dict)]
    return got[-1] if got else {}


def race(event: Event, limits: Limits) -> dict[str, Any]:
    """The record of a cell, of plain numbers and words."""
    stars: dict[str, list[float] | None] = {}
    for name in dict.fromkeys(c.problem for c in event.contestants):
        got = in_a_child(
            lambda send, name=name: send(event.optimum(name, limits.optimum)),
            2 * limits.optimum + 20,
        )
        stars[name] = got[-1] if got and isinstance(got[-1], list) else None
    found = _search_all(event, stars, limits)
    for c in event.contestants:  # the least that anybody found counts
        for t in found[c.name].tries:
            known = stars[c.problem] or t.values
            finite = np.where(np.isnan(t.values), math.inf, t.values)
            stars[c.problem] = np.minimum(known, finite).tolist()
    quick, runs = {}, {}
    for c in event.contestants:
        for target in event.targets:
            if found[c.name].tries and (t := found[c.name].loosest(stars[c.problem], target)):
                quick[c.name, target] = t.seconds
                runs[c.name, target] = (c, t.tol)
    near = {key: run for key, run in runs.items() if _is_near(key, quick)}
    best = quick | in_turn(near, limits) if near else quick
    seconds: dict[str, dict[str, float]] = defaultdict(dict)
    for (name, target), s in best.items():
        seconds[f"{target:g}"][name] = s + found[name].prepare
    return {
        "targets": [f"{target:g}" for target in event.targets],
        "seconds": dict(seconds),
        "tolerances": {f"{n} {target:g}": tol for (n, target), (_, tol) in runs.items()},
        "reached": {
            c.name: min(suboptimality(t.values, stars[c.problem]) for t in found[c.name].tries)
            for c in event.contestants
            if found[c.name].tries
        },
        "errors": {name: s.error for name, s in found.items() if s.error},
        "optimum": stars,
    }


def _search_all(event: Event, stars, limits: Limits) -> dict[str, Searched]:
    """The search of every contestant; the best time so far says when the next is hopeless."""
    found, best = {}, math.inf
    tightest = event.targets[-1]
    for c in event.contestants:
        star = stars[c.problem]
        limit = min(limits.search, max(4.0, 10 * HOPELESS * best))
        cut = max(NEVER_HOPELESS, HOPELESS * best)
        found[c.name] = search(event, c, star, limit, cut, warm_up=limits.search)
        arrived = [
            t.seconds
            for t in found[c.name].tries
            if star is None or _within(t.values, star, tightest)
        ]
        best = min([best, *arrived])
    return found


def _is_near(key: tuple[str, float], quick: dict[tuple[str, float], float]) -> bool:
    """Whether a contestant is worth timing: ours, the fast ones, and what is too short to tell."""
    fastest = min(s for (_, target), s in quick.items() if target == key[1])
    return key[0] in (OURS, OURS_WITHOUT) or quick[key] <= FAR * fastest or quick[key] < 0.02
