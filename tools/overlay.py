"""A copy of the package to be changed: mutated, or built with sanitizers. The checkout stays.

The copy has the Python files, and the kernels as they are built, or built anew. Tests run on it in
a process that takes `apcg` from there, and asserts it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = sorted(path.stem for path in (ROOT / "src" / "apcg" / "_kernels").glob("*.pyx"))
_CYTHON = ["-3", "-Xboundscheck=False", "-Xwraparound=False", "-Xcdivision=True",
           "-Xinitializedcheck=False"]  # fmt: skip
_PLAIN = ["-O1", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"]
#: The finder of an editable install comes before every path: it is taken out.
_BOOT = """
import sys
folder = sys.argv.pop(1)
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.path.insert(0, folder)
import apcg, apcg.erm, apcg._kernels.losses as kernel
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
    for name in KERNELS if kernels else ():
        built = Path(import_module(f"apcg._kernels.{name}").__file__)
        shutil.copy(built, package / "_kernels")
    return package


def build(package: Path, name: str, flags: tuple[str, ...] = ()) -> None:
    """Compile one kernel of the copy, in its place."""
    folder = package / "_kernels"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    include = sysconfig.get_path("include")
    cython = [sys.executable, "-m", "cython", *_CYTHON, f"{name}.pyx"]
    subprocess.run(cython, cwd=folder, check=True, capture_output=True)
    compile_ = ["cc", "-shared", "-fPIC", "-w", *_PLAIN, *flags, f"-I{include}", "-I.",
                f"{name}.c", "-o", f"{name}{suffix}", "-lm"]  # fmt: skip
    subprocess.run(compile_, cwd=folder, check=True)


def pytest(
    folder: Path, *words: str, env: dict[str, str] | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run tests on the copy."""
    command = [sys.executable, "-c", _BOOT, str(folder), "-q", "-n", "0", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *words], cwd=ROOT, env=env, timeout=seconds, capture_output=True, text=True
    )
