"""Mutations of the rules that a certificate, a file or a choice rests on: does a test notice?

    python tools/mutants.py                 # all, a table in docs/mutants.md
    python tools/mutants.py certificate     # those whose file or name has this word

Each mutation is made in a copy of the package (`overlay`), one at a time, and the tests that are
about the place are run on it. A mutation that no test notices has survived.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import overlay

EDGES, EXTREMES, FILES = "test_certificate_edges.py", "test_extremes.py", "test_hostile_files.py"
OWN, SAFETY, ZEROS = "test_own_checked.py", "test_memory_safety.py", "test_zeros.py"
RULES = "test_plan_rules.py"


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


MUTANTS = [
    # ---- the certificate ----------------------------------------------------------------------
    Mutant(
        "certificate.py",
        "sums of a method may end a run",
        "if not found.exact and found.gap",
        "if False and found.gap",
        EDGES,
        only="sums_of_a_method",
    ),
    Mutant(
        "certificate.py",
        "NaN stays in D",
        "-math.inf if math.isnan(D) else D",
        "D",
        EXTREMES,
        only="no_nan",
    ),
    Mutant(
        "certificate.py",
        "NaN stays in P",
        "math.inf if math.isnan(P) else P",
        "P",
        EXTREMES,
        only="no_nan",
    ),
    Mutant(
        "certificate.py",
        "an unbalanced x is not balanced",
        "if problem.intercept and imbalance(problem.y * x if problem.loss.margin else x) > 1:",
        "if False:",
        EDGES,
        only="unbalanced_x",
    ),
    Mutant(
        "_solve.py",
        "a certificate from kept sums is given back",
        "if not found.exact:\n",
        "if False:\n",
        EDGES,
        only="cut_short",
    ),
    Mutant(
        "_solve.py",
        "polishing always taken",
        "return new if new.gap <= max(found.gap, tol * abs(found.primal)) else found",
        "return new",
        EDGES,
        only="polishing",
    ),
    Mutant(
        "_solve.py",
        "polishing never taken",
        "return new if new.gap <= max(found.gap, tol * abs(found.primal)) else found",
        "return found",
        ZEROS,
        only="zeros_of_the_optimum and apcg and squared",
    ),
    Mutant(
        "_solve.py",
        "an infinite P is an answer",
        "if not math.isfinite(final.primal):",
        "if False:",
        EXTREMES,
        only="overflow",
    ),
    Mutant("points.py", "P = 0 divides", "if self.primal == 0:", "if False:", "test_solve.py"),
    Mutant(
        "judge.py",
        "3 looks of patience",
        "PATIENCE = 20",
        "PATIENCE = 3",
        EDGES,
        only="slow_problem",
    ),
    Mutant(
        "judge.py",
        "rounding is 1e5 eps",
        "FLOOR = 16 *",
        "FLOOR = 1e5 *",
        EDGES,
        only="is_not_rounding",
    ),
    Mutant(
        "judge.py",
        "slow counts as rounding",
        "stalled = stuck and self._rises > since // 4",
        "stalled = stuck",
        "test_judge.py",
    ),
    Mutant(
        "judge.py",
        "lengths of points are not looked at",
        "if given.shape != (length,):",
        "if False:",
        OWN,
        only="points_of_a_method",
    ),
    Mutant(
        "loop.py",
        "idle advances are free",
        "int(self.idle > IDLE)",
        "0",
        EXTREMES,
        only="never_works",
    ),
    # ---- losses -------------------------------------------------------------------------------
    Mutant(
        "_kernels/types.pxd",
        "weights forgive a millionth",
        "(1.0 - 4.5e-16)",
        "(1.0 - 1e-6)",
        EDGES,
        only="bounds_times_weights",
    ),
    Mutant(
        "_kernels/types.pxd",
        "no compensation of sums",
        "if s - s == 0.0:",
        "if False:",
        EDGES,
        only="compensated",
    ),
    Mutant(
        "_kernels/losses.pyx",
        "x at weight 0 is free",
        "elif x[i] != 0.0:",
        "elif False:",
        EDGES,
        only="weight_zero",
    ),
    Mutant(
        "_kernels/losses.pyx",
        "the square of phi* is smaller",
        "+ 0.5 * theta[2] * x * x",
        "+ 0.499999 * theta[2] * x * x",
        "test_losses.py",
        only="conjugate",
    ),
    Mutant(
        "_kernels/losses.pyx",
        "labels may be short",
        "same(labels.shape[0], t.shape[0])",
        "pass",
        OWN,
        only="kernels_of_losses",
    ),
    Mutant(
        "_kernels/losses.pyx",
        "theta may be short",
        "if count != wanted:",
        "if False:",
        OWN,
        only="kernels_of_losses",
    ),
    Mutant(
        "losses.py",
        "overrides are ignored",
        "refuse_overrides(loss, Loss, _SAYS, _CURE)",
        "pass",
        OWN,
    ),
    Mutant(
        "losses.py",
        "no domain is the hinge loss",
        'if nearest is Loss and not said & {"domain", "theta"}:',
        "if False:",
        OWN,
        only="without_numbers",
    ),
    Mutant(
        "losses.py",
        "theta and domain may differ",
        'if loss.kernel == "interval" and (',
        "if False and (",
        "test_loss_names.py",
    ),
    Mutant(
        "losses.py",
        "no quick check",
        "quick_loss_report(loss).raise_if_wrong()",
        "pass",
        OWN,
        only="numbers_that_are_no_loss",
    ),
    Mutant(
        "weights.py",
        "weights of 1e-320",
        "if np.count_nonzero(weights > LEAST) < n:",
        "if False:",
        EXTREMES,
        only="no_sum_can_show",
    ),
    # ---- the regulariser ----------------------------------------------------------------------
    Mutant(
        "_kernels/terms.pyx",
        "L1 forgives 1e-4",
        "    elif w > 0.0:\n        w = INFINITY\n    elif w < 0.0:\n        w = -INFINITY\n",
        "    elif w > 1e-4:\n        w = INFINITY\n    elif w < -1e-4:\n        w = -INFINITY\n",
        EDGES,
        only="l1_bounds",
    ),
    Mutant(
        "regulariser.py",
        "excess forgives",
        "bound / self.a, 0.0)",
        "bound / self.a / 1.001, 0.0)",
        "test_regulariser.py",
    ),
    Mutant(
        "regulariser.py",
        "excess by a rounding",
        "math.nextafter(1.0, 2.0)",
        "1.0",
        "test_own_regulariser.py",
    ),
    Mutant(
        "regulariser.py",
        "own parts need not agree",
        "agree = abs(math.fsum(parts)) <= _AGREE * scale",
        "agree = True",
        "test_own_regulariser.py",
    ),
    Mutant("regulariser.py", "overrides are ignored", "        refuse_ignored(penalty)\n", "", OWN),
    # ---- the intercept ------------------------------------------------------------------------
    Mutant(
        "intercept.py",
        "balance to 1e-9",
        "room = 64 *",
        "room = 6.4e7 *",
        EDGES,
        only="balance_of_an_intercept",
    ),
    Mutant(
        "intercept.py",
        "one round of balance",
        "for _ in range(3):",
        "for _ in range(1):",
        EDGES,
        only="million_entries",
    ),
    Mutant(
        "intercept.py",
        "no clip after balance",
        "x = loss.clip(x, weights)  # a rounding may be outside",
        "pass",
        "test_intercept.py",
    ),
    Mutant(
        "intercept.py",
        "an end of the interval of b",
        "middle = 0.5 * (float(below.max()) + float(above.min()))",
        "middle = float(below.max())",
        "test_intercept.py",
    ),
    Mutant(
        "erm.py",
        "D without the balance",
        "if self.intercept and free.imbalance(self._signed(x)) > 1:",
        "if False:",
        EDGES,
        only="balance_of_an_intercept",
    ),
    Mutant(
        "erm.py",
        "tiny rows keep their norms",
        "np.where(norms < least, 0.0, norms)",
        "norms",
        EXTREMES,
        only="next_to_nothing or tiny_x",
    ),
    # ---- files --------------------------------------------------------------------------------
    Mutant(
        "data/check.py",
        "index arrays are believed",
        "return arrays is not None and matrix.within(*arrays[1:], _minor(A))",
        "return arrays is not None",
        SAFETY,
        only="own_format",
    ),
    Mutant(
        "_kernels/matrix.pyx",
        "decreasing indptr",
        "if end < begin or end > stored:\n                outside",
        "if end > stored:\n                outside",
        SAFETY,
        only="own_format",
    ),
    Mutant(
        "_archive.py",
        "a bomb is expanded",
        "if total > most:",
        "if False:",
        FILES,
        only="proportion",
    ),
    Mutant(
        "_archive.py",
        "a header is believed",
        "if size != left:",
        "if False:",
        FILES,
        only="claims_more",
    ),
    Mutant(
        "_archive.py",
        "compressed models",
        "if stored and any(",
        "if False and any(",
        FILES,
        only="compressed_parts",
    ),
    Mutant(
        "model.py",
        "no seal",
        "if hashlib.sha256(text.encode()).hexdigest() != ",
        "if False and '' != ",
        "test_model.py",
    ),
    Mutant(
        "model.py",
        "digests are believed",
        "if digests != {name: _digest(part) for name, part in parts.items()}:",
        "if False:",
        "test_model.py",
    ),
    Mutant(
        "model.py", "what is sealed is sound", "    _check(model)\n", "", FILES, only="sealed_model"
    ),
    Mutant(
        "datasets/libsvm.py",
        "lines without end",
        "if waiting > LINE:",
        "if False:",
        FILES,
        only="without_end",
    ),
    Mutant(
        "datasets/libsvm.py",
        "NUL is text",
        r'if b"\0" in got:',
        "if False:",
        FILES,
        only="nul_is_no_text",
    ),
    Mutant(
        "datasets/libsvm.py",
        "a text bomb",
        "if below is not None and expanded >",
        "if False and expanded >",
        FILES,
        only="proportion",
    ),
    Mutant(
        "datasets/__init__.py",
        "a stray index",
        "d <= WIDE * X.nnz + WIDE_IN_ANY_CASE:",
        "True:",
        FILES,
        only="stray_index",
    ),
    Mutant(
        "datasets/cache.py",
        "the time of a source",
        '"mtime_ns": stat.st_mtime_ns',
        '"mtime_ns": 0',
        FILES,
        only="keeps_its_size",
    ),
    Mutant(
        "datasets/cache.py",
        "any arrays",
        'if set(header["arrays"]) != set(ARRAYS):',
        "if False:",
        FILES,
        why="what is missing is a KeyError a line later, and what is more is never read",
        only="cache_header",
    ),
    Mutant(
        "cli/__init__.py",
        "a traceback",
        "    except Exception as error:\n",
        "    except ZeroDivisionError.__class__ as error:\n",
        FILES,
        only="nobody_expected",
    ),
    # ---- the plan -----------------------------------------------------------------------------
    Mutant(
        "methods/plan.py",
        "an own penalty gets coordinates",
        "if not problem.separable:\n            return AFGMethod()",
        "if False:\n            return AFGMethod()",
        RULES,
    ),
    Mutant("methods/plan.py", "wide problems are tall", "if d > t.widest:", "if False:", RULES),
    Mutant(
        "methods/plan.py",
        "leaves at the tolerance",
        "if not (possible and gap > self._tol):",
        "if not possible:",
        RULES,
    ),
    Mutant(
        "methods/plan.py",
        "no margin",
        "* self._pass > margin * cost",
        "* self._pass > 0 * cost",
        RULES,
    ),
    Mutant(
        "methods/plan.py",
        "leaves too early",
        "if passes * self._pass < trusted:",
        "if False:",
        RULES,
    ),
    Mutant(
        "methods/plan.py",
        "a rate that rises",
        "if not before or before[-1][1] <= gap:",
        "if not before:",
        RULES,
    ),
    # ---- around it ----------------------------------------------------------------------------
    Mutant(
        "methods/adaptive/resting.py",
        "never expired",
        "return passes >= self._until",
        "return False",
        EDGES,
        only="left_out",
    ),
    Mutant(
        "estimators/linear.py",
        "Ctrl-C is swallowed",
        "            raise KeyboardInterrupt  # the",
        "            pass  # the",
        EDGES,
        only="ctrl_c_in_fit",
    ),
    Mutant(
        "_path.py",
        "no look ahead",
        "for count in range(2, len(seen) + 1):",
        "for count in range(2, 2):",
        EDGES,
        only="looks_ahead",
    ),
    Mutant(
        "_minimize.py",
        "no zeros",
        "problem.with_zeros(best.certificate.x)",
        "best.certificate.x",
        ZEROS,
        only="test_minimize",
    ),
    Mutant(
        "methods/direct.py",
        "own objects keep mu = 1",
        "if left == 1 and self._rate.saw(self._value(), self.n, 1):",
        "if False:",
        ZEROS,
        only="own_objects_adapt",
    ),
    Mutant(
        "functions.py",
        "an indefinite Q",
        "        check_semidefinite(columns.stored)\n",
        "",
        OWN,
        only="indefinite",
    ),
]


def tried(mutant: Mutant) -> str:
    """Whether it was killed or survived, or what went wrong with the trial."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = overlay.copy(folder)
        path = package / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return f"stale: its text is {text.count(mutant.old)} times in the file"
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        if mutant.file.endswith(".pyx"):
            overlay.build(package, path.stem)
        elif mutant.file.endswith(".pxd"):
            overlay.build(package, "losses")  # the tests of these reach them through it
        words = ["-k", mutant.only] if mutant.only else []
        code, said = overlay.forked(folder, "-x", f"tests/{mutant.tests}", *words)
    if code == 0:
        return "survived"
    # 1: tests failed; a crash or a hang (a signal) is noticed as well
    return "killed" if code == 1 or code < 0 else f"error {code}: {said[-300:]}"


def table(results: list[tuple[Mutant, str]]) -> str:
    """The report, as docs/mutants.md has it."""
    killed = sum(said == "killed" for _, said in results)
    lines = [
        "# Mutations",
        "",
        "`make mutants` changes one rule of the package at a time, in a copy, and runs the tests",
        "that are about the place. A change that no test notices has survived. The rules are those",
        "that a certificate, a file or a choice of method rests on; tools/mutants.py has them.",
        "",
        f"Of {len(results)} mutations {killed} were killed.",
        "",
        "| file | mutation | tests | result |",
        "|---|---|---|---|",
    ]
    for mutant, said in results:
        why = f": {mutant.why}" if said != "killed" and mutant.why else ""
        lines.append(f"| `{mutant.file}` | {mutant.what} | {mutant.tests} | {said}{why} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Try all, or those that are asked for."""
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(w in f"{m.file} {m.what}" for w in words)]
    results = []
    for mutant in chosen:
        start = time.perf_counter()
        said = tried(mutant)
        results.append((mutant, said))
        print(
            f"{said:<10}{time.perf_counter() - start:6.0f} s  {mutant.file}: {mutant.what}",
            flush=True,
        )
    if not words:
        (overlay.ROOT / "docs" / "mutants.md").write_text(table(results), encoding="utf-8")
    left = [(m, said) for m, said in results if said != "killed"]
    unexplained = [m for m, _ in left if not m.why]
    print(
        f"{len(results)} mutations, {len(left)} not killed, {len(unexplained)} of them unexplained"
    )
    return 1 if unexplained or len(left) > 3 else 0


if __name__ == "__main__":
    sys.exit(main())
