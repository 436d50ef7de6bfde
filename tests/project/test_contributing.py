"""CONTRIBUTING.md is true: its map has every folder, and what it says is added from outside.

A loss, a penalty, a method, a data storage: each with one output and three, and with an intercept.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import apcg
from apcg import ERM, losses, solve
from apcg.data import Chunked, Dense
from apcg.methods import base, registry

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


RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 8))
NOISE = 0.5 * RNG.standard_normal((150, 3))
#: for one output and for three
TARGETS = {1: X[:, 0] + NOISE[:, 0] + 1, 3: X[:, :3] + NOISE + 1}
LABELS = {1: np.where(X[:, 0] + NOISE[:, 0] > 0.5, 1.0, -1.0), 3: (X[:, :3] + NOISE).argmax(1)}


def least(phi, y, alpha):
    """min P of a loss of residuals with L2 and an intercept, without the package."""
    y = y.reshape(len(y), -1)

    def primal(wb):
        w, b = np.split(wb.reshape(-1, y.shape[1]), [X.shape[1]])
        return phi(X @ w + b - y).sum() / len(y) + alpha * np.sum(w * w) / 2

    start = np.zeros((X.shape[1] + 1) * y.shape[1])
    return minimize(primal, start, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9}).fun


class Quantile(losses.Loss):
    """max(-0.7 r, 0.3 r), smoothed near 0: by its numbers."""

    name, margin, domain, gamma = "quantile", False, (-0.3, 0.7), 0.2

    @staticmethod
    def phi(r):
        x = np.clip(-r / 0.2, -0.3, 0.7)
        return -r * x - 0.1 * x * x


class Expectile(losses.OwnLoss):
    """0.8 r^2 for r < 0, 0.2 r^2 above: by functions."""

    name, gamma = "expectile", 0.5 / 0.8

    def value(self, z, y):
        return self.phi(z - y)

    def derivative(self, z, y):
        return 2 * np.where(z < y, 0.8, 0.2) * (z - y)

    def conjugate(self, u, y):
        return u * u / (4 * np.where(u < 0, 0.8, 0.2)) + u * y

    @staticmethod
    def phi(r):
        return np.where(r < 0, 0.8, 0.2) * r * r


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("loss", [Quantile(), Expectile()])
def test_a_loss_from_outside(loss, K):
    found = solve(ERM(X, TARGETS[K], loss, alpha=0.1, intercept=True), tol=1e-7, random_state=0)
    assert found.converged
    assert np.shape(found.intercept) == (() if K == 1 else (K,))
    known = least(loss.phi, TARGETS[K], 0.1)
    assert found.dual - 1e-9 <= known <= found.primal + 1e-6
    assert found.gap <= 1e-7 * found.primal


class Half:
    """(|w|_1 + |w|^2/2)/2: the elastic net with l1_ratio = 1/2, as a penalty of one's own."""

    strong_convexity = 0.5

    def value(self, w):
        return (np.abs(w).sum() + np.sum(w * w) / 2) / 2

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step / 2, 0) / (1 + step / 2)

    def conjugate(self, v):
        return np.sum(np.maximum(np.abs(v) - 0.5, 0) ** 2)

    def conjugate_gradient(self, v):
        return 2 * np.sign(v) * np.maximum(np.abs(v) - 0.5, 0)


@pytest.mark.parametrize("K", [1, 3])
def test_a_penalty_from_outside(K):
    loss = "logistic" if K == 1 else "multinomial"
    found = solve(ERM(X, LABELS[K], loss, Half(), 0.05, intercept=True), tol=1e-6)
    known = solve(ERM(X, LABELS[K], loss, "elasticnet", 0.05, intercept=True), tol=1e-9)
    assert found.converged
    assert known.dual <= found.primal <= known.primal * (1 + 1e-6)


class BarzilaiBorwein:
    """Gradient descent on w and b; a step is |s|^2/<s, t>, s and t the last differences."""

    name, side = "barzilai_borwein", "primal"
    needs = (base.SMOOTH_LOSS, base.QUADRATIC_PENALTY)
    intercept = outputs = True

    @classmethod
    def start(cls, problem, at, target, rng):
        self = cls()
        self.problem = problem
        self.wb = np.zeros((problem.d + 1, *problem.w_shape[1:]))
        self.slope = self.gradient()
        self.step = problem.n / (problem.spectral_norm**2 + problem.n)
        return self

    def gradient(self):
        p = self.problem
        z = p.predictions(self.wb[:-1]) + self.wb[-1]
        slope = -p.signed(p.loss.duals(z, p.y, p.weights)) / p.n
        over_w = p.samples.adjoint(slope) + p.alpha * self.wb[:-1]
        return np.concatenate([over_w, np.sum(slope, axis=0)[None]])

    def advance(self, budget):
        for _ in range(budget.passes):
            moved = -self.step * self.slope
            self.wb = self.wb + moved
            before, self.slope = self.slope, self.gradient()
            along = np.sum(moved * (self.slope - before))
            if along > 0:
                self.step = np.sum(moved * moved) / along
        return base.Work(budget.passes)

    def point(self):
        return base.Point(w=self.wb[:-1], b=self.wb[-1])

    def seen(self, certificate):
        pass


@pytest.fixture
def registered():
    registry.register(BarzilaiBorwein)
    yield
    registry._METHODS.pop(BarzilaiBorwein.name)


@pytest.mark.parametrize("K", [1, 3])
def test_a_method_from_outside(registered, K):
    loss = "logistic" if K == 1 else "multinomial"
    problem = ERM(X, LABELS[K], loss, alpha=0.05, intercept=True)
    found = solve(problem, "barzilai_borwein", tol=1e-8, check_every=5)
    known = solve(problem, tol=1e-10)
    assert found.converged
    assert found.method == "barzilai_borwein"
    assert known.dual <= found.primal <= known.primal * (1 + 1e-8)
    with pytest.raises(ValueError, match="'barzilai_borwein' needs a smooth loss"):
        solve(ERM(X, LABELS[1], "hinge"), "barzilai_borwein")


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


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        ("logistic", LABELS[1]),
        ("squared", TARGETS[1]),
        ("hinge", LABELS[1]),
        ("multinomial", LABELS[3]),
        ("huber", TARGETS[3]),
    ],
)
def test_a_data_storage_from_outside(tmp_path, loss, y):
    stored = Compressed(tmp_path, X, 40)
    problem = ERM(stored.matrix(), y, loss, "l2", 0.05, intercept=True)
    found = solve(problem, tol=1e-6, random_state=0)
    known = solve(ERM(X, y, loss, "l2", 0.05, intercept=True), tol=1e-9, random_state=0)
    assert found.converged
    assert stored.read >= 4  # each part at least once
    assert found.primal == pytest.approx(known.primal, rel=2e-6)
