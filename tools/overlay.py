"""A copy of the package to be changed: mutated, or built with sanitizers. The checkout stays.

The copy has the Python files, and the kernels as they are built, or built anew. Tests run on it in
a process that takes `apcg` from there, and asserts it.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import traceback
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_SOURCE = ROOT / "src" / "apcg" / "_kernels"
#: "dual/one_output": a room and a name in it
KERNELS = sorted(str(p.relative_to(_SOURCE).with_suffix("")) for p in _SOURCE.rglob("*.pyx"))
_CYTHON = ["-3", "-Xboundscheck=False", "-Xwraparound=False", "-Xcdivision=True",
           "-Xinitializedcheck=False"]  # fmt: skip
_PLAIN = ["-O1", "-Wno-psabi", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
#: The finder of an editable install comes before every path: it is taken out.
_BOOT = """
import sys
folder = sys.argv.pop(1)
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.path.insert(0, folder)
import apcg, apcg.erm, apcg._kernels.losses.scalar as kernel
assert apcg.__file__.startswith(folder), apcg.__file__
assert kernel.__file__.startswith(folder), kernel.__file__
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def copy(folder: Path, *, kernels: bool = True) -> Path:
    """The package in a folder; returns where it is."""
    package = folder / "apcg"
    ignore = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "src" / "apcg", package, ignore=ignore)
    for name in [*KERNELS, "_shared"] if kernels else ():
        spec = find_spec("apcg._kernels." + name.replace("/", "."))
        assert spec is not None
        shutil.copy(str(spec.origin), (package / "_kernels" / name).parent)
    return package


def again(folder: Path, other: Path) -> Path:
    """A copy of a copy, with what Python has compiled in it; returns where the package is."""
    return Path(shutil.copytree(folder / "apcg", other / "apcg"))


def build(package: Path, name: str, flags: tuple[str, ...] = ()) -> None:
    """Compile one kernel of the copy, in its place."""
    kernels, source = package / "_kernels", package / "_kernels" / f"{name}.pyx"
    rooms = [f"-I{room}" for room in sorted(kernels.iterdir()) if room.is_dir()]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    include = sysconfig.get_path("include")
    cython = [sys.executable, "-m", "cython", *_CYTHON, str(source)]
    subprocess.run(cython, cwd=package.parent, check=True, capture_output=True)
    compile_ = ["cc", "-shared", "-fPIC", "-w", *_PLAIN, *flags, f"-I{include}", *rooms,
                str(source.with_suffix(".c")), "-o", str(kernels / f"{name}{suffix}"),
                "-lm"]  # fmt: skip
    subprocess.run(compile_, check=True)


def pytest(
    folder: Path, *words: str, env: dict[str, str] | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run tests on the copy."""
    command = [sys.executable, "-c", _BOOT, str(folder), "-q", "-n", "0", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *words], cwd=ROOT, env=env, timeout=seconds, capture_output=True, text=True
    )


def tests(name: str) -> str:
    """Where in tests/ the file of this name is."""
    (path,) = (ROOT / "tests").rglob(name)
    return str(path)


#: What every test needs: a process that has it already is quick to copy.
_HEAVY = ("numpy", "scipy.sparse.linalg", "scipy.optimize", "scipy.special", "sklearn.datasets",
          "sklearn.linear_model", "sklearn.model_selection", "pytest", "hypothesis",
          "hypothesis.strategies", "xdist.plugin", "tqdm", "click")  # fmt: skip
_KNOWN = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis is there before pytest


def forked(folder: Path, *words: str, seconds: float) -> tuple[int, str]:
    """The exit code and output of tests on the copy, in a fork of this process; < 0 is a signal.

    What takes more than so many seconds of CPU hangs: SIGPROF. So does what sleeps, but by the
    clock, and a busy machine may take long: SIGALRM.
    """
    for name in _HEAVY:
        import_module(name)
    # a property that fails need not be shown by a small example, which may take minutes to find
    import_module("hypothesis.internal.conjecture.engine").MAX_SHRINKING_SECONDS = 1
    gc.freeze()  # the child collects what is new only
    log = folder / "log"
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(600 + int(10 * seconds))
        out = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1)
        os.dup2(out, 2)
        for name in [m for m in sys.modules if m.partition(".")[0] == "apcg"]:
            del sys.modules[name]
        sys.argv = ["", str(folder), "-q", "-n", "0", "-p", "no:cacheprovider", *_KNOWN, *words]
        os.chdir(ROOT)
        sys.dont_write_bytecode = False  # a copy of the copy has it compiled
        code = 99
        try:
            exec(_BOOT, {"__name__": "__main__"})
        except SystemExit as left:
            code = int(left.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")
