"""The house in order: who imports whom, how long files are, and that a wheel has all of them."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

import apcg
from apcg.methods.base import Run

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "apcg"
FILES = sorted(PACKAGE.rglob("*.py"))

#: Imports go from a later line to an earlier one, or stay on their line.
ORDER = (
    ("_kernels",),
    ("_base", "sequences"),
    ("theory",),
    ("data", "engines"),
    ("datasets", "losses", "functions"),
    ("penalties", "problems"),
    ("certify", "points", "result", "erm", "plots"),
    ("methods",),
    ("run",),
    ("model",),
    ("estimators", "experiments"),
    ("linear_model", "dask"),
    ("patch",),
    ("cli",),
    ("__main__",),
)
RANK = {name: k for k, line in enumerate(ORDER) for name in line}


def area(path):
    """What the order above calls the file: its folder in the package, or its own name."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(tree):
    return list(ast.walk(tree))


def imported(path, *, at_top=False):
    """(inside, outside): the areas of apcg and the other packages that a file imports."""
    here = ("apcg", *path.relative_to(PACKAGE).parts[:-1])
    tree = parsed(path)
    inside, outside = set(), set()
    for node in tree.body if at_top else nodes(tree):
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
    assert inside == {"_base", "sequences"}
    assert {"__future__", "math", "numpy"} <= outside
    assert "functions" in imported(PACKAGE / "problems" / "composite.py")[0]
    assert "_kernels" in imported(PACKAGE / "methods" / "paper" / "apcg.py")[0]
    assert "plots" in imported(PACKAGE / "certify" / "result.py")[0]
    assert "plots" not in imported(PACKAGE / "certify" / "result.py", at_top=True)[0]


def test_kernels_and_theory_know_nothing_of_the_rest():
    for source in sorted((PACKAGE / "_kernels").rglob("*")):
        if source.suffix in {".py", ".pyx", ".pxd"}:
            text = source.read_text(encoding="utf-8")
            brought = re.findall(r"^\s*(?:from|c?import)\s+(\S+)", text, flags=re.MULTILINE)
            assert not [name for name in brought if name.startswith(("...", "apcg"))], source
    assert imported(PACKAGE / "theory.py")[0] <= {"_base", "sequences"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    assert area(path) in {*RANK, "__init__"}, f"put {path.name} into ORDER"
    if area(path) == "__init__":
        return
    for name in imported(path, at_top=True)[0]:
        assert RANK.get(name, -1) <= RANK[area(path)], f"{path.name} must not import {name}"


def module(path):
    """The dotted name of a file, without the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_imported(path):
    """The modules of apcg that a file imports at its top, for types too."""
    here = ("apcg", *path.relative_to(PACKAGE).parts[:-1])
    tree = parsed(path)
    guarded = [n for node in tree.body if isinstance(node, ast.If) for n in node.body]
    known, found = {module(f) for f in FILES}, set()
    for node in [*tree.body, *guarded]:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[1 : len(here) - node.level + 1]
            base = (*base, *filter(None, (node.module or "").split(".")))
            for alias in node.names:
                whole = ".".join((*base, alias.name))
                found.add(whole if whole in known else ".".join(base))
    return (found & known) - {""}


def test_no_two_modules_import_each_other():
    graph = {module(p): modules_imported(p) for p in FILES if module(p)}
    assert "methods.base" in graph["methods.plan.plan"]
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def trees():
    for path in FILES:
        yield path, parsed(path)


def test_only_methods_know_which_method_is_at_work():
    """No isinstance on a class of `methods` elsewhere: what a method can do is in its protocol."""
    defined = {
        node.name
        for path, tree in trees()
        if area(path) == "methods"
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef)
    }
    assert {"APCG", "Adaptive", "Newton"} <= defined
    for path, tree in trees():
        if area(path) == "methods":
            continue
        for node in nodes(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                assert not names & defined, f"{path.name}:{node.lineno}"


def calls(tree, *names):
    """The calls of functions and classes of these names."""
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if getattr(called, "id", None) in names or getattr(called, "attr", None) in names:
                yield node


def test_certificates_are_made_in_certify():
    made = {path for path, tree in trees() if any(calls(tree, "Certificate"))}
    assert made == {PACKAGE / "certify" / "certificate.py"}


def test_a_solution_is_made_in_one_place():
    made = [path for path, tree in trees() for _ in calls(tree, "Solution")]
    assert made == [PACKAGE / "certify" / "result.py"]


def test_every_run_has_the_whole_protocol():
    """What advances and has a point is a `Run`, whose methods are all there."""
    runs = set()
    for path in FILES:
        if area(path) == "methods":
            loaded = importlib.import_module(f"apcg.{module(path)}")
            found = (c for _, c in inspect.getmembers(loaded, inspect.isclass))
            runs |= {c for c in found if hasattr(c, "advance") and hasattr(c, "point")}
    runs = {c for c in runs if c.__module__.startswith("apcg.methods")}
    assert len(runs) > 10
    assert all(issubclass(c, Run) for c in runs)


def test_nobody_asks_a_run_for_what_it_may_not_have():
    """A run says all in its `report`. What a user's object may have is `base.OwnRun`'s to ask."""
    for path, tree in trees():
        if area(path) not in {"methods", "run", "certify"}:
            continue
        for node in calls(tree, "getattr", "hasattr"):
            asked = ast.unparse(node.args[0])
            assert not re.search(r"runs?\b|stepping|at_last", asked), f"{path.name}:{node.lineno}"
        fakes = [*calls(tree, "vars", "SimpleNamespace")]
        assert not fakes, f"{path.name}:{fakes[0].lineno} hides what an object has"


def test_nobody_writes_the_private_state_of_others():
    """Changes go through named verbs. A new object of the own class may be filled in."""
    for path, tree in trees():
        for node in nodes(tree):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                continue
            flat = [t for target in targets for t in ast.walk(target)]
            for target in flat:
                if not isinstance(target, ast.Attribute) or isinstance(target.ctx, ast.Load):
                    continue
                owner = target.value
                own = isinstance(owner, ast.Name) and owner.id in {"self", "cls", "moved"}
                kernel = isinstance(owner, ast.Attribute) and owner.attr == "state"
                where = f"{path.name}:{node.lineno}"
                if kernel:  # those that made it
                    assert path.name in {
                        "apcg.py",
                        "sweeps_one.py",
                        "sweeps_k.py",
                    }, where
                elif target.attr.startswith("_"):
                    assert own, where


def test_methods_use_the_public_names_of_a_problem():
    """What `problems` has for methods has a name and a docstring; the rest is its own affair."""
    classes = [n for p, tree in trees() if area(p) == "problems" for n in nodes(tree)]
    classes = [n for n in classes if isinstance(n, ast.ClassDef) and n.name == "ERM"]
    assert classes
    members = {n.name for c in classes for n in c.body if isinstance(n, ast.FunctionDef)}
    private = {name for name in members if re.match(r"_[a-z]", name)}
    assert private
    for path, tree in trees():
        if area(path) == "problems":
            continue
        for node in nodes(tree):
            if not isinstance(node, ast.Attribute) or not re.match(r"_[a-z]", node.attr):
                continue
            owner = node.value
            name = getattr(owner, "id", getattr(owner, "attr", ""))
            of_problem = name == "problem" or (name not in {"self", "cls"} and node.attr in private)
            assert not of_problem, f"{path.name}:{node.lineno}: {name}.{node.attr}"


def test_functions_are_short():
    for path, tree in trees():
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef):
                doc = ast.get_docstring(node, clean=False) or ""
                length = node.end_lineno - node.lineno + 1 - doc.count("\n")
                assert length <= 60, f"{path.name}: {node.name} has {length} lines"


@pytest.mark.parametrize(
    ("package", "where"),
    [
        ("matplotlib", {"plots"}),
        ("sklearn", {"estimators", "linear_model", "_base", "datasets", "dask"}),
        ("distributed", {"engines", "dask"}),
        ("numba", {"_base"}),
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
    assert not loaded & {
        "matplotlib", "pandas", "sklearn", "numba", "click", "pooch", "requests", "distributed"
    }  # fmt: skip


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
        for suffix in re.findall(r"'(\.\w+)'", text):  # module + '.pyx'
            listed |= {(build.parent / f"{name}{suffix}").resolve() for name in names}
    kinds = {".py", ".pyi", ".pyx"}
    wanted = {p for p in PACKAGE.rglob("*") if p.suffix in kinds or p.name == "py.typed"}
    assert not {str(p.relative_to(PACKAGE)) for p in wanted - listed}


def _arguments(function):
    """(name, keyword only, has a default) of each argument of a parsed function but self."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    without = len(positional) - len(given.defaults)
    listed = [(a.arg, False, k >= without) for k, a in enumerate(positional)]
    listed += [
        (a.arg, True, d is not None)
        for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    return [entry for entry in listed if entry[0] != "self"]


def _stub(text):
    """What a stub says: name -> arguments of a function, members of a class, None of a variable."""

    def names(body):
        found = {}
        for node in body:
            if isinstance(node, ast.AnnAssign):
                found[node.target.id] = None
            elif isinstance(node, ast.ClassDef):
                found[node.name] = names(node.body)
            elif isinstance(node, ast.FunctionDef):
                found[node.name] = None if node.decorator_list else _arguments(node)
        return {n: what for n, what in found.items() if n == "__init__" or n[0] != "_"}

    return names(ast.parse(text).body)


def _constructors(source):
    """The arguments of each class's `__init__` in a .pyx file: compiled, it does not say them."""
    text = source.read_text(encoding="utf-8")
    found = {}
    for name, head in re.findall(r"cdef class (\w+).*?def __init__\((.*?)\):\n", text, re.DOTALL):
        head = re.sub(r"\[[^]]*\]", "", head)  # of double[::1]
        while "(" in head:
            head = re.sub(r"\([^()]*\)", "0", head)  # defaults
        plain = re.sub(r"\w+\s+(?=\w)", "", head)  # types
        (parsed,) = ast.parse(f"def __init__({plain}): ...").body
        found[name] = _arguments(parsed)
    return found


def _module(scope, constructors):
    """The same of a compiled module or class."""
    found = {}
    for name, what in vars(scope).items():
        if name.startswith("_") or inspect.ismodule(what):
            continue
        if inspect.isclass(what):
            found[name] = _module(what, constructors) | {"__init__": constructors[name]}
        elif callable(what):
            taken = inspect.signature(what).parameters.values()
            found[name] = [
                (p.name, p.kind is p.KEYWORD_ONLY, p.default is not p.empty)
                for p in taken
                if p.name != "self"
            ]
        else:
            found[name] = None
    return found


@pytest.mark.parametrize(
    "source", sorted((PACKAGE / "_kernels").rglob("*.pyx")), ids=lambda p: p.stem
)
def test_a_stub_says_what_its_kernel_has(source, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    stub = importlib.import_module("stubs").stub(source)
    kernel = importlib.import_module(f"apcg._kernels.{source.parent.name}.{source.stem}")
    assert _stub(stub) == _module(kernel, _constructors(source))


def test_the_version_is_written_once():
    build = (ROOT / "meson.build").read_text(encoding="utf-8")
    (version,) = re.findall(r"\bversion: '([^']+)'", build)
    assert apcg.__version__ == metadata.version("apcg") == version
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in project
    assert not re.search(r'^version\s*=\s*"', project, flags=re.MULTILINE)
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_public_names_exist():
    for module in (
        apcg,
        apcg.datasets,
        apcg.functions,
        apcg.linear_model,
        apcg.penalties,
        apcg.theory,
    ):
        for name in module.__all__:
            assert getattr(module, name).__doc__, f"{module.__name__}.{name} has no docstring"


def test_mutations_are_of_what_is_there(monkeypatch):
    """A mutation whose text has gone tests nothing."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    mutations = importlib.import_module("mutations")
    assert len(mutations.MUTANTS) >= 130
    for m in mutations.MUTANTS:
        text = (PACKAGE / m.file).read_text(encoding="utf-8")
        assert text.count(m.old) == 1, f"{m.file}: {m.what}"
        assert len([*(ROOT / "tests").rglob(m.tests)]) == 1
    rooms = {room: file for file, rooms in mutations.ROOMS.items() for room in rooms}
    for file in mutations.ROOMS:
        for m in file.MUTANTS:
            room = max((room for room in rooms if m.file.startswith(f"{room}/")), key=len)
            assert rooms[room] is file, f"{m.file}: {m.what}: is for {rooms[room].__name__}"


def test_the_house_in_numbers(monkeypatch):
    """What is settled of the facts that tools/house.py prints."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    house = importlib.import_module("house")
    found = {what: count for what, count, _ in house.facts()}
    assert found["modules at the top"] <= 8
    assert found["files directly in methods/"] <= 4
    assert house.fullest()[0] <= 15, house.fullest()
    assert not found["private members of a problem"]
    assert not found["raw arrays of X past its door"]
    assert not found["SimpleNamespace"]
    assert not found["two parents in methods/"]
    assert house.state()[0][0] <= 25, house.state()[0]
    assert not found["class names used twice"]
    assert found["isinstance in methods/"] <= 40
    assert house.calls("ERM")  # the counters see something
