"""The house in order: who imports whom, how long files are, and that a wheel has all of them."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

import apcg

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "apcg"
FILES = sorted(PACKAGE.rglob("*.py"))

#: Imports go from a later line to an earlier one, or stay on their line.
ORDER = (
    ("_kernels",),
    ("_validation", "_compile", "_files", "result"),
    ("sequences", "plots", "datasets"),
    ("theory",),
    ("weights", "loss", "losses", "penalties", "functions"),
    ("problem", "regulariser", "intercept", "forms", "erm"),
    ("certificate", "methods", "loop"),
    ("monitor",),
    ("solve", "minimize"),
    ("path", "model"),
    ("estimators", "experiments"),
    ("cli",),
    ("__main__",),
)
RANK = {name: k for k, line in enumerate(ORDER) for name in line}


def area(path):
    """What the order above calls the file: its folder in the package, or its own name."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path, *, at_top=False):
    """(inside, outside): the areas of apcg and the other packages that a file imports."""
    here = ("apcg", *path.relative_to(PACKAGE).parts[:-1])
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside, outside = set(), set()
    for node in tree.body if at_top else ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            base = (*base, *filter(None, (node.module or "").split(".")))
            names = [".".join((*base, alias.name)) for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "apcg":
                inside.add(parts[1])
            else:
                outside.add(parts[0])
    return inside & {area(f) for f in FILES}, outside


def test_the_parser_sees_imports():
    inside, outside = imported(PACKAGE / "theory.py")
    assert inside == {"_validation", "sequences"}
    assert {"__future__", "math", "numpy"} <= outside
    assert "functions" in imported(PACKAGE / "problem.py")[0]
    assert "_kernels" in imported(PACKAGE / "methods" / "apcg.py")[0]
    assert "plots" in imported(PACKAGE / "result.py")[0]
    assert "plots" not in imported(PACKAGE / "result.py", at_top=True)[0]


def test_kernels_and_theory_know_nothing_of_the_rest():
    for source in sorted((PACKAGE / "_kernels").iterdir()):
        if source.suffix in {".py", ".pyx", ".pxd"}:
            text = source.read_text(encoding="utf-8")
            brought = re.findall(r"^\s*(?:from|c?import)\s+(\S+)", text, flags=re.MULTILINE)
            assert not [name for name in brought if name.startswith(("..", "apcg"))], source
    assert imported(PACKAGE / "theory.py")[0] <= {"_validation", "sequences"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    assert area(path) in {*RANK, "__init__"}, f"put {path.name} into ORDER"
    if area(path) == "__init__":
        return
    for name in imported(path, at_top=True)[0]:
        assert RANK.get(name, -1) <= RANK[area(path)], f"{path.name} must not import {name}"


def test_no_two_modules_import_each_other():
    graph = {}
    for path in FILES:
        if path.name != "__init__.py":
            graph.setdefault(area(path), set()).update(
                imported(path, at_top=True)[0] - {area(path)}
            )
    list(TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize(
    ("package", "where"),
    [
        ("matplotlib", {"plots"}),
        ("sklearn", {"estimators", "_validation", "datasets"}),
        ("numba", {"_compile"}),
        ("click", {"cli"}),
        ("pooch", {"datasets"}),
        ("requests", {"datasets"}),
    ],
)
def test_a_heavy_package_has_one_home(package, where):
    users = {area(p) for p in FILES if package in imported(p)[1]}
    assert users <= where


def test_import_apcg_is_light():
    code = "import sys, apcg; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "apcg" in loaded
    assert not loaded & {"matplotlib", "pandas", "sklearn", "numba", "click", "pooch", "requests"}


def test_files_are_short():
    sources = [
        p
        for folder in ("src", "tests", "examples", "benchmarks")
        for p in (ROOT / folder).rglob("*")
        if p.suffix in {".py", ".pyx", ".pxd"}
    ]
    assert len(sources) > 20
    long = {str(p): n for p in sources if (n := len(p.read_text().splitlines())) > 450}
    assert not long


def test_every_source_is_in_a_wheel():
    listed = set()
    for build in PACKAGE.rglob("meson.build"):
        text = re.sub(r"#.*", "", build.read_text(encoding="utf-8"))
        names = re.findall(r"'([^']+)'", text)
        listed |= {(build.parent / name).resolve() for name in names}
        listed |= {(build.parent / f"{name}.pyx").resolve() for name in names}
    wanted = {p for p in PACKAGE.rglob("*") if p.suffix in {".py", ".pyx"} or p.name == "py.typed"}
    assert not {str(p.relative_to(PACKAGE)) for p in wanted - listed}


def test_the_version_is_written_once():
    build = (ROOT / "meson.build").read_text(encoding="utf-8")
    (version,) = re.findall(r"\bversion: '([^']+)'", build)
    assert apcg.__version__ == metadata.version("apcg") == version
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in project
    assert not re.search(r'^version\s*=\s*"', project, flags=re.MULTILINE)
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_public_names_exist():
    for module in (apcg, apcg.datasets, apcg.functions, apcg.penalties, apcg.theory):
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{module.__name__}.{name} has no docstring"
