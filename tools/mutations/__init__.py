"""The mutations, by what they change: `ROOMS` says which file of this folder has those of a room.

A new one goes under the heading of the source file that it changes. It says what breaks, quotes a
text that is once in that file, and names the tests that should notice, and words (`only`, as for
`pytest -k`) that choose the few of them that are about the place.
"""

from __future__ import annotations

from . import answers, data_and_estimators, methods, plan, problems
from .mutant import Mutant as Mutant

ROOMS = {
    answers: ("certify", "run", "_kernels/common"),
    problems: ("losses", "penalties", "problems", "_kernels/losses"),
    plan: ("methods/plan",),
    methods: ("methods", "_kernels/newton"),
    data_and_estimators: ("_base", "data", "datasets", "model", "estimators", "cli",
                          "_kernels/data"),
}  # fmt: skip
MUTANTS = [mutant for file in ROOMS for mutant in file.MUTANTS]
