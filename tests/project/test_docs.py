"""The code in README.md and docs/ runs, and prints what is printed below it."""

import contextlib
import doctest
import importlib
import inspect
import io
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import apcg
from apcg import losses

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT / "docs" / "paper.md"
PACKAGE = ROOT / "src" / "apcg"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_examples_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    """Blocks of one page share their names; a `text` block right after one is its output."""
    # what a page registers is gone after it
    monkeypatch.setattr(losses.registry, "_REGISTERED", dict(losses.registry._REGISTERED))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("APCG_DATA_DIR", raising=False)
    text = page.read_text(encoding="utf-8")
    names = {"__name__": page.stem}
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 2
        code = "\n" * (line - 1) + block[1]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, page, "exec"), names)
        if block[2] is not None:
            assert said.getvalue().rstrip() == block[2].rstrip(), f"{page.name}, line {line}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_commands_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    """In a `console` block a line `$ ...` is a command, what follows its output; `...` is any."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("APCG_CACHE_DIR", str(tmp_path / ".cache"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    checker = doctest.OutputChecker()
    for block in CONSOLE.finditer(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            done = subprocess.run(
                command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert checker.check_output(expected, done.stdout, flags), f"$ {command}\n{done.stdout}"


def test_every_block_is_one_that_is_run():
    kinds = {kind for p in PAGES for kind in re.findall(r"^```(\w*)$", p.read_text(), re.MULTILINE)}
    assert kinds <= {"", "python", "text", "console"}


def test_what_the_map_of_the_paper_names_exists():
    """Every name in the second column, and every test in the third, of the tables of paper.md."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", PAPER.read_text(), re.MULTILINE)
    names = [name for _, code, _ in rows for name in re.findall(r"`([\w./]+)`", code)]
    tests = [test for *_, column in rows for test in re.findall(r"tests/[\w/]+\.py", column)]
    assert len(rows) > 30
    assert len(names) > 40
    assert all("tests/" in column or column in ("checked by", "---") for *_, column in rows)
    assert not [test for test in tests if not (ROOT / test).exists()]
    for name in set(names) - {"State.fold"}:  # of a kernel, named beside its file
        if "/" in name:
            assert any((root / name).exists() for root in (ROOT, PACKAGE)), name
        else:
            assert pydoc.locate(f"apcg.{name}") is not None, name


def test_the_map_has_every_numbered_thing_of_the_paper():
    text = PAPER.read_text(encoding="utf-8")
    for kind, count in (("Algorithm", 5), ("Theorem", 4), ("Lemma", 4), ("Corollary", 2),
                        ("Assumption", 3), ("Proposition", 1), ("Table", 1)):  # fmt: skip
        for k in range(1, count + 1):
            assert f"{kind} {k}" in text
    assert "Figures 1 and 2" in text


def test_the_pages_have_examples():
    assert sum(len(BLOCK.findall(p.read_text(encoding="utf-8"))) for p in PAGES) >= 6
    with_output = [b for p in PAGES for b in BLOCK.findall(p.read_text(encoding="utf-8")) if b[1]]
    assert len(with_output) >= 5


@pytest.mark.parametrize(
    "page", [*PAGES, *DECISIONS, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_files_that_a_page_names_exist(page):
    """From the root, or from the package: `methods/plan/rules.py`, `methods/paper/`."""
    text = page.read_text(encoding="utf-8")
    rooms = "|".join(p.name for p in PACKAGE.iterdir() if p.is_dir())
    paths = re.findall(r"\b(?:src|docs|examples|benchmarks|tests|tools)/[\w/.-]*\w", text)
    paths += re.findall(rf"`((?:{rooms})/[\w/.]*)`", text)
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    missing = [p for p in paths if not any((top / p).exists() for top in (ROOT, PACKAGE))]
    missing += [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_the_glossary_has_each_word_once_and_the_code_uses_it():
    tables = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").split("\n## ")
    rows = {
        t.splitlines()[0]: re.findall(r"^\| ([\w -]+?(?:, [\w -]+)*) \|", t, re.M) for t in tables
    }
    avoided = {word for row in rows.pop("Words that are not used")[1:] for word in row.split(", ")}
    words = [word for table in rows.values() for word in table if word != "word"]
    assert len(words) == len(set(words)) > 30
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.py")).lower()
    pages = [p for p in (ROOT / "docs").rglob("*.md") if p.name != "glossary.md"]
    prose = "\n".join(p.read_text(encoding="utf-8") for p in pages).lower()
    assert not [word for word in words if not re.search(rf"\b{word}(e?s)?\b", code)]
    assert not [word for word in avoided if re.search(rf"\b{word}(e?s)?\b", code + prose)]


def test_an_equation_has_one_number():
    """Number and label, (7: alphak); the paper's 60 equations are numbered throughout."""
    pages = "\n".join(p.read_text(encoding="utf-8") for p in PAGES)
    numbers = {}
    for number, label in re.findall(r"\((\d+): ([\w-]+)\)", pages):
        numbers.setdefault(label, set()).add(int(number))
    assert len(numbers) > 30
    assert all(len(found) == 1 for found in numbers.values())
    printed = sorted(found.pop() for found in numbers.values())
    assert len(printed) == len(set(printed))
    assert 1 <= printed[0] < printed[-1] <= 60


#: Modules whose names are public, and the names that apcg itself has.
PUBLIC = ("losses", "penalties", "functions", "theory", "datasets", "linear_model")


def public():
    """Every public name, and its object."""
    found = {f"apcg.{name}": getattr(apcg, name) for name in apcg.__all__ if name not in PUBLIC}
    for module in PUBLIC:
        home = importlib.import_module(f"apcg.{module}")
        found |= {f"apcg.{module}.{name}": getattr(home, name) for name in home.__all__}
    return found


@pytest.mark.parametrize("name", sorted(public()))
def test_every_public_object_has_an_example_that_runs(name, monkeypatch):
    monkeypatch.setattr(losses.registry, "_REGISTERED", dict(losses.registry._REGISTERED))
    thing = public()[name]
    doc = inspect.getdoc(thing)
    test = doctest.DocTestParser().get_doctest(doc, {}, name, None, 0)
    assert test.examples, f"{name} has no example"
    said = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=said.write)
    assert runner.failures == 0, said.getvalue()


@pytest.mark.parametrize("name", sorted(public()))
def test_docstrings_have_the_form_of_numpydoc(name):
    """In a section of parameters a line is `name : type`, and what it says stands below it."""
    doc = inspect.getdoc(public()[name])
    for section in re.findall(
        r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", doc, re.DOTALL | re.MULTILINE
    ):
        for line in re.findall(r"^\S.*$", section, re.MULTILINE):
            assert re.fullmatch(r"[\w*., ]+( : .{1,90})?,?", line), line
            assert not line.endswith("."), f"{line!r}: the description goes below the type"


def test_the_reference_has_every_public_name():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    named = re.findall(r"^::: ([\w.]+)$", "\n".join(p.read_text() for p in pages), re.MULTILINE)
    assert len(named) == len(set(named))
    # `check` is also the name of a module, whose page would have neither signature nor example
    homes = {n: n.rpartition(".") for n in named if n.endswith(".check")}
    found = {n: getattr(importlib.import_module(home), own) for n, (home, _, own) in homes.items()}
    assert not [n for n in homes if n in sys.modules]
    own = {thing: name for name, thing in public().items() if name.endswith(".check")}
    assert set(public()) <= {own[found[n]] if n in found else n for n in named}
