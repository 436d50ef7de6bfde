"""CONTRIBUTING.md is true: its map has every folder, and a data storage is added as it says."""

import re
from pathlib import Path

import numpy as np
import pytest

import apcg
from apcg import ERM, solve
from apcg.data import Chunked, Dense

PACKAGE = Path(apcg.__file__).parent
PAGE = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = PAGE.split("## Where everything is")[1].split("## Adding something")[0]


def folders():
    for package in (PACKAGE, PACKAGE / "methods"):
        for path in sorted(package.iterdir()):
            if (path / "__init__.py").exists():
                yield path.name


def test_the_map_has_every_folder_in_one_line():
    listed = re.findall(r"^ {6,8}(\w+)/ ", MAP, re.MULTILINE)
    assert sorted(listed) == sorted(folders())


@pytest.mark.parametrize("thing", ["loss", "penalty", "method", "data storage"])
def test_the_page_says_how_to_add(thing):
    assert f"**A {thing}.**" in PAGE


class Compressed:
    """Rows of X in compressed files, a part in each; counts how often one is read."""

    def __init__(self, folder, X, rows):
        self.read = 0
        self.files, self.sizes = [], []
        for first in range(0, len(X), rows):
            part, path = X[first : first + rows], folder / f"{first}.npz"
            np.savez_compressed(path, X=part)
            self.files.append(path)
            self.sizes.append((len(part), part.size))

    def _load(self, path):
        self.read += 1
        with np.load(path) as file:
            return Dense(file["X"])

    def matrix(self):
        return Chunked([lambda p=p: self._load(p) for p in self.files], self.sizes)


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_a_data_storage_from_outside(tmp_path, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 8))
    y = np.where(X[:, 0] + rng.standard_normal(150) > 0, 1.0, -1.0)
    stored = Compressed(tmp_path, X, 40)
    found = solve(ERM(stored.matrix(), y, loss, "l2", 0.05), tol=1e-6, random_state=0)
    known = solve(ERM(X, y, loss, "l2", 0.05), tol=1e-9, random_state=0)
    assert found.converged
    assert stored.read >= 4  # each part at least once
    assert found.primal == pytest.approx(known.primal, rel=2e-6)
