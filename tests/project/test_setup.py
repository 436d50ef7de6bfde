"""`make` on machines that lack something. Nothing is installed here: `python3` is a stand-in.

The stand-in writes down how it is called. `python3 -m venv` makes a folder with such a stand-in in
it, so that the Makefile and tools/prepare.py run as they are, in no time.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "make", "awk", "touch", "test", "cc", "rm", "env", "cat", "mkdir", "cp", "chmod")

#: A Python that runs tools/prepare.py after `before`; -m venv is `venv`, a script of the shell.
PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
    for folder; do true; done
    {venv}
fi
exec {python} -c '
import runpy, sys
{before}
sys.executable, sys.argv = "{bin}/python3", sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$@"
"""
#: What a whole .venv has; without a pip, it is half-made.
INSIDE = """#!/bin/sh
echo "$@" >> {log}
{pip}
"""


@pytest.fixture
def clone(tmp_path):
    """A clone without sources, and a PATH in which only the tools are that make needs."""
    here, bin_ = tmp_path / "clone", tmp_path / "bin"
    for folder in (here / "tools", here / "src" / "apcg" / "_kernels", bin_):
        folder.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "meson.build", "tools/prepare.py"):
        shutil.copy(ROOT / name, here / name)
    (here / "src" / "apcg" / "_kernels" / "sweep.pyx").touch()
    for name in TOOLS:
        found = shutil.which(name)
        if found:
            (bin_ / name).symlink_to(found)
    put_python(bin_)
    return here


def put_python(bin_, before="", venv=None, pip="true"):
    """The stand-in; `venv` is what -m venv does instead of --clear and a new folder."""
    inside = bin_ / "inside"
    inside.write_text(INSIDE.format(log=bin_.parent / "log", pip=pip))
    inside.chmod(0o755)
    whole = f'rm -rf "$folder"; mkdir -p "$folder/bin" && cp {inside} "$folder/bin/python"; exit 0'
    script = PYTHON.format(python=sys.executable, before=before, bin=bin_, venv=venv or whole)
    (bin_ / "python3").write_text(script)
    (bin_ / "python3").chmod(0o755)


def make(clone, *words, code=0, **env):
    """What make says; it knows no other programs than those of the PATH."""
    known = {"PATH": str(clone.parent / "bin"), "HOME": str(clone)} | env
    command = [clone.parent / "bin" / "make", *words]
    done = subprocess.run(command, cwd=clone, env=known, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def calls(clone):
    """How the Python of .venv was called since the last time."""
    log = clone.parent / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [line for line in lines if line != "-m pip --version"]


def installs(clone):
    return [line for line in calls(clone) if "pip install" in line]


def test_make_alone_says_what_there_is(clone):
    said = make(clone)
    assert said == make(clone, "help")
    for name in ("demo", "test", "test-all", "test-oldest", "lint", "docs", "clean"):
        assert f"make {name} " in said
    assert not (clone / ".venv").exists()


def test_the_demo_installs_only_what_it_needs(clone):
    said = make(clone, "demo")
    assert "Installing NumPy, SciPy, scikit-learn, matplotlib, pandas, and compiling" in said
    assert "a minute or two" in said
    assert "Ready after" in said
    tools, apcg, demo = calls(clone)
    assert "meson" in tools
    assert apcg.endswith("--no-build-isolation --editable .[plot]")
    assert demo == "examples/demo.py --out out"
    make(clone, "demo")
    assert calls(clone) == ["examples/demo.py --out out"]


def test_what_is_installed_for_the_tests_is_enough_for_the_demo(clone):
    make(clone, "test")
    assert [line.split()[-1] for line in installs(clone)][1:] == [".[dev]"]
    make(clone, "demo")
    assert installs(clone) == []


def test_a_kernel_edit_does_not_run_pip_again(clone):
    make(clone, "test")
    assert len(installs(clone)) == 2
    stamp = (clone / ".venv" / ".ready").stat().st_mtime

    def edit(name):
        os.utime(clone / name, (stamp + 10, stamp + 10))

    edit("src/apcg/_kernels/sweep.pyx")
    make(clone, "test")
    assert installs(clone) == []
    edit("pyproject.toml")
    make(clone, "test")
    assert len(installs(clone)) == 2


def test_all_tests_are_the_quick_ones_and_the_rest(clone):
    make(clone, "test-all")
    quick, rest = (line for line in calls(clone) if "pytest" in line)
    assert quick == "-m pytest -m not slow --hypothesis-profile=quick"
    assert rest == "-m pytest -m slow or hypothesis"


def test_ci_runs_the_quick_tests_once(clone):
    shutil.copytree(ROOT / ".ci", clone / ".ci")
    (clone.parent / "bin" / "bash").symlink_to(shutil.which("bash"))
    (clone.parent / "bin" / "dirname").symlink_to(shutil.which("dirname"))
    known = {"PATH": str(clone.parent / "bin"), "HOME": str(clone)}
    subprocess.run([clone / ".ci" / "run"], env=known, check=True, capture_output=True, timeout=60)
    done = [line for line in calls(clone) if "pip" not in line]
    assert sum("not slow" in line for line in done) == 1
    assert sum("slow or hypothesis" in line for line in done) == 1
    for word in ("ruff check", "ruff format", "mypy", "mkdocs build"):
        assert sum(word in line for line in done) == 1


def test_the_oldest_versions_are_those_of_pyproject():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import oldest
    finally:
        sys.path.pop(0)
    given = ["numpy>=1.26", "apcg[plot,numba]", "mkdocstrings[python]>=0.26", "ruff"]
    assert oldest.oldest(given) == ["numpy==1.26", "mkdocstrings==0.26", "ruff"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = oldest.wanted(project)
    assert all("==" in pin for pin in pins), "give every package that users need a minimum"
    assert {"numpy", "click", "matplotlib", "pytest"} <= {pin.split("==")[0] for pin in pins}


@pytest.mark.parametrize("target", ["demo", "test"])
def test_without_a_compiler(clone, target):
    (clone.parent / "bin" / "cc").unlink()
    said = make(clone, target, code=2)
    assert "apcg needs a C compiler, and there is none (cc, gcc, clang)." in said
    assert "sudo apt install build-essential" in said
    assert "there is none (icc)" in make(clone, target, code=2, CC="icc -fast")
    assert calls(clone) == []


@pytest.mark.parametrize("target", ["demo", "test"])
def test_without_the_headers_of_python(clone, target):
    put_python(
        clone.parent / "bin", before='import sysconfig; sysconfig.get_path = lambda _: "/none"'
    )
    said = make(clone, target, code=2)
    assert "there is no /none/Python.h. On Debian or Ubuntu: sudo apt install python3." in said
    assert "-dev\n" in said
    assert calls(clone) == []


@pytest.mark.parametrize("target", ["demo", "test"])
def test_without_ensurepip(clone, target):
    """As on Debian without python3-venv."""
    put_python(clone.parent / "bin", before='sys.modules["ensurepip"] = None')
    said = make(clone, target, code=2)
    assert "cannot make one. On Debian or Ubuntu: sudo apt install python3." in said
    assert "-venv\n" in said
    assert not (clone / ".venv").exists()
    put_python(clone.parent / "bin")  # installed
    make(clone, target)
    assert len(installs(clone)) == 2


def test_a_venv_that_fails_leaves_nothing(clone):
    half = 'mkdir -p "$folder/bin" && cp /dev/null "$folder/bin/python"; exit 1'
    put_python(clone.parent / "bin", venv=half)
    assert "-venv\n" in make(clone, "demo", code=2)
    assert not (clone / ".venv").exists()


@pytest.mark.parametrize("half", ["no pip", "no python", "a python that is gone"])
def test_a_half_made_venv_heals(clone, half):
    inside = clone / ".venv" / "bin" / "python"
    inside.parent.mkdir(parents=True)
    if half == "no pip":
        inside.write_text("#!/bin/sh\necho No module named pip; exit 1\n")
        inside.chmod(0o755)
    elif half == "a python that is gone":
        inside.symlink_to("/none/python3.10")
    assert "Making .venv anew, for it is not whole." in make(clone, "demo")
    assert len(installs(clone)) == 2


def test_a_failed_install_is_said_and_tried_again(clone):
    fails = 'case "$*" in *editable*) exit 1;; esac'
    put_python(clone.parent / "bin", pip=fails)
    assert "pip failed, as it says above. It needs a package index" in make(clone, "demo", code=2)
    assert not (clone / ".venv" / ".ready-demo").exists()
    calls(clone)
    shutil.rmtree(clone / ".venv")
    put_python(clone.parent / "bin")
    make(clone, "demo")
    assert len(installs(clone)) == 2


def test_an_old_python_is_named(clone):
    put_python(clone.parent / "bin", before="sys.version_info = (3, 9, 2)")
    said = make(clone, "demo", code=2)
    assert "apcg needs Python 3.11 or newer, and " in said
    assert "is 3.9. Name another one: make demo PYTHON=/path/to/python3.11" in said
