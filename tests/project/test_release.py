"""What a release says of itself: the same in every file."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_addresses_and_classifiers():
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= set(
        PROJECT["urls"]
    )
    for minor in (11, 12, 13, 14):
        assert f"Programming Language :: Python :: 3.{minor}" in PROJECT["classifiers"]
        assert f'"3.{minor}"' in text(".github/workflows/tests.yml")
        assert f"cp3{minor}-*" in PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert PROJECT["urls"]["Repository"] in text("CITATION.cff")


def test_one_version():
    version = re.search(r"version: '([^']+)'", text("meson.build"))[1]
    assert f"\nversion: {version}\n" in text("CITATION.cff")
    assert f'version = "{version}"' in text("packaging/conda/meta.yaml")
    assert f"## [{version}]" in text("CHANGELOG.md")


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = text("packaging/conda/meta.yaml").split("  run:\n")[1].split("\n\n")[0]
    wanted = {re.sub(r"(>=)", r" \1", d) for d in PROJECT["dependencies"]}
    assert {line.strip(" -") for line in recipe.splitlines()} == wanted | {"python"}
    for built in PYPROJECT["build-system"]["requires"]:
        assert re.sub(r"(>=)", r" \1", built) in text("packaging/conda/meta.yaml")


def test_every_file_that_builds_says_the_same():
    for name in ("tools/prepare.py", "tools/oldest.py"):
        for built in PYPROJECT["build-system"]["requires"]:
            assert f'"{built}"' in text(name)


@pytest.mark.parametrize("name", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_workflows_are_yaml(name):
    yaml = pytest.importorskip("yaml")
    made = yaml.safe_load(name.read_text(encoding="utf-8"))
    if name.parent.name == "workflows":
        assert all("steps" in job for job in made["jobs"].values())
    elif name.name != "config.yml":
        assert {"name", "description", "body"} <= set(made)


def test_publishing_stores_no_password():
    said = text(".github/workflows/wheels.yml")
    assert "id-token: write" in said
    assert "secrets." not in said


@pytest.mark.slow
def test_what_is_installed_works(monkeypatch):
    """tools/smoke.py is what is run with every wheel."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    importlib.import_module("smoke").main()


def test_the_readme_of_the_package_index_has_no_relative_links(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    absolute = importlib.import_module("readme").absolute
    made = absolute(text("README.md"), PROJECT["urls"]["Repository"], "v9")
    links = re.findall(r"\]\(([^)]+)\)", made)
    assert len(links) > 5
    assert [link for link in links if "://" not in link and link[0] != "#"] == []
    given = "![a](b/c.png) [d](e.md#f) [g](https://h) [i](#j)"
    assert absolute(given, "https://github.com/x/y", "v1") == (
        "![a](https://raw.githubusercontent.com/x/y/v1/b/c.png) "
        "[d](https://github.com/x/y/blob/v1/e.md#f) [g](https://h) [i](#j)"
    )
