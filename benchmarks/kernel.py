"""What a step of the kernels costs, against a plain C loop that does the same arithmetic.

    python benchmarks/kernel.py --nonzeros 10 75 400 --loss smoothed_hinge squared logistic

prints Markdown tables for APCG (Algorithm 5) and SDCA: instructions a step, counted by callgrind
(valgrind); and nanoseconds a step, best of many, all in turn in one process. The plain loops are
those of plain.c, compiled here with the system's C compiler for the processor the kernels are for,
by each of VARIANTS; the best one counts. All take the same steps in the same order, and it is
checked that they arrive at the same point.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from apcg import ERM
from apcg.data import views
from apcg.methods.paper.apcg import APCG
from apcg.methods.paper.sdca import SDCA
from apcg.sequences import Sequence

N, D, PASSES = 4000, 5000, 3
ALPHA = 1e-5
LOSSES = ("smoothed_hinge", "squared", "logistic")
METHODS = ("apcg", "sdca")
OPTIONS = ["-march=x86-64-v2", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
#: How plain.c is compiled; the best of them counts.
VARIANTS = ("-O2", "-O3")
LIBRARIES = "APCG_PLAIN_LIBRARIES"
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
MISSING = (
    "valgrind is not installed: no instruction counts. Debian and Ubuntu: apt install valgrind"
)


class CannotCount(RuntimeError):
    """Valgrind, its headers or a C compiler are missing."""


@dataclass(frozen=True)
class Data:
    """What is stepped on: rows with so many nonzeros (0: dense rows of length d), and the loss."""

    nonzeros: int
    loss: str
    dtype: str = "float64"
    n: int = N
    d: int = D

    @functools.cached_property
    def problem(self) -> ERM:
        rng = np.random.default_rng(0)
        y = np.where(rng.random(self.n) < 0.5, -1.0, 1.0)
        if self.nonzeros == 0:
            X = rng.standard_normal((self.n, self.d)).astype(self.dtype)
            return ERM(X, y, self.loss, "l2", ALPHA)
        # distinct columns without drawing without replacement, which is slow for large d
        apart = self.d // self.nonzeros
        columns = rng.integers(apart, size=(self.n, self.nonzeros), dtype=np.int32)
        columns += apart * np.arange(self.nonzeros, dtype=np.int32)
        values = rng.standard_normal(columns.size).astype(self.dtype)
        indptr = np.arange(self.n + 1, dtype=np.int32) * self.nonzeros
        X = sp.csr_matrix((values, columns.ravel(), indptr), shape=(self.n, self.d))
        return ERM(X, y, self.loss, "l2", ALPHA)

    @property
    def name(self) -> str:
        return f"{self.nonzeros}" if self.nonzeros else f"{self.d}, dense"


Job = tuple[str, str, Data]  # "ours" or one of VARIANTS, the method, the data


def ours(data: Data, method: str) -> APCG | SDCA:
    """The library's method at its start."""
    p = data.problem
    start = np.zeros(p.n)
    if method == "sdca":
        return SDCA(p.form, start)
    return APCG(p.form, start, Sequence(p.n, p.mu, p.mu), fold_at=0.0)


# ---- the plain loops ----------------------------------------------------------------------------


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("a", "column", "start", "y", "L")),
        ("d", ctypes.c_ssize_t),
        *((name, ctypes.c_double) for name in ("n", "lam", "gamma")),
    )


@functools.cache
def libraries() -> dict[str, str]:
    """The paths of plain.c compiled by each of VARIANTS; LIBRARIES tells them to a child."""
    if LIBRARIES in os.environ:
        return dict(json.loads(os.environ[LIBRARIES]))
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise CannotCount("There is no C compiler to compile plain.c with; set CC.")
    source = Path(__file__).with_name("plain.c")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    paths = {}
    for k, variant in enumerate(VARIANTS):
        paths[variant] = str(Path(folder) / f"plain{k}.so")
        options = [*variant.split(), *OPTIONS, "-fPIC", "-shared"]
        subprocess.run([compiler, *options, str(source), "-o", paths[variant], "-lm"], check=True)
    return paths


def _pointer(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


class Plain:
    """The same by plain.c, compiled with these options."""

    def __init__(self, data: Data, method: str, variant: str = VARIANTS[0]) -> None:
        if data.dtype != "float64":
            raise ValueError("plain.c is for float64.")
        p = data.problem
        values, columns, starts = (np.asarray(a) for a in p.samples.view(views.arrays))
        dense = len(starts) == 0
        if not dense and starts.dtype != np.int32:
            raise ValueError("plain.c is for 32 bit indices.")
        self._keep = values, columns, starts, p.y, p.L
        self._problem = _Problem(
            _pointer(values),
            _pointer(None if dense else columns),
            _pointer(None if dense else starts),
            _pointer(p.y),
            _pointer(p.L),
            p.d,
            p.n,
            p.alpha,
            p.loss.gamma,
        )
        kind = "dense" if dense else "sparse"
        self._call = getattr(ctypes.CDLL(libraries()[variant]), f"{method}_{data.loss}_{kind}")
        self._call.restype = ctypes.c_double if method == "apcg" else None
        self._method, self._mu, self.s = method, p.mu, 1.0
        self.u, self.v = np.zeros(p.n), np.zeros(p.n)
        self.pq = np.zeros((p.d, 2) if method == "apcg" else p.d)
        assert self.pq.ctypes.data % 16 == 0

    def epoch(self, order: np.ndarray) -> None:
        """One step on each coordinate of `order`."""
        steps = _pointer(order), len(order)
        problem, pointer, size = ctypes.byref(self._problem), ctypes.c_void_p, ctypes.c_ssize_t
        last = pointer(steps[0]), size(steps[1])
        v, rows = pointer(_pointer(self.v)), pointer(_pointer(self.pq))
        if self._method == "sdca":
            self._call(problem, v, rows, *last)
        else:
            mu, s, u = ctypes.c_double(self._mu), ctypes.c_double(self.s), pointer(_pointer(self.u))
            self.s = self._call(problem, mu, s, u, v, rows, *last)

    @property
    def x(self) -> np.ndarray:
        """x^(k)"""
        return self.v + 0.5 * self.s * self.u


def stepper(side: str, method: str, data: Data) -> APCG | SDCA | Plain:
    """A side of the comparison at its start."""
    return ours(data, method) if side == "ours" else Plain(data, method, side)


def difference(data: Data, method: str, passes: int = PASSES) -> float:
    """The largest difference of any x_i after some passes, relative to the largest x_i."""
    rng = np.random.default_rng(1)
    sides = ours(data, method), Plain(data, method)
    for _ in range(passes):
        order = rng.permutation(data.n)
        for side in sides:
            side.epoch(order)
    a, b = (side.x for side in sides)
    return float(np.max(np.abs(a - b)) / np.max(np.abs(a)))


# ---- measuring ----------------------------------------------------------------------------------


def child(jobs: list[Job]) -> None:
    """What is run under callgrind."""
    plain = ctypes.CDLL(libraries()[VARIANTS[0]])
    for job in jobs:
        data, steps = job[-1], stepper(*job)
        rng = np.random.default_rng(2)
        order = np.concatenate([rng.permutation(data.n) for _ in range(PASSES)])
        plain.begin()
        steps.epoch(order)
        plain.end()


def counts(jobs: list[Job]) -> list[float]:
    """Instructions a step of each job, (side, method, data): all that it calls included."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise CannotCount(MISSING)
    if not hasattr(ctypes.CDLL(libraries()[VARIANTS[0]]), "begin"):
        raise CannotCount("valgrind/callgrind.h is not installed: no instruction counts.")
    with tempfile.TemporaryDirectory() as folder:
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={Path(folder) / 'out'}"]
        work = json.dumps([(side, method, asdict(data)) for side, method, data in jobs])
        done = subprocess.run(
            [*command, sys.executable, __file__, "--child", work],
            capture_output=True,
            text=True,
            env=os.environ | ENVIRONMENT | {LIBRARIES: json.dumps(libraries())},
        )
        if done.returncode:
            raise RuntimeError(f"callgrind failed:\n{done.stderr[-2000:]}")
        # a file for each call of `end`, and one at the end of the process
        files = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        found = [re.search(r"^(?:totals|summary): (\d+)", f.read_text(), re.M) for f in files]
    totals = [int(match[1]) for match in found if match]
    return [t / (data.n * PASSES) for t, (*_, data) in zip(totals, jobs, strict=True)]


def nanoseconds(data: Data, repeats: int) -> list[float]:
    """The best time of a step for each of JOBS, measured in turn."""
    steppers = [stepper(side, method, data) for side, method in JOBS]
    best = [np.inf] * len(JOBS)
    rng = np.random.default_rng(3)
    for _ in range(repeats):
        order = rng.permutation(data.n)
        for k, one in enumerate(steppers):
            start = time.process_time()
            one.epoch(order)
            best[k] = min(best[k], (time.process_time() - start) / data.n * 1e9)
    return best


SIDES = ("ours", *VARIANTS)
JOBS = [(side, method) for method in METHODS for side in SIDES]


def print_table(sets: list[Data], found: Iterable[list[float]]) -> None:
    """A row for each set of data, with what was found for JOBS."""
    print("| loss | nonzeros a row | APCG | plain C | ratio | SDCA | plain C | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for data, values in zip(sets, found, strict=True):
        cells = [data.loss, data.name]
        for k in range(0, len(JOBS), len(SIDES)):
            mine, plain = values[k], min(values[k + 1 : k + len(SIDES)])
            cells += [f"{mine:.0f}", f"{plain:.0f}", f"{mine / plain:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nonzeros", nargs="+", type=int, default=[10, 75, 400, 0])
    parser.add_argument("--loss", nargs="+", default=list(LOSSES), choices=LOSSES)
    parser.add_argument("--dense", type=int, default=100, help="length of dense rows (nonzeros 0)")
    parser.add_argument(
        "--large",
        nargs=2,
        type=int,
        default=[20_000, 1_500_000],
        metavar="N",
        help="rows and columns of the data that is timed and outgrows the cache",
    )
    parser.add_argument("--repeats", type=int, default=30, help="of the timing; 0 leaves it out")
    parser.add_argument("--quick", action="store_true", help="one loss, two row lengths")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        child([(side, method, Data(**data)) for side, method, data in a.child])
        return
    if a.quick:
        a.nonzeros, a.loss, a.repeats = [10, 75], ["smoothed_hinge"], min(a.repeats, 10)
    sets = [Data(m, loss, d=D if m else a.dense) for loss in a.loss for m in a.nonzeros]
    for data in sets:
        for method in METHODS:
            if not (apart := difference(data, method)) < 1e-8:
                sys.exit(f"{method} and plain C differ by {apart:.1e} on {data}")
    print(f"Instructions a step, {N} rows, {D} columns:\n")
    try:
        found = counts([(side, method, data) for data in sets for side, method in JOBS])
        print_table(sets, [found[k : k + len(JOBS)] for k in range(0, len(found), len(JOBS))])
    except CannotCount as reason:
        print(reason)
    if not a.repeats:
        return
    print(f"\nNanoseconds of the processor a step, best of {a.repeats} in turn:\n")
    print_table(sets, (nanoseconds(data, a.repeats) for data in sets))
    if not a.quick:
        n, d = a.large
        print(f"\nNanoseconds of the processor a step with {n} rows and {d} columns:\n")
        large = [Data(m, "smoothed_hinge", n=n, d=d) for m in a.nonzeros if m]
        print_table(large, (nanoseconds(data, max(5, a.repeats // 3)) for data in large))


if __name__ == "__main__":
    main()
