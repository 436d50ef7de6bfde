"""Whether arrays of some size fit into the memory that is free: asked before the work."""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

#: Less than this many bytes is not asked about.
SMALL = 1e8
#: Arrays of n x K and d x K numbers that a run with K outputs has at a time. (Of n x K 4 to 10 were
#: measured: a softmax without intercepts, and with them.)
BY_SAMPLE, BY_FEATURE = 8, 4


class NoRoom(MemoryError):
    """What was asked for takes more memory than there is."""


def check_outputs(n: int, d: int, K: int) -> None:
    """Refuse K outputs that take more memory than there is."""
    need = 8.0 * K * (BY_SAMPLE * n + BY_FEATURE * d)
    if need <= SMALL or need <= (there := available()):
        return
    raise NoRoom(
        f"{K:,} classes or outputs with {n:,} samples and {d:,} features take about "
        f"{gigabytes(need)} of memory ({BY_SAMPLE} arrays of {n:,} x {K:,} numbers, {BY_FEATURE} "
        f"of {d:,} x {K:,}), and {gigabytes(there)} are free. Give fewer: put rare classes "
        "together, leave out features, take a part of the samples; labels that are measured "
        "numbers are for a regression."
    )


def vectors(*wanted: tuple[int, Any]) -> list[Any]:
    """Vectors of these lengths and types in one piece of memory, not initialised.

    NumPy asks for large pages from 4 MB on. The first touch of small ones costs as much as the
    work on them.
    """
    bytes_of = [-(-length * np.dtype(kind).itemsize // 64) * 64 for length, kind in wanted]
    whole, at, made = np.empty(sum(bytes_of), np.uint8), 0, []
    for (length, kind), size in zip(wanted, bytes_of, strict=True):
        made.append(whole[at : at + size].view(kind)[:length])
        at += size
    return made


def gigabytes(size: float) -> str:
    """A number of bytes, in words."""
    return f"{size / 1e9:,.3g} GB"


def available() -> float:
    """Bytes that can still be had: of the machine, of its group, of this process; the least."""
    return min(_machine(), _group(), _process())


def _machine() -> float:
    """What is free on this machine, with what caches would give back."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    with contextlib.suppress(AttributeError, OSError, ValueError):  # all there is, in use or not
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _group() -> float:
    """What is left to a container, if it has a limit."""
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes",
         "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):  # fmt: skip
        with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
            return max(float(Path(limit).read_text()) - float(Path(used).read_text()), 0.0)
    return math.inf


def _process() -> float:
    """What `ulimit -v` leaves to this process."""
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            return max(float(limit - used), 0.0)
    return math.inf


def aligned_zeros(rows: int) -> np.ndarray:
    """A (rows, 2) array of zeros that starts at a multiple of 16 bytes, for kernels of pairs."""
    room = np.zeros(2 * rows + 1)
    skip = room.ctypes.data % 16 // 8
    return room[skip : skip + 2 * rows].reshape(rows, 2)


def resident() -> float:
    """Bytes of memory that this process has now; 0 if that cannot be known."""
    with contextlib.suppress(OSError, ValueError, IndexError, ImportError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * resource.getpagesize())
    return 0.0
