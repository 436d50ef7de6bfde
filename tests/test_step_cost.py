"""A step costs as many instructions in a large problem as in a small one."""

import importlib.util
import shutil
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
counted = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def step_cost():
    return load("step_cost")


@counted
def test_a_step_of_apcg_costs_little_more_than_one_of_sdca():
    """The paper says twice; p and q are handled as pairs."""
    count = load("instructions").count
    apcg, sdca = (count(m, 75, "smoothed_hinge", "float64") for m in ("apcg", "sdca"))
    assert sdca > 75 * 4
    assert apcg <= 1.3 * sdca


@counted
def test_the_instructions_of_a_step_do_not_grow_with_the_problem(step_cost):
    small, large = step_cost.per_step([2_000, 200_000], nonzeros=10, mu=0.01, steps=20_000)
    assert 50 < small < 5_000
    assert large / small < 1.5


def test_the_steps_between_two_folds(step_cost):
    """As the benchmark spreads a fold: -log(FOLD_AT)/2 passes at mu = 1, rounded up to a step."""
    method = step_cost.make(500, nonzeros=5, mu=1.0)
    order = step_cost.np.arange(500)
    passes = 0
    while not method.state.folds:
        method.epoch(order)
        passes += 1
    assert passes - 1 <= -step_cost.np.log(step_cost.FOLD_AT) / 2 <= passes


def test_without_valgrind_it_says_how_to_get_it(step_cost, monkeypatch):
    monkeypatch.setattr(step_cost.shutil, "which", lambda name: None)
    with pytest.raises(step_cost.NoCounts, match="apt install valgrind"):
        step_cost.instructions(100, 5, 0.0, steps=10)
