"""Settling places x at bounds that z has reached, and never raises F."""

import numpy as np
from erm_problems import problem, text_like

from apcg import ERM
from apcg.certify.certificate import certify
from apcg.certify.points import Point
from apcg.methods.paper.adaptive.iterate import Adaptive
from apcg.methods.paper.adaptive.settling import SettlingTuning, place_if_lower, settle


def test_settling_never_raises_f_and_shortens_the_way_of_x():
    """x comes late to bounds that z is at; it is put there only if D rises by it."""
    X, y = text_like(n=800, d=1200, noise=0.1)
    p = ERM(X, y, "smoothed_hinge", alpha=1e-5)
    method = Adaptive(p.form, np.zeros(p.n), np.arange(p.n), p.mu, first=1e-2)
    rng, settled = np.random.default_rng(0), 0
    for _ in range(40):
        method.epoch(rng.permutation(p.n))
        found = certify(p, Point(x=p.form.nearest(method.x)))
        resting, values = p.loss.resting(p.loss.argument(found.z, p.y), 1e-6)
        before, value, seen = method.x, method.value(), np.array(method.rate._values)
        settle(p, method, found, SettlingTuning())
        # what F falls by then is no part of the rate
        np.testing.assert_allclose(method.rate._values - seen, method.value() - value, atol=1e-12)
        moved = method.x != before
        assert not moved[~resting].any()
        np.testing.assert_array_equal(method.x[moved], values[moved])
        np.testing.assert_allclose(method.rows(), p.form.f.rows(method.x), atol=1e-10)
        assert p.dual(p.form.nearest(method.x)) >= found.dual - 1e-12
        settled += moved.sum()
    assert settled > 0


def pull(method, i, z):
    """Bring z_i there without x: what momentum does."""
    state = method._apcg.state
    u, v, pq = np.asarray(state.u), np.asarray(state.v), np.asarray(state.pq)
    # x = v + (t + s) u stays, z = v + t u moves
    change = -(z - method.z[i]) / state.s
    columns, sign = method.problem.f.columns, method.problem.f.sign
    for array, k, step in ((u, 0, change), (v, 1, -(state.t + state.s) * change)):
        array[i] += step
        e = np.zeros(array.size)
        e[i] = step
        pq[:, k] += columns.adjoint(sign * e)


def settled(way_of_z, levels=SettlingTuning.levels):
    """One coordinate whose x is off its bound 0, and whose z has this part of the way left."""
    p = problem("hinge", alpha=1.0, n=40, d=30)
    method = Adaptive(p.form, np.full(p.n, 0.2), np.arange(p.n), p.mu, first=1e-2)
    i, off = 3, 0.1
    value = np.where(np.arange(p.n) == i, 0.2 - off, 0.2)
    # make the way down hill: the gradient of F at i says which bound
    slope = (
        p.form.f.gradient(method.x)[i]
        + (p.form.psi_value(method.x) - p.form.psi_value(value)) / off
    )
    value[i] = 0.2 - np.sign(slope) * off
    pull(method, i, value[i] + way_of_z * np.sign(slope) * off)
    place_if_lower(method, np.arange(p.n) == i, value, SettlingTuning(levels=levels))
    return method.x[i] == value[i]


def test_only_what_z_has_reached_is_placed():
    assert settled(0.0)
    assert settled(0.9 * SettlingTuning.remaining)
    assert not settled(1.5 * SettlingTuning.remaining)
    assert not settled(0.9)  # z has hardly moved


def test_a_short_way_is_tried_alone():
    """All of them at once would raise F; those with a short way lower it."""
    p = problem("hinge", alpha=1.0, n=40, d=30)
    method = Adaptive(p.form, np.full(p.n, 0.5), np.arange(p.n), p.mu, first=1e-2)
    x = method.x
    slope = p.form.gradient(x) - 1 / p.n  # of F: psi_i = -x_i/n in the domain
    near, far = 0, 1
    values = x.copy()
    values[near] -= 0.004 * np.sign(slope[near])  # down hill, a short way
    values[far] += 0.45 * np.sign(slope[far])  # up hill, a long way
    for i in (near, far):
        pull(method, i, values[i])
    before = method.value()
    place_if_lower(method, values != x, values, SettlingTuning())
    assert method.x[near] == values[near]
    assert method.x[far] == x[far]
    assert method.value() < before
    np.testing.assert_allclose(method.rows(), p.form.f.rows(method.x), atol=1e-12)
