"""Rows in shards: the answers and certificates of one machine, from sums over shards."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sharded import engine, solved

from apcg import ERM, datasets, losses, solve
from apcg.engines import NoWorkers
from apcg.methods.distributed import driver as loop
from apcg.methods.distributed.driver import Driver, Limits
from apcg.methods.distributed.problem import sharded
from apcg.methods.distributed.search import LineSearch


def samples(kind="dense", n=240, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == "sparse":
        X = sp.csr_matrix(X * (rng.random((n, d)) < 0.3))
    if kind == "float32":
        X = X.astype(np.float32)
    real = np.asarray(X @ rng.standard_normal(d)).ravel() + rng.standard_normal(n) + 0.5
    return X, real


CASES = [
    ("logistic", "l2"),
    ("smoothed_hinge", "l2"),
    ("squared_hinge", "elasticnet"),
    ("squared", "l2"),
    ("huber", "l1"),
    ("logistic", "l1"),
    ("hinge", "l2"),
    ("epsilon_insensitive", "l2"),
    ("multinomial", "l2"),
    (losses.MulticlassHinge(0.5), "l2"),
]


def labels(loss, real):
    loss = losses.by_name(loss)
    if loss.margin:
        return np.where(real > 0, 1.0, -1.0)
    if loss.margin is None:
        return np.digitize(real, [-1.0, 1.0]).astype(float)
    return real


@pytest.mark.filterwarnings("ignore:loss '(hinge|epsilon_insensitive)' has kinks")
@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize(("loss", "penalty"), CASES, ids=str)
def test_answers_are_those_of_one_machine(loss, penalty, shards):
    kind = ("dense", "sparse", "float32")[shards // 2]
    X, real = samples(kind)
    y, weights = labels(loss, real), np.random.default_rng(1).random(len(real))
    weights[::7] = 0.0
    for few, intercept, s in ((True, True, weights), (False, shards == 2, None)):
        with pytest.MonkeyPatch.context() as patched:
            if not few:  # as if d were large
                patched.setattr(loop, "_SIDE", 1)
            r, _, whole = solved(X, y, shards, loss, penalty, 1e-2, intercept=intercept, weights=s)
        assert r.converged, r.status
        one = solve(whole, tol=1e-8)
        assert abs(r.primal - one.primal) <= 1e-6 * abs(one.primal) + one.gap


@pytest.mark.filterwarnings("ignore:loss 'hinge' has kinks")
@pytest.mark.parametrize("small", [True, False])
def test_shards_of_one_row(small, monkeypatch):
    X, real = samples("dense", 5, 17)
    if not small:
        monkeypatch.setattr(loop, "_SIDE", 1)
    r, _, _ = solved(X, labels("hinge", real), 5, "hinge", alpha=1e-5)
    assert r.converged, r.status


@pytest.mark.parametrize("loss", ["epsilon_insensitive", losses.Pinball(0.3), "hinge"], ids=str)
def test_lines_with_few_features_take_few_gram_matrices(loss):
    """Also where all rows can be fitted, and alpha is so small that steps of Newton's method on a
    smoothed loss creep; x at its bounds is feasible for all rows together."""
    for seed in range(3):
        X, real = samples("dense", 50, 100, seed)
        weights = np.random.default_rng(seed).random(50)
        r, run, _ = solved(X, labels(loss, real), 3, loss, alpha=3e-5, intercept=seed == 1,
                           weights=weights)  # fmt: skip
        assert r.converged, r.status
        assert run.sums.grams <= 40


def test_bounds_and_weights_of_features():
    X, real = samples()
    r, _, whole = solved(X, real, 3, "squared", "l1", 0.05, positive=True)
    assert r.converged
    assert r.w.min() >= 0
    one = solve(whole, tol=1e-9)
    assert np.count_nonzero(r.w) == np.count_nonzero(one.w) < 12


def test_certificates_hold_where_bounds_are_reached():
    """D again from all rows: sums in another order are other by rounding, and within bounds."""
    for seed in range(8, 12):
        X, real = samples("float32", 60, 24, seed)
        s = np.random.default_rng(seed).random(len(real))
        r, _, _ = solved(X, real, 2, "squared", "l1", 2e-3, intercept=True, weights=s,
                         positive=True)  # fmt: skip
        assert r.converged


def test_a_step_of_newtons_method_is_a_message():
    """But for a start, a certificate, and steps that are too long or too short."""
    X, real = samples("dense", 600, 12)
    _, run, _ = solved(X, labels("logistic", real), 3, "logistic", alpha=1e-4, intercept=True)
    assert run.sums.grams >= 3
    assert run.sums.messages <= 2 * run.sums.grams


def test_lost_shards_cost_no_more_than_time():
    X, real = samples("sparse", 300, 400)
    y = labels("logistic", real)
    calm = solved(X, y, 3, "logistic", alpha=1e-4, intercept=True)[0]
    for at in (0, 2, 5):
        made = engine(X, y, 3)
        shaken = []

        def lose(look, made=made, at=at, shaken=shaken):
            if look.iteration == at and not shaken:
                shaken.append(look)
                made.lose(1)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(loop, "_SIDE", 1)
            r, _, _ = solved(X, y, 3, "logistic", alpha=1e-4, intercept=True, on=made,
                             limits=Limits(1e-6, callback=lose))  # fmt: skip
        assert shaken
        assert r.converged
        assert r.trace.restarts[-1] == 1
        assert abs(r.primal - calm.primal) <= 2e-6 * calm.primal


@pytest.mark.parametrize("loss", ["hinge", "smoothed_hinge"])
def test_lost_shards_of_other_methods(loss):
    X, real = samples()
    y, made = labels(loss, real), None
    made = engine(X, y, 3)
    lost = []

    def lose(look):
        if look.iteration == 2 and not lost:
            lost.append(1)
            made.lose(0)
            made.lose(2)

    r, _, _ = solved(X, y, 3, loss, "l2", on=made, limits=Limits(1e-6, callback=lose))
    assert r.converged
    assert lost


def test_shards_that_are_lost_before_they_are_told_anything():
    X, real = samples()
    made, y = engine(X, real, 3), real
    made.lose(0)
    made.lose(2)
    r, _, _ = solved(X, y, 3, "squared", on=made)
    assert r.converged
    made.rebuild = lambda shard: None
    made.lose(1)
    with pytest.raises(NoWorkers, match="not stable"):
        sharded(made, "squared")


class Bent(LineSearch):
    """P along one direction: it falls steeply up to t = 1e-4, and is a parabola from there on."""

    def __init__(self):
        self.W, self.asked = np.zeros((1, 1)), 0
        self.value, self.slope, self.bend = self.at(np.zeros(1))

    def at(self, c):
        self.asked, (t,), short = self.asked + 1, c, max(1 - c[0] / 1e-4, 0.0)
        value = 0.5 * t * t + 0.5e-4 * short * short
        return value, np.array([t - short]), np.array([[1.0 + 1e4 * (short > 0 and t > 0)]])


def test_a_step_that_is_far_too_long_is_shortened_in_a_few_messages():
    """A secant whose one end stays creeps: after 40 trials it is still 100 times too far."""
    search = Bent()
    t = search.find()
    assert abs(search.at(t)[1][0]) <= 0.1
    assert search.asked <= 25


def test_an_engine_that_never_comes_back_gives_the_best_so_far():
    X, real = samples()
    made = engine(X, labels("logistic", real), 2)
    problem = sharded(made, "logistic", alpha=1e-3)
    made.rebuild = lambda shard: None
    run = Driver(made, problem, Limits(callback=lambda look: look.iteration == 1 and made.lose(0)))
    with pytest.raises(NoWorkers, match="not stable") as caught:
        run.solve()
    best = caught.value.best
    assert best.primal < np.log(2)
    assert best.dual == -np.inf


def test_callbacks_and_ctrl_c_give_a_certified_answer():
    X, real = samples("sparse", 300, 400)
    y, seen = labels("logistic", real), []

    def stop(look):
        seen.append(look)
        return look.iteration == 2

    def interrupt(look):
        if look.iteration == 2:
            raise KeyboardInterrupt

    for callback, code in ((stop, "callback"), (interrupt, "interrupted")):
        limits = Limits(1e-9, callback=callback)
        r, _, _ = solved(X, y, 3, "logistic", alpha=1e-4, limits=limits)
        assert r.status.code == code
        assert 0 < r.gap <= r.primal < np.log(2)
    assert [look.iteration for look in seen] == [0, 1, 2]


def test_a_gap_that_falls_slowly_is_not_stuck(monkeypatch):
    """Less than a tenth in a look, but far more in all: few weights, seen as if they were many."""
    X, real = samples("dense", 300, 30)
    monkeypatch.setattr(loop, "_SIDE", 1)
    monkeypatch.setattr(loop, "_PATIENCE", 6)
    scale = np.logspace(0, -2, 30)
    r, _, _ = solved(X * scale, labels("logistic", real), 3, "logistic", alpha=1e-6)
    assert r.converged, r.status


@pytest.mark.filterwarnings("ignore:loss 'hinge' has kinks")
def test_steps_that_did_not_solve_the_smoothed_problem_make_it_smoother():
    X, y = datasets.text_like(3000, 6000, 10, noise=0.3, random_state=1)
    r, run, _ = solved(sp.csr_matrix(X), y, 3, "hinge", alpha=1e-4)
    assert r.converged, r.status
    assert run.sums.vectors <= 450


def test_limits():
    X, real = samples("sparse", 300, 400)
    y = labels("logistic", real)
    r, _, _ = solved(X, y, 3, "logistic", alpha=1e-6, limits=Limits(1e-9, max_epochs=3))
    assert r.status.code == "max_epochs"
    r, _, _ = solved(X, y, 3, "logistic", alpha=1e-6, limits=Limits(1e-9, time_limit=0.0))
    assert r.status.code == "time_limit"


def test_the_same_shards_give_the_same_bits():
    X, real = samples("sparse", 300, 400)
    y = labels("smoothed_hinge", real)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loop, "_SIDE", 1)
        first, second = (solved(X, y, 3, "smoothed_hinge", alpha=1e-5)[0] for _ in range(2))
    assert np.array_equal(first.w, second.w)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": np.ones(240)}, "labels -1 and 1, and both"),
        ({"loss": "multinomial", "y": np.arange(240.0) % 3 + 1}, "takes the labels 0..K-1"),
        ({"alpha": 0.0}, "alpha > 0"),
        ({"loss": losses.MulticlassHinge()}, r"MulticlassHinge\(gamma=1.0\)"),
        ({"loss": "hinge", "penalty": "l1"}, "smoothed_hinge"),
        ({"loss": "multinomial", "penalty": "l1", "y": np.arange(240.0) % 3}, "ovr"),
        ({"weights": np.zeros(240)}, "zero everywhere"),
    ],
)
def test_what_is_not_offered_has_a_cure(change, words):
    X, real = samples()
    given = {"loss": "logistic", "y": labels("logistic", real), "weights": None} | change
    made = engine(X, given.pop("y"), 2, given.pop("weights"))
    with pytest.raises(ValueError, match=words):
        sharded(made, **given)


def test_few_vectors():
    """Text-like data: about as few sums of a vector as for rcv1, which docs/scale.md has."""
    X, y = datasets.text_like(3000, 8000, 40, noise=0.3, random_state=0)
    _, run, _ = solved(sp.csr_matrix(X), y, 8, "logistic", alpha=1e-4)
    assert run.sums.vectors <= 20
    assert ERM(X, y, "logistic").d > loop._SIDE


REAL = Path(os.environ.get("APCG_DATA_DIR", ".")) / "rcv1_subsets.binary.bz2"


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="no rcv1 in APCG_DATA_DIR")
@pytest.mark.parametrize(
    ("loss", "alpha", "vectors"),
    [("logistic", 1e-4, 15), ("logistic", 1e-6, 45), ("smoothed_hinge", 1e-5, 50)],
)
def test_vectors_on_rcv1(loss, alpha, vectors):
    """The rows at random, and sorted by label."""
    data = datasets.load("rcv1")
    X, y = sp.csr_matrix(data.X, copy=True), np.where(data.y > 0, 1.0, -1.0)
    for order, most in ((None, vectors), (np.argsort(y, kind="stable"), 1.5 * vectors)):
        r, run, _ = solved(X, y, 8, loss, alpha=alpha, order=order)
        assert r.converged
        assert run.sums.vectors <= most


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="no a9a in APCG_DATA_DIR")
@pytest.mark.parametrize("name", ["a9a", "covtype"])
def test_gram_rounds(name):
    data = datasets.load(name)
    X = sp.csr_matrix(data.X, copy=True, dtype=np.float64)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags(1 / norms) @ X)
    y = np.where(data.y == data.y.max(), 1.0, -1.0)
    for loss in ("logistic", "smoothed_hinge"):
        r, run, _ = solved(X, y, 8, loss, alpha=1e-6)
        assert r.converged
        assert run.sums.grams <= 12


def test_an_x_beyond_the_bounds_of_the_penalty_is_scaled_into_them():
    X, real = samples()
    _, driver, whole = solved(X, real, 2, "squared", "l1", 0.05)
    sums = driver.sums
    sums.tell("scale", 1.5, 1.5)
    found = sums.certify(sums.w, False)
    assert found.dual > -np.inf
    assert whole.dual(driver.dual_point()) == pytest.approx(found.dual, rel=1e-12)
    assert found.gap <= 0.5 * found.primal
