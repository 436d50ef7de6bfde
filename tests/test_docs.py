"""The code in README.md and docs/ runs, and prints what is printed below it."""

import contextlib
import doctest
import io
import re
import sys
from pathlib import Path

import pytest

import apcg.estimators
import apcg.minimize  # noqa: F401  the module, which the function of the same name hides

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_examples_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    """Blocks of one page share their names; a `text` block right after one is its output."""
    monkeypatch.chdir(tmp_path)
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


def test_the_pages_have_examples():
    assert sum(len(BLOCK.findall(p.read_text(encoding="utf-8"))) for p in PAGES) >= 6
    with_output = [b for p in PAGES for b in BLOCK.findall(p.read_text(encoding="utf-8")) if b[1]]
    assert len(with_output) >= 5


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"\b(?:src|docs|examples|benchmarks)/[\w/.-]*\w", text)
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    missing = [p for p in paths if not (ROOT / p).exists()]
    missing += [link for link in links if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize(
    "module",
    [
        "apcg.minimize",
        "apcg.solve",
        "apcg.erm",
        "apcg.path",
        "apcg.estimators.classifier",
        "apcg.estimators.regressor",
        "apcg.estimators.cv",
    ],
)
def test_docstrings(module):
    # the functions hide their modules: apcg.minimize is the function
    results = doctest.testmod(sys.modules[module])
    assert results.attempted > 3
    assert results.failed == 0
