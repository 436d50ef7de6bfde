"""The centre of the proximal term follows the intercept, and not too early."""

import numpy as np
import pytest
from erm_problems import problem

from apcg.certify.certificate import certify
from apcg.certify.points import Point
from apcg.methods.paper.proximal_intercept import ProximalIntercept
from apcg.methods.paper.sdca import SDCA


def at_work(passes):
    p = problem("squared_hinge", alpha=1e-2, intercept=True)
    proximal = ProximalIntercept(p, 0.7)
    method = SDCA(proximal.form, np.zeros(p.n))
    rng = np.random.default_rng(0)
    for _ in range(passes):
        method.epoch(rng.permutation(p.n))
    v = method.rows(1 / (p.alpha * p.n))[:-1]
    return p, proximal, method, certify(p, Point(x=method.x, v=v, b=proximal.b(method)))


def test_it_starts_at_the_intercept_that_is_given():
    _, proximal, method, _ = at_work(0)
    assert abs(proximal.b(method) - 0.7) < 1e-12


def test_the_centre_stays_while_the_inner_problem_is_far_from_solved():
    _, proximal, method, found = at_work(1)
    centre, rows = proximal.centre, method.rows()
    proximal.follow(method, found)
    assert proximal.centre == centre
    np.testing.assert_array_equal(method.rows(), rows)


def test_the_centre_moves_when_the_inner_gap_is_small():
    _, proximal, method, found = at_work(3000)
    beta, centre = proximal.b(method) / proximal.c, proximal.centre
    assert abs(beta - centre) > 1e-6
    proximal.follow(method, found)
    assert proximal.centre == pytest.approx(beta, rel=1e-14)
    np.testing.assert_allclose(method.rows(), proximal.form.f.rows(method.x), atol=1e-9)
