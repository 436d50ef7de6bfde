"""Sweeps: all visits are there, in few runs, and nobody waits long."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from apcg import ERM
from apcg.methods.paper.adaptive.visits import visits
from apcg.methods.paper.sampling import HIGHEST, Sampler, Sweep


def lively(n=400):
    """A sweep over two thirds of n coordinates, a few of which move much."""
    rng = np.random.default_rng(0)
    kept = np.flatnonzero(np.arange(n) % 3 > 0)
    lengths = rng.integers(1, 9, n).astype(float)
    r = visits(np.exp(3 * rng.standard_normal(kept.size)), lengths[kept])
    return Sweep(kept, lengths, r), lengths


def test_a_sweep_has_all_visits():
    lot, lengths = lively()
    kept = np.unique(lot.indices)
    assert kept.size == 266
    assert lot.highest == HIGHEST
    # so many steps make a pass
    assert lot.steps == pytest.approx(lengths.sum() / lengths[lot.indices].mean(), abs=1)
    order = lot.shuffled(np.random.default_rng(1))
    np.testing.assert_array_equal(np.bincount(order, minlength=400)[kept], lot.visits[kept])
    assert order.size == lot.indices.size == lot.visits[kept].sum()
    # one in each 1/r_i of the sweep, up to how unevenly the others fall
    where = np.arange(order.size) / order.size
    for i in kept[lot.visits[kept] == HIGHEST]:
        found = where[order == i]
        slots = np.arange(HIGHEST) / HIGHEST
        assert (found > slots - 0.1).all()
        assert (found < slots + 1 / HIGHEST + 0.1).all()


@given(st.integers(1, 1500), st.integers(0, 100), st.booleans())
def test_runs_are_the_order_in_parts_of_one_r(size, seed, shuffled):
    lot, _ = lively()
    rng = np.random.default_rng(seed)
    order = lot.shuffled(rng)[:size] if shuffled else rng.choice(lot.indices, size)
    parts = list(lot.runs(order))
    if shuffled:
        assert len(parts) <= 5 * HIGHEST  # there are five powers of two
    for r, part in parts:
        assert (lot.visits[part] == r).all()
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), order)


def test_the_rest_of_a_sweep_is_in_few_runs_too():
    lot, _ = lively()
    rest = np.random.default_rng(0).integers(400, size=300)
    left = lot.left_of(rest)
    np.testing.assert_array_equal(np.sort(left), np.sort(rest[rest % 3 > 0]))
    assert len(list(lot.runs(left))) <= 5 * (left.size * HIGHEST // lot.indices.size + 1)


def test_steps_on_empty_columns_count_too():
    """Else a pass over them would have no end."""
    X = sp.csr_array(np.eye(30)[:, :4])
    lengths = ERM(X, np.ones(30), "squared").form.lengths
    np.testing.assert_array_equal(lengths, np.ones(30))
    assert Sweep(np.arange(10, 30), lengths).steps == 30


def test_what_is_left_of_a_sweep_comes_first():
    """Unless it is not sampled any more; so nobody waits long."""
    first, then = Sweep(np.arange(10)), Sweep(np.arange(5, 15))
    first.steps = then.steps = 6
    sampler = Sampler(np.random.default_rng(0), "permutation")
    one, two, three = (sampler.draw(sweep) for sweep in (first, then, then))
    assert np.isin(one, first.indices).all()
    left = np.setdiff1d(first.indices, one)
    left = left[left >= 5]
    np.testing.assert_array_equal(np.sort(two[: left.size]), left)
    after = np.concatenate([two[left.size :], three])[:10]
    np.testing.assert_array_equal(np.sort(after), np.arange(5, 15))


def test_uniform_sampling_draws_from_the_sweep():
    lot, _ = lively()
    order = Sampler(np.random.default_rng(0), "uniform").draw(lot)
    assert order.size == lot.steps
    assert np.isin(order, lot.indices).all()
    assert np.unique(order).size < order.size  # with replacement
