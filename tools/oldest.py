"""The tests with the oldest versions that pyproject.toml allows, in .venv-oldest.

python3 tools/oldest.py                     # make test-oldest: all tests, ten minutes or more
python3 tools/oldest.py tests/problems/test_erm.py   # some of them

What is installed is a wheel, so that it also tells whether a wheel has all it needs. The
documentation is not built: its tools have no oldest version that matters to a user.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv-oldest"
#: What the oldest matplotlib calls, without warnings of newer versions.
HELD = ("pyparsing<3.3",)
BUILD = ("meson-python>=0.17", "meson>=1.4", "ninja", "cython>=3.1.2")


def oldest(requirements: list[str]) -> list[str]:
    """name==version for each name>=version; extras of apcg itself are left out."""
    pinned = []
    for requirement in requirements:
        name, version = re.fullmatch(
            r"([\w.-]+)(?:\[[^]]*\])?(?:>=([\w.]+))?", requirement
        ).groups()
        if name != "apcg":
            pinned.append(f"{name}=={version}" if version else name)
    return pinned


def wanted(project: dict) -> list[str]:
    """The oldest versions of what apcg needs, and of what its plots and tests need."""
    extras = project["optional-dependencies"]
    named = re.search(r"apcg\[([^]]*)\]", " ".join(extras["test"])).group(1).split(",")
    needed = [*project["dependencies"], *extras["test"]]
    needed += [requirement for name in named for requirement in extras[name]]
    return list(dict.fromkeys(oldest(needed)))


def run(*words: object, **env: str) -> None:
    """A program, or the end."""
    done = subprocess.run([*map(str, words)], cwd=ROOT, env=os.environ | env, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Install, build, test."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = VENV / "bin" / "python"
    pins = wanted(project)
    print("oldest:", *pins, flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    run(sys.executable, "-m", "venv", VENV)
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, *BUILD, *pins, *HELD)
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    run(*pip, "--no-build-isolation", "--no-deps", ".", PATH=path)
    run(python, "-m", "pytest", *sys.argv[1:], PATH=path)


if __name__ == "__main__":
    main()
