"""Conditions of certificates that could be weakened without any other test noticing."""

import dataclasses
import math
import sys

import numpy as np
import pytest

import apcg.run.path  # noqa: F401  (the module: `apcg.run.path` may be the function)
from apcg import ERM, losses, path, penalties, solve
from apcg.certify.certificate import certify, joined
from apcg.certify.points import Certificate, Point, Start
from apcg.datasets import DataError
from apcg.methods.base import Budget, Target
from apcg.methods.dual.setup_k import SetupK
from apcg.methods.dual.sweeps_k import LookK
from apcg.methods.dual.tuning import MANY
from apcg.methods.sparse import GroupSet
from apcg.model import LinearModel
from apcg.problems.joint import apart

RUN_PATH = sys.modules["apcg.run.path"]
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((30, 20)), RNG.standard_normal((30, 3))
CLASSES = np.arange(30) % 4


# ---- groups, squared loss -----------------------------------------------------------------------


def begun(p):
    return GroupSet().start(p, Start(), Target(1e-6, 1000), np.random.default_rng(0))


@pytest.mark.parametrize("penalty", [penalties.GroupLasso([5] * 4), "group"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_point_of_an_earlier_stage_is_certified_for_the_last(penalty, intercept):
    """While theta > 1 x is scaled to a larger penalty, and is not feasible for that of P."""
    wide = RNG.standard_normal((15, 20))
    y = Y[:15] if penalty == "group" else Y[:15, 0]
    p = ERM(wide, y, "squared", penalty, 1e-3, intercept=intercept)
    run = begun(p)
    run.advance(Budget(0))
    assert run.theta > 1
    point = run.point()
    assert p.g.excess(p.v_of(point.x)) > 1
    assert isinstance(point, Point)
    found = certify(p, point.bare())
    assert p.dual(found.x) == pytest.approx(found.dual)


@pytest.mark.parametrize("penalty", [penalties.GroupLasso([5] * 4), "group"])
def test_an_x_that_does_not_balance_is_no_certificate(penalty, monkeypatch):
    p = ERM(X, Y if penalty == "group" else Y[:, 0], "squared", penalty, 0.1, intercept=True)
    run = begun(p)
    run.advance(Budget(1000))
    assert isinstance(run.point(), Certificate)
    monkeypatch.setattr(type(p), "imbalance", lambda *_: 1.1)
    assert isinstance(run.point(), Point)


# ---- g* of groups -------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [penalties.GroupLasso([5] * 4), "group"])
def test_the_conjugate_of_groups_knows_its_bound_to_the_last_digits(penalty):
    g = ERM(X, Y if penalty == "group" else Y[:, 0], "squared", penalty).g
    v = RNG.standard_normal((20, 3) if penalty == "group" else 20)
    v /= g.excess(v)
    assert g.conjugate(v * (1 - 1e-15)) == 0
    for above in (1e-14, 1e-9, 1e-7, 1e-3):
        assert g.conjugate(v * (1 + above)) == math.inf


# ---- K intercepts -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [losses.Multinomial(), losses.MulticlassHinge(gamma=0.5)])
def test_balancing_takes_steps_that_stay_inside_the_domain_only(loss, monkeypatch):
    """A step with |delta| < 1/2 leaves all pi >= 0; what is further off is paired."""
    y = np.arange(32) % 4
    p = ERM(RNG.standard_normal((32, 3)), y, loss, "l2", 0.1, intercept=True)
    rng, clip, far, stepped = np.random.default_rng(1), type(loss).clip, [], []

    def inside(self, x, y, s):
        stepped.append(1)
        pi = -x / s[:, None]
        pi[np.arange(len(x)), y] += 1
        far.append(pi.min())
        return clip(self, x, y, s)

    for part in np.geomspace(1e-3, 1.0, 40):  # all equal is balanced, this far from it
        pi = (1 - part) / 4 + part * rng.dirichlet([3.0, 0.2, 0.2, 0.2], 32)
        x = -pi
        x[np.arange(32), y] += 1
        with monkeypatch.context() as patch:
            patch.setattr(type(loss), "clip", inside)
            balanced = p.balance(x)
        assert p.imbalance(balanced) <= 1
        assert math.isfinite(p.conjugate_total(balanced))
    assert len(stepped) > 20
    assert min(far) >= -1e-15


# ---- quick looks --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_look_pays_for_the_error_of_w(seed):
    """V - W along U is the worst that the bound on |V - W| allows: D must not be above D(x)."""
    rng = np.random.default_rng(seed)
    p = ERM(rng.standard_normal((30, 20)), CLASSES, "multinomial", "l2", 0.1)
    setup = SetupK(p, MANY)
    blocks = np.zeros((30, setup.size))
    blocks[:, :4] = rng.dirichlet(np.ones(4), 30)
    x = setup.x(blocks)
    V = setup.rows(x)
    error, W = 0.02 * math.sqrt(setup.square_of(V)), V
    for _ in range(20):  # until W is off by that along its own U
        way = p.loss.duals(setup.predictions(W, x), p.y, p.weights) - x
        U = setup.rows(way)
        W = V - error * U / math.sqrt(setup.square_of(U))
    look = LookK.at(setup, blocks, W, 1.0001 * error)
    assert look.dual <= p.dual(look.x) + 1e-12


# ---- outputs one by one, paths ------------------------------------------------------------------


def test_a_certificate_of_parts_is_exact_if_all_of_them_are():
    p = ERM(X, Y, "squared", "l1", 0.1)
    parts = apart(p)
    found = [certify(part, Point(np.zeros(20))) for part in parts]
    assert joined(p, parts, found).exact
    for k in range(3):
        some = list(found)
        some[k] = dataclasses.replace(found[k], exact=False)
        assert not joined(p, parts, some).exact


def test_a_point_of_a_path_is_certified_from_w_and_x_alone(monkeypatch):
    """At max_epochs too: what the sums of the run say is no answer."""
    p = ERM(X, np.sign(Y[:, 0]), "logistic", "l1")
    alphas, real, false = np.geomspace(0.05, 0.005, 6), RUN_PATH.certify_enough, []

    def flattered(problem, point, tol):
        found = real(problem, point, tol)
        false.append(1)
        return dataclasses.replace(found, primal=0.99 * found.primal, exact=False)

    monkeypatch.setattr(RUN_PATH, "certify_enough", flattered)
    answers = path(p, alphas, max_epochs=1, tol=1e-12, random_state=0)
    assert false
    for alpha, r in zip(alphas, answers, strict=True):
        assert r.primal == pytest.approx(p.with_alpha(alpha).primal(r.w, r.intercept), rel=1e-12)


# ---- model files --------------------------------------------------------------------------------


@pytest.mark.parametrize("intercepts", [[0.1, 0.2], [0.1, 0.2, 0.3, 0.4, 0.5], []])
def test_a_model_file_has_an_intercept_for_each_class(intercepts, tmp_path):
    r = solve(ERM(X, CLASSES, "multinomial", "l2", 0.1, intercept=True))
    model = LinearModel(r.w, np.arange(4), "multinomial", r.intercept, False, {})
    model.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(LinearModel.load(tmp_path / "m.npz").intercept, r.intercept)
    model.intercept = np.array(intercepts)
    model.save(tmp_path / "m.npz")
    with pytest.raises(DataError, match="the intercept is"):
        LinearModel.load(tmp_path / "m.npz")
