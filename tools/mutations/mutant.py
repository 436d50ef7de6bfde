"""What a mutation is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """Put `new` in the place of `old`, which is once in the file; `tests` should notice."""

    file: str
    what: str
    old: str
    new: str
    tests: str
    only: str = ""  # the words that choose among them, for speed
    why: str = ""  # it may survive, and why
