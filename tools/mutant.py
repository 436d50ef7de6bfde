"""What a mutation is, and the tests that most of them meet."""

from __future__ import annotations

from dataclasses import dataclass

EDGES, EXTREMES, FILES = "test_certificate_edges.py", "test_extremes.py", "test_hostile_files.py"
OWN, SAFETY, ZEROS = "test_own_checked.py", "test_memory_safety.py", "test_zeros.py"
RULES = "test_plan_rules.py"
GUARD, EVERYDAY = "test_outputs_guard.py", "test_outputs_everyday.py"
SPARSE = "test_working_set.py"


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
