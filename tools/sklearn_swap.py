"""A pytest plugin: scikit-learn's tests on the classes of `apcg.linear_model`.

APCG_SWAP=ours swaps the names, before any test module is imported, because `parametrize` keeps
classes; APCG_SWAP=theirs leaves scikit-learn as it is. APCG_SWAP_LOG is a file that gets a line of
JSON for each test: how it ended, which classes it fitted, and how often who solved. A `fit` that
ends without a call of our solver counts as scikit-learn's, so that an inherited one is seen.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

MODE = os.environ.get("APCG_SWAP", "ours")
LOG = Path(os.environ["APCG_SWAP_LOG"])


class Seen:
    """What the test at work has done so far."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin a test."""
        self.names: set[str] = set()
        self.engine = self.theirs = self.depth = 0


SEEN = Seen()


def watched(name: str, function: Any) -> Any:
    """A `fit` or a path that is counted. Only the outermost call is."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        SEEN.names.add(name)
        before, SEEN.depth = SEEN.engine, SEEN.depth + 1
        try:
            result = function(*args, **kwargs)
        finally:
            SEEN.depth -= 1
        if SEEN.depth == 0 and SEEN.engine == before:
            SEEN.theirs += 1
        return result

    return call


def counted(function: Any) -> Any:
    """A solver of ours that is counted."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        SEEN.engine += 1
        return function(*args, **kwargs)

    return call


def swap_names() -> None:
    """Count the solvers, watch the classes, and put them into the modules of scikit-learn."""
    from apcg import linear_model, patch
    from apcg.linear_model import answers
    from apcg.linear_model._sklearn import theirs

    pairs = {}
    answers.Answers.take = counted(answers.Answers.take)  # type: ignore[method-assign]
    for name in linear_model.__all__:
        made = getattr(linear_model, name)
        if isinstance(made, type):
            made.fit = watched(name, made.fit)  # type: ignore[attr-defined]
        else:
            made = watched(name, made)
            for module in [m for p, m in sys.modules.items() if p.startswith("apcg.linear_model")]:
                if vars(module).get(name) is not None and name in vars(module):
                    setattr(module, name, made)
        pairs[name] = (getattr(theirs, name), made)
    patch.swap(pairs, homes=True)


if MODE == "ours":
    swap_names()


def pytest_runtest_setup(item: Any) -> None:
    """Begin a test."""
    SEEN.clear()


def pytest_runtest_logreport(report: Any) -> None:
    """Write how it ended: the call, or what went wrong before or after it."""
    if report.when != "call" and report.outcome == "passed":
        return
    row = {
        "test": report.nodeid.split("::", 1)[-1],
        "outcome": "xfailed" if hasattr(report, "wasxfail") else report.outcome,
        "names": sorted(SEEN.names),
        "engine": SEEN.engine,
        "theirs": SEEN.theirs,
        "seconds": round(report.duration, 3),
    }
    if report.outcome == "failed":
        row["why"] = str(report.longrepr).strip().splitlines()[-1][:300]
        crash = getattr(report.longrepr, "reprcrash", None)
        row["why"] = crash.message[:500] if crash else row["why"]
    with LOG.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
