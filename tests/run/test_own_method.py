"""A method and a loss from outside the package: `solve`, certificates, errors, the command."""

import json

import numpy as np
import pytest
from erm_problems import problem

from apcg import ERM, losses, solve
from apcg.cli import main
from apcg.methods import registry
from apcg.methods.base import QUADRATIC_PENALTY, SMOOTH_LOSS, Point, Report, Work


class GradientDescent:
    """w <- w - grad P(w)/L on the primal, one step a pass."""

    name = "gradient descent"
    needs = (SMOOTH_LOSS, QUADRATIC_PENALTY)
    side = "primal"

    @classmethod
    def start(cls, problem, at, target, rng):
        self = cls()
        self.problem, self.told = problem, []
        self.w = np.zeros(problem.d) if at.w is None else np.array(at.w)
        smooth = problem.spectral_norm**2 / (problem.loss.gamma * problem.n)
        self.L = smooth + problem.alpha
        return self

    def advance(self, budget):
        p = self.problem
        for _ in range(budget.passes):
            slope = p.weights * p.loss.derivative(p.predictions(self.w), p.y) / p.n
            self.w = self.w - (p.samples.adjoint(slope) + p.alpha * self.w) / self.L
        return Work(budget.passes)

    def point(self):
        return Point(w=self.w)

    def seen(self, certificate):
        self.told.append(certificate.gap)


@pytest.fixture
def registered():
    registry.register(GradientDescent)
    yield
    registry._METHODS.pop(GradientDescent.name)


@pytest.mark.parametrize("method", [GradientDescent, GradientDescent()], ids=["class", "object"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "huber"])
def test_solve_takes_it_and_certifies(method, loss):
    p = problem(loss, alpha=0.1, weighted=True)
    r = solve(p, method, tol=1e-8, max_epochs=5000, check_every=10)
    known = solve(p, tol=1e-10, random_state=0)
    assert r.converged
    assert r.method == "gradient descent"
    assert r.side == "primal"
    assert r.gap == pytest.approx(p.primal(r.w) - p.dual(r.x), abs=1e-15)
    assert known.dual - 1e-12 <= r.primal <= known.primal * (1 + 2e-8)
    assert solve(p, method, x0=r, tol=1e-7, max_epochs=10).epochs == 0
    assert (np.diff(r.trace["epoch"]) == 10).all()


def test_it_is_told_what_the_looks_found():
    """Every look but the one that ends the run."""
    made = []

    class Recording(GradientDescent):
        @classmethod
        def start(cls, *given):
            made.append(super().start(*given))
            return made[0]

    r = solve(problem("logistic", alpha=0.1), Recording, tol=1e-6, check_every=5)
    assert r.converged
    assert len(made[0].told) > 2
    np.testing.assert_array_equal(made[0].told, r.trace["gap"][:-1])


@pytest.mark.parametrize(
    ("loss", "penalty", "words"),
    [
        ("hinge", "l2", r"needs a smooth loss, and loss 'hinge' is not smooth; take one of 'auto'"),
        ("logistic", "l1", r'needs penalty "l2".*and penalty l1 is not of that kind'),
    ],
)
def test_an_unfit_pair_is_one_error_that_names_both_sides(loss, penalty, words):
    p = problem(loss, penalty, 0.1)
    with pytest.raises(ValueError, match=words) as error:
        solve(p, GradientDescent)
    assert "'gradient descent'" in str(error.value)
    for name in registry.fitting(p):
        assert repr(name) in str(error.value)


def test_an_intercept_is_not_silently_left_out():
    p = problem("logistic", alpha=0.1, intercept=True)
    with pytest.raises(
        ValueError, match=r"'gradient descent' needs a problem without an inter"
    ) as e:
        solve(p, GradientDescent)
    assert "`intercept = True`" in str(e.value)
    assert "and this one has one; take one of 'auto'" in str(e.value)


def test_outputs_are_refused_by_a_method_for_one():
    p = ERM(np.eye(3), [0, 1, 2], "multinomial")
    with pytest.raises(
        ValueError, match=r"needs one output \(.*`outputs = True`\), and there are 3"
    ):
        solve(p, GradientDescent)


class Descent(GradientDescent):
    """The same for K outputs, with b as a last row of W that has no penalty."""

    name, outputs, intercept = "descent", True, True

    @classmethod
    def start(cls, problem, at, target, rng):
        self = cls()
        self.problem, self.told, K = problem, [], problem.K
        self.w = np.zeros((problem.d, K) if K > 1 else problem.d) if at.w is None else at.w.copy()
        self.b = np.zeros(K) if K > 1 else 0.0
        length = np.sqrt(problem.spectral_norm**2 + problem.n)  # at least that of X with ones
        self.L = length**2 / (problem.loss.gamma * problem.n) + problem.alpha
        return self

    def advance(self, budget):
        p = self.problem
        for _ in range(budget.passes):
            slope = -p.signed(p.loss.duals(p.predictions(self.w) + self.b, p.y, p.weights)) / p.n
            self.w = self.w - (p.samples.adjoint(slope) + p.alpha * self.w) / self.L
            if p.intercept:
                self.b = self.b - slope.sum(axis=0) / self.L
        return Work(budget.passes)

    def point(self):
        return Point(w=self.w, b=self.b)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("K", [1, 3])
def test_one_that_takes_them_is_certified(K, intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = rng.integers(3, size=60) if K == 3 else np.sign(X[:, 0] + 0.5)
    p = ERM(X, y, "multinomial" if K == 3 else "logistic", alpha=0.1, intercept=intercept)
    r = solve(p, Descent, tol=1e-7, max_epochs=5000, check_every=20)
    assert r.converged
    assert r.gap == pytest.approx(p.primal(r.w, r.intercept) - p.dual(r.x), abs=1e-15)
    assert r.primal == pytest.approx(solve(p, tol=1e-9, random_state=0).primal, rel=1e-6)
    assert np.any(r.intercept) == intercept


def test_of_two_with_one_name_the_last_that_fits_is_taken():
    class Late(GradientDescent):
        name = "newton"

    registry.register(Late)
    try:
        assert registry.find("newton", problem("logistic")) is Late
        free = problem("logistic", intercept=True)
        assert registry.find("newton", free) is not Late
        assert solve(free, "newton").converged
    finally:
        registry._METHODS["newton"] = registry._METHODS["newton"][1:]


def test_what_a_run_says_of_itself_is_recorded():
    """In a `report`, or in attributes of the same names."""

    class Says(GradientDescent):
        notes, mu, restarts, stuck = ["plain steps"], 0.5, 3, True

    p = problem("logistic", alpha=0.1)
    r = solve(p, Says, tol=1e-12, check_every=1)
    assert r.status.code == "stuck"
    assert r.trace.notes == ["plain steps"]
    assert r.mu == r.trace["mu"][-1] == 0.5
    assert r.trace["restarts"][-1] == 3
    Says.report = Report("dual", mu=0.25, notes=["steps"])
    r = solve(p, Says, tol=1e-6, check_every=10)
    assert (r.converged, r.side, r.mu, r.trace.notes) == (True, "dual", 0.25, ["steps"])
    Says.report = "none"
    with pytest.raises(TypeError, match="report of a run must be a Report, got str"):
        solve(p, Says)


def test_by_name_once_it_is_registered(registered):
    r = solve(problem("logistic", alpha=0.1), "gradient descent", tol=1e-4)
    assert r.converged
    assert "gradient descent" in registry.names()


def test_a_line_in_compare(registered, tmp_path, capsys, monkeypatch):
    options = "--alpha 1e-2 --max-passes 20 --json --no-plot --loss logistic --out"
    command = ["apcg", "compare", "text", "--methods", "sdca,gradient descent", *options.split()]
    monkeypatch.setattr("sys.argv", [*command, str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    said = json.loads(capsys.readouterr().out)
    assert {row["method"] for row in said["runs"]} == {"sdca", "gradient descent"}


def test_what_is_no_method_is_refused():
    p = problem("logistic")
    with pytest.raises(ValueError, match="method must be one of 'auto', 'apcg'"):
        solve(p, "newtn")
    with pytest.raises(ValueError, match="method must be one of"):
        solve(p, 3)
    broken = type("Broken", (), {"start": None})
    with pytest.raises(TypeError, match="has no name, needs"):
        solve(p, broken)


class Quantile(losses.Loss):
    """max(-q r, (1 - q) r), smoothed by gamma."""

    name = "quantile"
    margin = False

    def __init__(self, q=0.3, gamma=0.1):
        self.domain = (q - 1, q)
        self.gamma = gamma


@pytest.mark.parametrize("method", ["auto", "apcg", "sdca", "afg", "newton", "adaptive"])
@pytest.mark.parametrize("intercept", [False, True])
def test_an_own_loss_works_with_every_method(method, intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5))
    y = X @ rng.standard_normal(5) + rng.exponential(1.0, 80)
    p = ERM(X, y, Quantile(), alpha=1e-3, intercept=intercept)
    r = solve(p, method, tol=1e-8, max_epochs=20_000, random_state=0)
    assert r.converged
    z = X @ r.w + r.intercept - y

    def phi(r):  # by its definition: the maximum of -x r - (gamma/2) x^2 over the domain
        x = np.clip(-r / 0.1, -0.7, 0.3)
        return -x * r - 0.05 * x**2

    assert r.primal == pytest.approx(np.mean(phi(z)) + 5e-4 * r.w @ r.w, rel=1e-12)
