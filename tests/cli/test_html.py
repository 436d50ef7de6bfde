"""The HTML reports, opened in a real browser."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from browser import chromium, complaints

from apcg import ERM, datasets
from apcg.experiments import comparison, page, pages, paper, report


def small():
    X, y = datasets.text_like(300, 60, 8)
    return datasets.Dataset(X, y, "</script><b>rcv1", "generated here")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A page by the command itself."""
    folder = tmp_path_factory.mktemp("compare")
    words = ["compare", "breast_cancer", "--alpha", "1e-3,1e-4", "--methods", "auto,apcg,sdca"]
    command = [*words, "--bound", "--no-plot", "--html", "report.html"]
    done = subprocess.run([sys.executable, "-m", "apcg", *command], cwd=folder, text=True,
                          capture_output=True, check=True)  # fmt: skip
    assert "written: report.html" in done.stdout
    return folder / "report.html", ["apcg", *command]


def opened(driver, path):
    """The page, when its curves are there."""
    from selenium.webdriver.support.wait import WebDriverWait

    driver.get(path.as_uri())
    WebDriverWait(driver, 60).until(
        lambda d: d.find_elements("css selector", "body[data-drawn]"), "no curves"
    )


def drawn(driver):
    """(name, points) of every curve that is on the screen."""
    return driver.execute_script("""
        const plot = document.getElementById("plot");
        return plot._fullData.filter((t) => t.visible === true && t.x.length).map(
            (t) => [t.name, t.x.length, t.xaxis]);
    """)


@pytest.mark.slow
def test_the_page_of_compare(compared, tmp_path):
    """Curves are drawn, the switch and the legend answer to clicks, the console is silent."""
    from selenium.webdriver.common.action_chains import ActionChains

    path, command = compared
    with chromium(tmp_path) as driver:
        opened(driver, path)
        names = [name for name, _, _ in drawn(driver)]
        methods = ["auto", "APCG", "SDCA"]
        assert names == 2 * methods  # two lambdas; the bound has no relative gap
        assert (
            len(driver.find_elements("css selector", "#plot .scatterlayer .trace path.js-line"))
            == 6
        )

        def title():
            return driver.execute_script("return plot._fullLayout.xaxis.title.text")

        assert title() == "passes over the data"
        driver.find_element("id", "x-seconds").click()
        assert title() == "seconds"
        assert driver.find_element("id", "x-seconds").get_attribute("aria-pressed") == "true"
        assert [name for name, _, _ in drawn(driver)] == 2 * methods
        driver.find_element("id", "x-passes").click()
        driver.find_element("id", "y-gap").click()
        assert len(drawn(driver)) == 8  # with what Theorem 2 promises

        def click(name):
            entry = next(
                e for e in driver.find_elements("css selector", "#plot .legend .traces")
                if e.get_attribute("textContent") == name
            )  # fmt: skip
            ActionChains(driver).click(
                entry.find_element("css selector", ".legendtoggle")
            ).perform()
            driver.execute_async_script(
                "setTimeout(arguments[0], 600)"
            )  # it waits for a second click

        click("SDCA")
        assert "SDCA" not in [name for name, _, _ in drawn(driver)]
        driver.find_element("id", "y-relative").click()  # a switch does not bring it back
        assert [name for name, _, _ in drawn(driver)] == 2 * methods[:2]
        click("SDCA")
        assert [name for name, _, _ in drawn(driver)] == 2 * methods
        driver.find_element("id", "scale-linear").click()
        text = driver.find_element("tag name", "main").text
        for said in ("569", "built in", "λ = 0.001"):
            assert said in text
        assert driver.find_element("id", "command").text.split() == command
        assert complaints(driver) == []


def test_the_page_needs_nothing_else(compared):
    """No address in what the page itself loads: scripts, styles and pictures are inside."""
    text = compared[0].read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|img|iframe)[^>]*\bsrc=", text.replace(page._plotly(), ""))
    assert re.findall(r'<link[^>]*href="([^"]*)"', text.replace(page._plotly(), "")) == ["data:,"]


def test_the_curves_are_the_runs():
    data = small()
    problem = ERM(data.X, data.y, alpha=1e-3)
    found, _ = comparison.run_twice(problem, ["apcg", "sdca"], passes=30, tol=1e-9)
    rows = comparison.summary(problem, found)
    made = pages.of_comparison(data, problem, {1e-3: found}, rows, facts=[], bound=False)
    best = min(r.primal for runs in (found.looked, found.timed) for r in runs.values())
    for curve in made.panels["", "λ = 0.001"]:
        trace, timed = found.looked[curve.name].trace, found.timed[curve.name].trace
        np.testing.assert_allclose(curve.passes["at"][1:], trace["epoch"][1:])
        np.testing.assert_allclose(curve.passes["gap"], trace["gap"], rtol=1e-5)
        np.testing.assert_allclose(curve.seconds["at"], timed["seconds"], rtol=1e-5)
        errors = [v if v is not None else 0 for v in curve.passes["error"]]
        np.testing.assert_allclose(errors, trace["primal"] - best, rtol=1e-4, atol=1e-15)


@pytest.mark.slow
def test_the_page_of_reproduce_with_a_name_that_looks_like_html(tmp_path):
    data = small()
    cells, _ = paper.run([data], (1e-3, 1e-5), passes=10, seed=0, jobs=1)
    made = pages.of_reproduction([data], cells, facts=[("loss", "a<b")], note="")
    path = page.write(made, tmp_path / "paper.html")
    with chromium(tmp_path / "profile") as driver:
        opened(driver, path)
        assert [name for name, _, _ in drawn(driver)] == 2 * ["APCG", "SDCA", "AFG"]
        text = driver.find_element("tag name", "main").text
        assert data.name in text
        assert "a<b" in text
        for claim in report.claims(cells):
            assert claim["claim"] in text
        assert complaints(driver) == []


def test_no_page_without_plotly_or_over_the_data(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match="apcg\\[report\\]"):
        page.check(tmp_path / "x.html", [])
    monkeypatch.undo()
    file = tmp_path / "data.libsvm"
    file.write_text("1 1:1\n-1 1:-1\n")
    done = subprocess.run([sys.executable, "-m", "apcg", "compare", file, "--html", file],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode != 0
    assert "would be lost" in done.stderr
    assert file.read_text() == "1 1:1\n-1 1:-1\n"


def test_numbers_in_the_page_are_json():
    assert json.loads(page._in_script({"a": "</script>"})) == {"a": "</script>"}
    assert "<" not in page._in_script({"a": "</script>"})
    assert page._numbers(np.array([1.23456789, 0.0, np.nan, np.inf])) == [1.23457, None, None, None]
