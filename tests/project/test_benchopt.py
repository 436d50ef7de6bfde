"""The solvers for benchopt: the objectives of its benchmarks, reached through its three methods.

benchopt itself is replaced by two names here: it is not among the packages that tests need.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import minimize

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "benchopt"


@pytest.fixture
def solver(monkeypatch):
    """The class `Solver` of a file."""
    package, criteria = ModuleType("benchopt"), ModuleType("benchopt.stopping_criterion")
    package.BaseSolver = object
    criteria.SufficientProgressCriterion = lambda patience, strategy: (patience, strategy)
    monkeypatch.setitem(sys.modules, "benchopt", package)
    monkeypatch.setitem(sys.modules, "benchopt.stopping_criterion", criteria)

    def load(name):
        spec = importlib.util.spec_from_file_location(f"solver_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.Solver()

    return load


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6)) + 0.3
    return X, np.where(X[:, 0] + rng.standard_normal(120) > 0.6, 1.0, -1.0)


def found(solver):
    """The answer after tolerances as benchopt asks for them, from 3e38 down."""
    tolerance = 3e38
    while tolerance > 1e-10:
        solver.run(tolerance)
        tolerance = solver.get_next(tolerance)
    return solver.get_result()["beta"]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", ["logreg_l2", "ridge"])
def test_smooth_objectives(solver, name, fit_intercept):
    """As benchmark_logreg_l2 and benchmark_ridge state them; the intercept comes last."""
    X, y = data()

    def objective(beta):
        w, b = (beta[:-1], beta[-1]) if fit_intercept else (beta, 0.0)
        z = X @ w + b
        loss = np.logaddexp(0, -y * z) if name == "logreg_l2" else (z - y) ** 2 / 2
        return loss.sum() + 0.7 / 2 * w @ w

    s = solver(name)
    s.set_objective(X=X, y=y, lmbd=0.7, fit_intercept=fit_intercept)
    assert not s.get_result()["beta"].any()  # before the first run
    beta = found(s)
    best = minimize(objective, np.zeros(beta.size), tol=1e-12).fun
    assert beta.shape == (6 + fit_intercept,)
    assert objective(beta) <= best * (1 + 1e-9)


def test_the_linear_svm(solver):
    """C sum of hinges + |w|^2/2 as benchmark_linear_svm_... states it, against its dual."""
    X, y = data()
    C = 0.05
    s = solver("linear_svm")
    s.set_objective(X=X, y=y, C=C)
    w = found(s)
    primal = C * np.maximum(1 - y * (X @ w), 0).sum() + w @ w / 2
    Z = y[:, None] * X
    dual = minimize(
        lambda a: (a @ Z) @ (a @ Z) / 2 - a.sum(),
        np.full(len(y), C / 2),
        jac=lambda a: Z @ (a @ Z) - 1,
        bounds=[(0, C)] * len(y),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )
    assert -dual.fun * (1 - 1e-9) <= primal <= -dual.fun * (1 + 1e-6)
