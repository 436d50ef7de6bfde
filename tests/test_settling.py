"""Settling places x at bounds that z has reached, and never raises F."""

import numpy as np
from erm_problems import text_like

from apcg import ERM
from apcg.certificate import certify
from apcg.methods.adaptive.iterate import Adaptive
from apcg.methods.adaptive.settling import SettlingTuning, settle
from apcg.points import Point


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
