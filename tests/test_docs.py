"""The code in README.md and docs/ runs, and prints what is printed below it."""

import contextlib
import doctest
import html.parser
import importlib
import io
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import apcg.estimators
import apcg.linear_model
import apcg.patch  # noqa: F401  for their docstrings
from apcg import losses

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "docs" / "paper.md"
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
    tests = [test for *_, column in rows for test in re.findall(r"tests/\w+\.py", column)]
    assert len(rows) > 30
    assert len(names) > 40
    assert all("tests/" in column or column in ("checked by", "---") for *_, column in rows)
    assert not [test for test in tests if not (ROOT / test).exists()]
    for name in set(names) - {"State.fold"}:  # of a kernel, named beside its file
        if "/" in name:
            assert any((root / name).exists() for root in (ROOT, ROOT / "src" / "apcg")), name
        else:
            assert pydoc.locate(f"apcg.{name}") is not None, name


def test_the_map_has_every_numbered_thing_of_the_paper():
    text = PAPER.read_text(encoding="utf-8")
    for kind, count in (("Algorithm", 5), ("Theorem", 4), ("Lemma", 4), ("Corollary", 2),
                        ("Assumption", 3), ("Proposition", 1), ("Table", 1)):  # fmt: skip
        for k in range(1, count + 1):
            assert f"{kind} {k}" in text
    assert "Figures 1 and 2" in text


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The documentation, built as `make docs` does."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("documentation") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.slow
def test_the_documentation_builds_without_warnings(site):
    commands = (site / "commands.html").read_text(encoding="utf-8")
    for option in ("--max-passes", "--quick", "--probabilities", "--bound"):
        assert option in commands
    assert "condition_number" in (site / "api.html").read_text(encoding="utf-8")


#: The elements of the pages, and the attributes without a value that they have.
TAGS = """
    html head meta title link script style body header nav main article section aside footer div
    span p a h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table thead tbody tr th td pre code em strong del
    small sup sub br hr img button form input label details summary dialog blockquote svg path g
    circle rect math mi mn mo mrow msub msup msubsup mfrac mtext mspace semantics annotation figure
    figcaption
"""
BARE = {"hidden", "required", "checked", "disabled", "async", "defer", "open", "selected"}


class Tags(html.parser.HTMLParser):
    """The tags of a page that are no HTML: <z, w> of a formula, which a browser does not show."""

    def __init__(self, page):
        super().__init__()
        self.strange = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        bare = {name for name, value in attributes if value is None}
        if tag not in TAGS.split() or not all(n in BARE or n.startswith("data-") for n in bare):
            self.strange.append(self.get_starttag_text())


def test_no_formula_is_taken_for_a_tag(site):
    """Formulas with < and > stand in backticks, in pages and in docstrings."""
    strange = Tags("<p>the sum of <z, pi - e> and <b, x> and <code>1 < 2</code></p>").strange
    assert strange == ["<z, pi - e>", "<b, x>"]
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    found = {str(p.relative_to(site)): Tags(p.read_text(encoding="utf-8")).strange for p in pages}
    assert {page: tags for page, tags in found.items() if tags} == {}


def test_the_pages_have_examples():
    assert sum(len(BLOCK.findall(p.read_text(encoding="utf-8"))) for p in PAGES) >= 6
    with_output = [b for p in PAGES for b in BLOCK.findall(p.read_text(encoding="utf-8")) if b[1]]
    assert len(with_output) >= 5


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"\b(?:src|docs|examples|benchmarks|tests)/[\w/.-]*\w", text)
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    missing = [p for p in paths if not (ROOT / p).exists()]
    missing += [link for link in links if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize(
    "module",
    [
        *("run.minimize", "run.solve", "problems.erm", "run.path", "datasets", "datasets.generate"),
        *("estimators.classifier", "estimators.regressor", "estimators.cv"),
    ],
)
def test_docstrings(module):
    # the functions hide their modules: apcg.minimize is the function
    results = doctest.testmod(importlib.import_module(f"apcg.{module}"))
    assert results.attempted > 1
    assert results.failed == 0
