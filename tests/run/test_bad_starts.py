"""Starts that no method takes, and objects that are no methods."""

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.methods import registry
from apcg.penalties import L2, Box, GroupLasso

FOR_ONE = sorted(set(registry.names()) - {"one_by_one"})  # which is for many outputs


@pytest.mark.parametrize("method", FOR_ONE)
@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"x": np.full(6, 50.0)}, "dual feasible"),
        ({"x": np.full(6, 50.0), "w": np.zeros(2)}, "dual feasible"),
        ({"x": np.full(6, np.nan)}, "NaN"),
        ({"x": np.zeros(5)}, "x of x0"),
        ({"w": np.full(2, np.nan)}, "NaN"),
        ({"w": np.zeros(3)}, "w of x0"),
        ({"w": np.zeros(2), "b": np.nan}, "b of x0"),
        ({"mu": -1.0}, "mu of x0"),
        ({"side": "up"}, "side of x0"),
    ],
)
def test_every_method_refuses_a_bad_start(method, start, message):
    kinked = method in ("interior", "interior_l1", "smoothing")
    loss = "hinge" if kinked else "smoothed_hinge"
    if method == "least_squares":
        loss = "squared"
    X = np.arange(12.0).reshape(6, 2)
    if method == "newton_ids":
        X = sp.csr_array(X)
    free = method != "accelerated_sdca"  # which has no place for an intercept
    others = {
        "group_set": GroupLasso([2]),
        "interior_l1": "l1",
        "newton_bounds": Box(-1.0, 1.0),
        "scaled": L2([1.0, 2.0]),
    }
    penalty = None if method == "least_squares" else others.get(method, "l2")
    p = ERM(X, [1, -1, 1, -1, 1, -1], loss, penalty, alpha=0.1, intercept=free)
    if method == "least_squares" and message == "dual feasible":  # every x is
        assert solve(p, method, x0=Start(**start)).converged
        return
    with pytest.raises(ValueError, match=message):
        solve(p, method, x0=Start(**start))


def test_interior_refuses_a_bad_array():
    p = ERM(np.eye(2), [1, -1], "hinge", alpha=0.1)
    for bad in ([50.0, 0.0], [0.0], [np.nan, 0.0]):
        with pytest.raises(ValueError, match="x0"):
            solve(p, "interior", x0=bad)


class _Empty:
    name, needs = "empty", ()

    def start(self, *args):
        return None


def test_methods_that_are_none():
    p = ERM(np.eye(2), [1, -1], "hinge", alpha=0.1)
    with pytest.raises(TypeError, match="advance, point and seen"):
        solve(p, _Empty())
    with pytest.raises(TypeError, match=r"take Auto\(\)"):
        solve(p, type(registry.find("auto", p)))
