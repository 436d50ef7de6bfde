"""Make .venv and install apcg into it, for the Makefile. Says what it does, and what is missing.

python3 tools/prepare.py plot    # what `make demo` needs
python3 tools/prepare.py dev     # with the tools for tests, style and documentation

It is run by the system's Python before anything is installed: the standard library only, in words
that an old Python understands as well.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

VENV = Path(__file__).resolve().parents[1] / ".venv"
PYTHON = VENV / "bin" / "python"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
BUILD = ("meson-python>=0.17", "meson>=1.4", "ninja", "cython>=3.1.2")
#: What builds an extra's packages that come as source: without isolation, pip does not fetch it.
ALSO = {"plot": (), "dev": ("setuptools>=70.1",)}  # of liblinear-official, to read its models
#: What the extras of pyproject.toml bring.
EXTRAS = {
    "plot": "NumPy, SciPy, scikit-learn, matplotlib, pandas",
    "dev": "NumPy, SciPy, scikit-learn, and the tools for tests, style and documentation",
}
NO_VENV = (
    f"apcg is installed into a virtual environment, and {sys.executable} cannot make one. "
    f"On Debian or Ubuntu: sudo apt install python{VERSION}-venv"
)


def missing():
    """A sentence that names what has to be installed first; "" if nothing."""
    if sys.version_info < (3, 11):  # noqa: UP036  it may be an old one
        return (
            f"apcg needs Python 3.11 or newer, and {sys.executable} is {VERSION}. "
            "Name another one: make demo PYTHON=/path/to/python3.11"
        )
    compilers = [os.environ["CC"].split()[0]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    if not any(map(shutil.which, compilers)):
        return (
            f"apcg needs a C compiler, and there is none ({', '.join(compilers)}). "
            "On Debian or Ubuntu: sudo apt install build-essential"
        )
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        return (
            f"apcg needs the header files of Python, and there is no {header}. "
            f"On Debian or Ubuntu: sudo apt install python{VERSION}-dev"
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return NO_VENV
    return ""


def is_whole():
    """Whether .venv is there, with a Python that runs and a pip."""
    try:
        done = subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def make_venv():
    """Make .venv, anew if it is half-made. A sentence on what is wrong, or ""."""
    if is_whole():
        return ""
    again = " anew, for it is not whole" if VENV.exists() else ""
    print(f"Making .venv{again}.", flush=True)
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False)
    if done.returncode or not is_whole():
        shutil.rmtree(VENV, ignore_errors=True)
        return NO_VENV
    return ""


def install(extra):
    """Install apcg with an extra. A sentence on what is wrong, or ""."""
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    print("Installing what builds it: meson, ninja, Cython.", flush=True)
    if subprocess.run([*pip, *BUILD, *ALSO[extra]], check=False).returncode:
        return "pip failed, as it says above. It needs a package index that can be reached."
    print(
        f"Installing {EXTRAS[extra]}, and compiling the kernels: a minute or two, up to five on "
        "a slow machine.",
        flush=True,
    )
    # An editable install: Python files are used as they are, kernels are rebuilt when imported.
    # CYTHON is then the one to do so, wherever .venv/bin is in the PATH or not.
    tools = VENV / "bin"
    path = os.pathsep.join([str(tools), os.environ.get("PATH", os.defpath)])
    env = {**os.environ, "CYTHON": str(tools / "cython"), "PATH": path}
    # Python compiles what is imported; pip would compile all of SciPy and pandas.
    here = [*pip, "--no-compile", "--no-build-isolation", "--editable", f".[{extra}]"]
    if subprocess.run(here, check=False, env=env, cwd=VENV.parent).returncode:
        return (
            "pip failed, as it says above. It needs a package index that can be reached, and a C "
            "compiler that works."
        )
    return ""


def main():
    """Check, make, install; the exit code."""
    began = time.monotonic()
    wrong = missing() or make_venv() or install(sys.argv[1])
    if wrong:
        print(f"\n{wrong}", file=sys.stderr)
        return 1
    print(f"Ready after {time.monotonic() - began:.0f} s.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
