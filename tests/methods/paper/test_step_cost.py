"""A step costs as many instructions in a large problem as in a small one."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
counted = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def step_cost():
    return load("step_cost")


@pytest.fixture(scope="module")
def kernel():
    module = load("kernel")
    try:
        module.libraries()
    except module.CannotCount as reason:
        pytest.skip(str(reason))
    return module


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("method", ["apcg", "sdca"])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared", "logistic"])
@pytest.mark.parametrize("nonzeros", [10, 75, 0])
def test_the_plain_loops_take_the_same_steps(kernel, method, loss, nonzeros):
    data = kernel.Data(nonzeros, loss, n=300, d=100)
    assert kernel.difference(data, method, passes=20) < 1e-10


@pytest.mark.slow
@counted
def test_a_step_costs_little_more_than_in_a_plain_loop(kernel):
    """And a step of APCG little more than one of SDCA, though the paper says twice."""
    sets = [kernel.Data(10, "smoothed_hinge"), kernel.Data(75, "smoothed_hinge")]
    jobs = [(side, method, data) for data in sets for side, method in kernel.JOBS]
    try:
        found = kernel.counts(jobs)
    except kernel.CannotCount as reason:
        pytest.skip(str(reason))
    each = len(kernel.JOBS) // 2  # ours, and the ways to compile the plain loop
    for data, at in zip(sets, (0, 2 * each), strict=True):
        a, *plain_a = found[at : at + each]
        s, *plain_s = found[at + each : at + 2 * each]
        assert min(plain_s) > 8 * data.nonzeros
        assert a <= 1.15 * min(plain_a)
        assert s <= 1.15 * min(plain_s)
        assert a <= 1.3 * s


@pytest.mark.slow
@counted
def test_the_instructions_of_a_step_do_not_grow_with_the_problem(step_cost):
    small, large = step_cost.per_step([2_000, 200_000], nonzeros=10, mu=0.01, steps=20_000)
    assert 50 < small < 5_000
    assert large / small < 1.5


@pytest.mark.slow
@counted
def test_steps_with_lazy_updates_cost_as_much_as_their_nonzeros(step_cost):
    small, large = step_cost.per_step([2_000, 100_000], nonzeros=10, mu="SAG+SVRG", steps=2_000)
    assert 100 < small < 5_000
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


@pytest.mark.slow
@counted
def test_a_step_with_twenty_classes_costs_less_than_half_of_as_many_steps():
    outputs = load("step_cost_outputs")
    try:
        one, many = outputs.per_step([("apcg", 60, 1), ("apcg", 60, 20)])
    except outputs.NoCounts as reason:
        pytest.skip(str(reason))
    assert 60 * 20 < many < 0.5 * 20 * one
    assert many <= 20 * 20 * 60  # instructions, for each class and nonzero
