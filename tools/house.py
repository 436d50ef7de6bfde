"""The house in numbers: what a newcomer has to know, counted.

    python tools/house.py            # facts of the source
    python tools/house.py --calls    # also which modules four small solves go through

tests/project/test_layout.py holds the facts that are settled; this prints all of them, with their
aims.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "apcg"
SOURCES = {".py", ".pyx", ".h"}
#: Where a certificate may be made, and raw arrays of X may be read.
CERTIFY, DATA = PACKAGE / "certify", PACKAGE / "data"


def trees(folder: Path = PACKAGE) -> Iterator[tuple[Path, ast.Module]]:
    """Each Python file of a folder, parsed."""
    for path in sorted(folder.rglob("*.py")):
        yield path, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    """All of a tree: most facts go through it."""
    return list(ast.walk(tree))


def lines(folder: Path, *suffixes: str) -> int:
    """The number of lines of its files."""
    return sum(
        len(p.read_text(encoding="utf-8").splitlines())
        for p in folder.rglob("*")
        if p.is_file() and (p.suffix in suffixes if suffixes else "__pycache__" not in p.parts)
    )


def calls(name: str, outside: Path | None = None) -> list[str]:
    """Where `name(...)` is called."""
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in trees()
        if outside is None or outside not in path.parents
        for node in nodes(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
    ]


def is_adapter(tree: ast.Module) -> bool:
    """Whether a file calls a kernel, and so may read the arrays that the kernel takes."""
    return any(
        isinstance(node, ast.ImportFrom) and "_kernels" in (node.module or "").split(".")
        for node in tree.body
    )


def raw_arrays() -> list[str]:
    """Where X is read past its door: `views.arrays` where no kernel is called, and `.stored`.

    (Data sets and their headers, in cli/ and datasets/, have a number of that name.)
    """
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in trees()
        if DATA not in path.parents
        and path.relative_to(PACKAGE).parts[0] not in {"cli", "datasets"}
        for node in nodes(tree)
        if isinstance(node, ast.Attribute)
        and (
            node.attr == "stored" or (ast.unparse(node) == "views.arrays" and not is_adapter(tree))
        )
    ]


def doubled() -> list[str]:
    """Names that two classes have, and that are not public names of as many modules."""
    where = defaultdict(list)
    for path, node in classes():
        where[node.name].append(path)
    public = Counter(name for names in exported().values() for name in names)
    return [name for name, paths in where.items() if len(paths) > max(1, public[name])]


def exported() -> dict[Path, list[str]]:
    """What the public modules export: `apcg` and `apcg.dask` have an ERM each, and should."""
    found = {}
    for name in (
        "__init__.py",
        "dask/__init__.py",
        "functions.py",
        "losses/__init__.py",
        "penalties/__init__.py",
        "linear_model/__init__.py",
    ):
        tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[PACKAGE / name] = ast.literal_eval(node.value)
    return found


def getattr_on_runs() -> list[str]:
    """`getattr(run, ...)`, where callers ask what a run may or may not have."""
    return [
        where
        for path, tree in trees()
        for node in nodes(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in {"getattr", "hasattr"}
        and node.args
        and ast.unparse(node.args[0]).split(".")[-1].lstrip("_") in {"run", "inner"}
        for where in [f"{path.relative_to(PACKAGE)}:{node.lineno}"]
    ]


def private_members_of_a_problem() -> list[str]:
    """`problem._x` or `p._x` outside problems/."""
    return [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in trees()
        if PACKAGE / "problems" not in path.parents
        for node in nodes(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and ast.unparse(node.value).split(".")[-1] in {"problem", "erm"}
    ]


def classes(folder: Path = PACKAGE) -> list[tuple[Path, ast.ClassDef]]:
    """All classes of a folder."""
    return [
        (path, node)
        for path, tree in trees(folder)
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef)
    ]


def two_parents() -> list[str]:
    """Classes of methods with more than one base that is a class of apcg."""
    known = {node.name for _, node in classes()}
    return [
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path, node in classes(PACKAGE / "methods")
        if sum(ast.unparse(base).split(".")[-1] in known for base in node.bases) > 1
    ]


def state() -> list[tuple[int, str]]:
    """How many attributes the runs of methods set on themselves and inherit."""
    own: dict[str, set[str]] = {}
    parents: dict[str, list[str]] = {}
    for _, node in classes(PACKAGE / "methods"):
        found = set()
        for inner in ast.walk(node):
            if (
                isinstance(inner, ast.Attribute)
                and isinstance(inner.ctx, ast.Store)
                and isinstance(inner.value, ast.Name)
                and inner.value.id == "self"
            ):
                found.add(inner.attr)
            elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                found |= {inner.target.id} if inner in node.body else set()
        own[node.name] = found
        parents[node.name] = [ast.unparse(base).split(".")[-1] for base in node.bases]

    def whole(name: str) -> set[str]:
        return own.get(name, set()).union(*(whole(p) for p in parents.get(name, ())))

    return sorted(((len(whole(n)), n) for n in own if n.endswith("Run")), reverse=True)


def fullest() -> tuple[int, str]:
    """The folder with most source files."""
    count = Counter(p.parent for p in PACKAGE.rglob("*") if p.suffix in SOURCES)
    folder, most = count.most_common(1)[0]
    return most, str(folder.relative_to(PACKAGE))


def tuning_fields() -> int:
    """Numbers that somebody chose: fields of the Tuning records."""
    return sum(
        isinstance(field, ast.AnnAssign)
        for _, node in classes()
        if node.name.endswith("Tuning")
        for field in node.body
    )


def facts() -> list[tuple[str, object, str]]:
    """(what, how many, the aim) of everything that is counted."""
    top = [p for p in PACKAGE.glob("*.py") if p.stem not in {"__init__", "__main__"}]
    most, biggest = state()[0]
    asked = calls("isinstance")
    return [
        ("modules at the top", len(top), "8"),
        ("files directly in methods/", len(list((PACKAGE / "methods").glob("*.py"))), "4"),
        ("fullest folder", "{} in {}".format(*fullest()), "15"),
        ("lines of methods/", lines(PACKAGE / "methods", ".py"), "10,700"),
        ("lines of _kernels/", lines(PACKAGE / "_kernels", ".pyx", ".pxd", ".h"), "8,000"),
        ("lines of tests", lines(ROOT / "tests", ".py"), "22,500"),
        ("Certificate( outside certify/", calls("Certificate", CERTIFY), "none"),
        ("Solution(", calls("Solution"), "1"),
        ("getattr on runs", getattr_on_runs(), "none"),
        ("vars( in methods/", [w for w in calls("vars") if w.startswith("methods/")], "none"),
        ("SimpleNamespace", calls("SimpleNamespace"), "none"),
        ("two parents in methods/", two_parents(), "none"),
        ("attributes of a run, most", f"{most} ({biggest})", "25"),
        ("class names used twice", doubled(), "none"),
        ("isinstance in methods/", sum(w.startswith("methods/") for w in asked), "40"),
        ("raw arrays of X past its door", raw_arrays(), "none"),
        ("private members of a problem", private_members_of_a_problem(), "none"),
        ("fields of Tuning records", tuning_fields(), "200"),
    ]


def traced() -> list[tuple[str, int, int]]:
    """(problem, modules, edges from module to module) of four small solves, warm."""
    import numpy as np
    import scipy.sparse as sp

    from apcg import ERM, solve

    rng = np.random.default_rng(0)
    words, tall, wide = (
        sp.random_array((1500, 3000), density=0.01, rng=rng, format="csr"),
        rng.standard_normal((2000, 20)),
        rng.standard_normal((60, 500)),
    )

    def signs(n: int) -> object:
        return np.where(rng.standard_normal(n) > 0, 1.0, -1.0)

    problems = {
        "text logistic L2": ERM(words, signs(1500), "logistic", "l2", 1e-4),
        "n >> d logistic": ERM(tall, signs(2000), "logistic", "l2", 1e-3),
        "n << d lasso": ERM(wide, rng.standard_normal(60), "squared", "l1", 0.1),
        "softmax text": ERM(words, rng.integers(0, 4, 1500), "multinomial", "l2", 1e-4),
    }
    found = []
    for name, problem in problems.items():
        solve(problem, random_state=0)
        edges: dict[tuple[str, str], int] = defaultdict(int)

        def watch(frame: object, event: str, _: object, edges: dict = edges) -> None:
            if event == "call":
                here = frame.f_globals.get("__name__", "")  # type: ignore[attr-defined]
                back = frame.f_back  # type: ignore[attr-defined]
                there = back.f_globals.get("__name__", "") if back else ""
                if here.startswith("apcg") and there.startswith("apcg") and here != there:
                    edges[there, here] += 1

        sys.setprofile(watch)
        solve(problem, random_state=0)
        sys.setprofile(None)
        found.append((name, len({m for pair in edges for m in pair}), len(edges)))
    return found


def main() -> None:
    """Print them."""
    for what, count, aim in facts():
        shown = len(count) if isinstance(count, list) else count
        print(f"{what:36} {shown!s:>24}   aim {aim}")
        if isinstance(count, list) and "-v" in sys.argv:
            print(*(f"    {where}" for where in count), sep="\n")
    if "--calls" in sys.argv:
        for name, modules, edges in traced():
            print(f"{name:36} {modules:>9} modules {edges:>4} edges   aim 24, 50")


if __name__ == "__main__":
    main()
