"""The documentation, built and opened in a browser."""

import html
import html.parser
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import chromium, complaints

import apcg

ROOT = Path(__file__).resolve().parents[2]


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
    assert "UNSET" not in commands
    assert "N/A" not in commands
    lines = re.sub(r"<[^>]*>", "", commands).splitlines()
    assert "apcg compare text --html report.html" in lines  # an example has a line of its own
    estimators = (site / "reference" / "estimators.html").read_text(encoding="utf-8")
    for name in ("APCGClassifier", "APCGRegressor", "APCGClassifierCV", "APCGRegressorCV"):
        assert f'id="apcg.{name}"' in estimators


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ERM", "solve", "path", "minimize"])
def test_the_signature_on_the_page_is_that_of_the_object(site, name):
    text = (site / "reference" / "solve.html").read_text(encoding="utf-8")
    after = text[text.index(f'id="apcg.{name}"') :]
    shown = re.sub(r"<[^>]+>", "", after[after.index("<pre") : after.index("</pre>")])
    for parameter in inspect.signature(getattr(apcg, name)).parameters:
        assert re.search(rf"\b{parameter}\b", shown), f"{name}: {parameter}"


@pytest.mark.slow
def test_parameters_and_attributes_have_names_and_types(site):
    """A docstring that is no numpydoc gives a sentence for a name, or for a type."""
    strange = []
    for page in sorted((site / "reference").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        for item in re.findall(r'<li class="doc-section-item[^"]*">\s*<b>(.*?)</li>', text, re.S):
            name, _, rest = item.partition("</b>")
            words = re.sub(r"<[^>]+>", "", name).replace(", ", ",").split()
            kind = re.sub(r"<[^>]+>", "", rest.partition("–")[0])
            if len(words) > 1 or words == ["Attributes"] or "as in" in kind:
                strange.append(f"{page.name}: {' '.join(words)} {kind.strip()}")
    assert strange == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["APCGClassifierCV", "APCGRegressorCV"])
def test_a_parameter_has_its_own_default(site, name):
    """Also where the docstring names several on one line, which griffe gives those of the first."""
    text = (site / "reference" / "estimators.html").read_text(encoding="utf-8")
    after = text[text.index(f'id="apcg.{name}"') :]
    section = after[after.index("Parameters:") : after.index("Attributes:")]
    shown = dict(
        re.findall(
            r"<b><code>(\w+)</code></b>.*?default:\s*<code>(.*?)</code>\s*\)", section, re.DOTALL
        )
    )
    of = inspect.signature(getattr(apcg, name)).parameters.values()
    told = {k: html.unescape(re.sub(r"<[^>]+>", "", v)).strip("'\"") for k, v in shown.items()}
    wrong = {
        p.name: told.get(p.name)
        for p in of
        if told.get(p.name) not in (str(p.default), repr(p.default))
        and float(told.get(p.name, "nan")) != p.default
    }
    assert wrong == {}


@pytest.mark.slow
def test_no_dash_without_a_description(site):
    for page in sorted((site / "reference").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'–\s*<div class="doc-md-description">\s*</div>', text), page.name


#: The elements of the pages, and the attributes without a value that they have.
TAGS = """
    html head meta title link script style body header nav main article section aside footer div
    span p a h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table thead tbody tr th td pre code em strong del b
    small sup sub br hr img button form input label details summary dialog blockquote svg path g
    circle rect math mi mn mo mrow msub msup msubsup mfrac mtext mspace semantics annotation figure
    figcaption wbr
"""
BARE = {"hidden", "required", "checked", "disabled", "async", "defer", "open", "selected"}


class Tags(html.parser.HTMLParser):
    """The tags of a page that are no HTML: <z, w> of a formula, which a browser does not show."""

    def __init__(self, page):
        super().__init__()
        self.strange = []
        self.feed(page)
        # stars of a formula, P* and D*, that mark what is between them
        self.strange += re.findall(r"<em>[^<]*[^\w\s][^<]*</em>", page)

    def handle_starttag(self, tag, attributes):
        bare = {name for name, value in attributes if value is None}
        if tag not in TAGS.split() or not all(n in BARE or n.startswith("data-") for n in bare):
            self.strange.append(self.get_starttag_text())


@pytest.mark.slow
def test_no_formula_is_taken_for_a_tag(site):
    """Formulas with <, > and * stand in backticks, in pages and in docstrings."""
    page = "<p><z, pi - e>, <b, x>, <code>1 < 2</code>, (P - P<em>)/P</em>, <em>is</em></p>"
    strange = Tags(page).strange
    assert strange == ["<z, pi - e>", "<b, x>", "<em>)/P</em>"]
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    found = {str(p.relative_to(site)): Tags(p.read_text(encoding="utf-8")).strange for p in pages}
    assert {page: tags for page, tags in found.items() if tags} == {}


#: What a page shows once it is there: formulas typeset, and what sticks out at the right edge.
LOOK = """
    const formulas = [...document.querySelectorAll(".arithmatex")];
    const edge = document.documentElement.clientWidth + 1;
    const wide = [...document.querySelectorAll("article :is(pre, table, p, img)")]
        .filter((e) => e.offsetParent && e.getBoundingClientRect().right > edge);
    const boxes = "article :is(pre > code, .katex-display, .md-typeset__scrollwrap)";
    const cut = [...document.querySelectorAll(boxes)]
        .filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1);
    const pictures = [...document.images].filter((i) => i.complete && !i.naturalWidth);
    return [formulas.length, formulas.filter((f) => !f.querySelector(".katex")).length,
            wide.map((e) => e.textContent.slice(0, 60)), cut.map((e) => e.textContent.slice(0, 60)),
            pictures.map((i) => i.src)];
"""


@pytest.mark.slow
def test_every_page_in_a_browser(site, tmp_path):
    """No error on the console, formulas typeset, no picture missing, nothing cut at the right."""
    found = {}
    formulas = 0
    with chromium(tmp_path) as driver:
        for page in sorted(site.rglob("*.html")):
            if page.name == "404.html":  # its links are those of the server's root
                continue
            driver.get(page.as_uri())
            count, plain, wide, cut, pictures = driver.execute_script(LOOK)
            formulas += count
            said = [line for line in complaints(driver) if "search_index" not in line]
            if plain or wide or cut or pictures or said:
                found[str(page.relative_to(site))] = (plain, wide, cut, pictures, said)
    assert found == {}
    assert formulas > 40
