"""An L2 weight for each feature: the problem with scaled columns and one weight."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from apcg import ERM, losses, penalties, solve
from apcg.certify.points import Start
from apcg.methods.plan.plan import Auto
from apcg.methods.reductions.scaled import Scaled

LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "huber", "epsilon_insensitive"]


def problem(loss="logistic", n=60, d=90, seed=0, spread=1.0, dtype=float, sparse=False, **options):
    """Each feature has a weight of its own, of up to 10^spread and down to 10^-spread."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if sparse:
        X = sp.csr_array(X * (rng.random((n, d)) < 0.2))
    z = X @ rng.standard_normal(d) + rng.standard_normal(n)
    y = z
    if loss == "multinomial":
        y = rng.integers(0, 3, n)
    elif losses.by_name(loss).margin:
        y = np.where(z > 0, 1.0, -1.0)
    b = 10 ** rng.uniform(-spread, spread, d)
    options.setdefault("alpha", 1e-2)
    return ERM(X.astype(dtype), y, loss, penalties.L2(b), **options)


@pytest.mark.parametrize("loss", [*LOSSES, "multinomial"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimum_is_that_of_a_method_that_knows_the_weights(loss, intercept, sparse):
    weights = np.arange(60) % 3.0
    p = problem(loss, intercept=intercept, sparse=sparse, sample_weight=weights)
    found = solve(p, Scaled(Auto()), tol=1e-8, max_epochs=5000, random_state=0)
    assert found.converged
    other = solve(p, "afg" if p.K > 1 else "adaptive", tol=1e-4, max_epochs=2000, random_state=0)
    assert other.dual <= found.primal * (1 + 1e-12)
    assert found.dual <= other.primal * (1 + 1e-12)


@given(seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES), spread=st.floats(0.1, 5.0))
def test_any_weights(seed, loss, spread):
    p = problem(loss, n=20, d=7, seed=seed, spread=spread, intercept=bool(seed % 2))
    found = solve(p, "scaled", tol=1e-6, max_epochs=5000, random_state=0)
    assert found.converged
    assert p.primal(found.w, found.intercept) - p.dual(found.x) <= 1e-6 * found.primal * (1 + 1e-9)


def test_the_plan_takes_it_and_says_what_is_at_work_inside():
    found = solve(problem(), random_state=0)
    assert [note.split(":")[0] for note in found.trace.notes[:2]] == ["scaled", "dual"]
    assert Auto().first(problem("multinomial"), Start())[0].name == "scaled"


@pytest.mark.parametrize("b", [np.ones(90), np.geomspace(1e-14, 1.0, 90)])
def test_it_is_not_for_equal_weights_or_very_different_ones(b):
    X = np.random.default_rng(0).standard_normal((60, 90))
    p = ERM(X, np.sign(X[:, 0]), "logistic", penalties.L2(b[0] if b[0] == 1 else b))
    assert Auto().first(p, Start())[0].name != "scaled"
    with pytest.raises(ValueError, match=r"needs an L2 weight for each feature"):
        solve(p, "scaled")


def test_float32_is_scaled_in_float64():
    """Else the answer would be that of an X with other last digits."""
    p = problem(dtype=np.float32)
    assert solve(p, tol=1e-11, random_state=0).converged
    assert p.samples.stored.dtype == np.float32


def test_a_start_at_the_optimum_is_taken():
    p = problem("squared_hinge", intercept=True)
    found = solve(p, tol=1e-6, random_state=0)
    again = solve(p, tol=1e-5, x0=found.x, random_state=0)
    assert again.converged
    assert again.epochs <= 1
