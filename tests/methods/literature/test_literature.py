"""SAG, prox-SVRG and accelerated SDCA: the optimum, certificates, passes, errors."""

import json
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import LOSSES, SMOOTH, dense, problem
from hypothesis import given
from hypothesis import strategies as st
from quick import examples
from sklearn.datasets import dump_svmlight_file

from apcg import ERM, datasets, losses, penalties, solve
from apcg.certify.points import Start
from apcg.cli import main
from apcg.methods import registry
from apcg.methods.base import Budget, Target
from apcg.methods.literature import accelerated_sdca, stochastic
from apcg.methods.literature.accelerated_sdca import AcceleratedDualAscent
from apcg.methods.literature.sag import SAG, SAGRun, StochasticAverageGradient
from apcg.methods.literature.stochastic import Stochastic
from apcg.methods.literature.svrg import ProxSVRG
from apcg.methods.paper.sampling import Sampler, Sweep

METHODS = ("sag", "svrg", "accelerated_sdca")
every_loss = pytest.mark.parametrize("loss", SMOOTH)
stored = pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
l2_or_net = pytest.mark.parametrize("penalty", ["l2", "elasticnet"])


# ---- the optimum ------------------------------------------------------------------------------


@pytest.mark.slow(but=12)
@every_loss
@stored
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("method", METHODS)
@l2_or_net
def test_the_optimum(method, loss, sparse, weighted, penalty):
    alpha = 0.2 if method == "svrg" else 1e-2  # steps of 0.1/L are short
    p = problem(loss, penalty, alpha, weighted=weighted, sparse=sparse)
    r = solve(p, method, tol=1e-8, max_epochs=50_000, random_state=0)
    best = solve(p, tol=1e-11, random_state=0)
    assert r.converged
    assert r.gap <= 1e-8 * r.primal
    assert r.gap == pytest.approx(p.primal(r.w) - p.dual(r.x), abs=1e-15)
    assert abs(r.primal - best.primal) <= 1e-8 * best.primal
    assert r.method == method
    assert method != "accelerated_sdca" or not r.trace.notes  # it was not plain SDCA


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("method", ["sag", "svrg"])
@pytest.mark.parametrize("loss", ["logistic", "huber", "squared_hinge"])
@l2_or_net
def test_a_free_intercept(method, loss, penalty):
    p = problem(loss, penalty, 1e-2 if method == "sag" else 0.2, weighted=True, intercept=True)
    p = ERM(dense(p) + 2.0, p.y, p.loss, penalty, p.alpha, p.weights, intercept=True)
    r = solve(p, method, tol=1e-8, max_epochs=100_000, random_state=0)
    best = solve(p, tol=1e-11, random_state=0)
    assert r.converged
    assert abs(r.primal - best.primal) <= 1e-8 * best.primal
    assert r.intercept == pytest.approx(best.intercept, rel=1e-3, abs=1e-3)


def test_elastic_net_has_exact_zeros():
    p = problem("squared", "elasticnet", 0.3, l1_ratio=0.8)
    best = solve(p, tol=1e-12, random_state=0)
    assert 0 < np.count_nonzero(best.w) < p.d
    for method in METHODS:
        r = solve(p, method, tol=1e-10, max_epochs=20_000, random_state=0)
        np.testing.assert_array_equal(r.w == 0, best.w == 0)


def test_an_own_loss_and_a_strongly_convex_one():
    base = problem("logistic", alpha=1e-2)
    p = ERM(dense(base), base.y, losses.StronglyConvex("logistic", 5.0), alpha=1e-2)
    best = solve(p, tol=1e-11, random_state=0).primal
    for method in METHODS:
        r = solve(p, method, tol=1e-8, max_epochs=20_000, random_state=0)
        assert r.converged
        assert abs(r.primal - best) <= 1e-8 * best


@pytest.mark.parametrize("method", METHODS)
def test_types_of_data(method):
    """float32, int64 indices, rows of zeros and of weight zero; the answer is that of the copy."""
    X, y = dense(problem("logistic")).astype(np.float32), problem("logistic").y
    X[3] = 0.0
    s = np.ones(len(y))
    s[5] = 0.0
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    found = [
        solve(ERM(data, y, "logistic", alpha=1e-2, sample_weight=s), method, tol=1e-9,
              max_epochs=20_000, random_state=0)
        for data in (X, wide, X.astype(float))
    ]  # fmt: skip
    for r in found:
        assert r.converged
        assert r.x[5] == 0
        assert r.primal == pytest.approx(found[0].primal, rel=1e-8)


@pytest.mark.parametrize("method", ["sag", "svrg"])
def test_data_of_zeros(method):
    p = ERM(np.zeros((6, 3)), [1, -1, 1, -1, 1, -1], "logistic", alpha=0.1)
    r = solve(p, method, tol=1e-10, x0=np.ones(3), random_state=0)
    assert r.converged
    assert r.primal == pytest.approx(np.log(2))


# ---- what they do -----------------------------------------------------------------------------


def test_accelerated_sdca_is_sdca_where_it_does_not_pay():
    hard = problem("smoothed_hinge", alpha=1e-3)
    over_n = hard.condition_number / hard.n
    easy = hard.with_alpha(hard.alpha * over_n / 10 * 1.001)
    plain, other = (solve(easy, m, random_state=0) for m in ("sdca", "accelerated_sdca"))
    np.testing.assert_array_equal(plain.x, other.x)
    assert "plain SDCA" in other.trace.notes[0]
    above = hard.with_alpha(hard.alpha * over_n / 10 * 0.999)
    assert not solve(above, "accelerated_sdca", random_state=0).trace.notes


def test_restarts_shorten_the_way_of_accelerated_sdca():
    """The xi_t of the start is far above the error for a long time."""
    p = problem("squared", alpha=1e-3, n=300, d=100)
    with_them, without, plain = (
        solve(p, m, tol=1e-6, max_epochs=20_000, random_state=0)
        for m in (AcceleratedDualAscent(), AcceleratedDualAscent(restart=False), "sdca")
    )
    assert with_them.converged
    assert without.converged
    assert with_them.trace["restarts"][-1] > 2
    assert without.trace["restarts"][-1] == 0
    assert with_them.epochs < 0.8 * without.epochs
    assert without.epochs < 0.5 * plain.epochs


def test_no_inner_problem_is_solved_to_less_than_rounding():
    """xi_t falls without end, and a gap does not: the outer method goes on all the same."""
    p = problem("squared", alpha=1e-2)
    run = AcceleratedDualAscent(restart=False).start(p, Start(), Target(), np.random.default_rng(0))
    run.advance(Budget(3000, True))
    assert run.iterate.precision < 1e-25
    assert run.iterate.t >= 1900  # a pass and half a pass each


def test_sag_draws_with_replacement_whatever_is_asked():
    p = problem("logistic")
    a, b = (solve(p, "sag", random_state=0, sampling=s) for s in ("permutation", "uniform"))
    np.testing.assert_array_equal(a.w, b.w)
    c, d = (solve(p, "svrg", random_state=0, sampling=s) for s in ("permutation", "uniform"))
    assert (c.w != d.w).any()


def test_sag_is_not_stable_in_permutations():
    """Why it does not do as it is asked: the loss grows without end, with steps of 1/L."""
    p = problem("squared", alpha=1e-3, n=200, density=1.0)
    ended = {}
    for how in ("permutation", "uniform"):
        method, sampler = SAG(p, np.zeros(p.d)), Sampler(np.random.default_rng(1), how)
        for _ in range(40):
            method.epoch(sampler.draw(Sweep(np.arange(p.n))))
        ended[how] = p.primal(method.w)
    assert ended["uniform"] < p.primal(np.zeros(p.d))
    assert ended["permutation"] > 1e3 * p.primal(np.zeros(p.d))


@pytest.mark.parametrize("method", ["sag", "svrg"])
def test_the_unit_of_the_data_does_not_matter_with_an_intercept(method):
    """The feature of the intercept is as large as the samples, whatever their unit is."""
    base = problem("logistic", alpha=0.1)
    X = dense(base) + 1.0
    small, large = (
        solve(ERM(t * X, base.y, "logistic", alpha=0.1 * t**2, intercept=True), method, tol=1e-7,
              max_epochs=20_000, random_state=0)
        for t in (1.0, 1024.0)
    )  # fmt: skip
    assert small.converged
    assert small.epochs == large.epochs
    assert small.intercept == pytest.approx(large.intercept, rel=1e-9)


def test_the_search_for_L_pays_where_one_sample_is_long():
    p = problem("logistic", n=200)
    X = dense(p)
    X[0] *= 20
    p = ERM(X, p.y, "logistic", alpha=1e-2)
    searched, fixed = (
        solve(p, StochasticAverageGradient(search=s), tol=1e-6, max_epochs=50_000, random_state=0)
        for s in (True, False)
    )
    assert searched.converged
    assert searched.epochs < 0.5 * fixed.epochs


def test_sag_with_steps_too_long_begins_anew():
    p = problem("squared", alpha=1e-3)
    w = np.zeros(p.d)
    run = SAGRun(p, Stochastic(p, w, 0.0, share=300.0, biased=True), w, 0.0,
                 np.random.default_rng(0))  # fmt: skip
    run.advance(Budget(400, True))
    assert run.restarts > 0
    assert "the losses grew" in run.notes[0]
    assert np.isfinite(run.point().w).all()
    assert p.primal(run.point().w) < p.primal(w)


@pytest.mark.parametrize("method", METHODS)
def test_passes_are_counted_in_nonzeros(method, monkeypatch):
    """Steps, snapshots and the gaps of the inner problems: all but the looks of `solve`."""
    p = problem("logistic", alpha=1e-4)
    read = 0.0  # in passes: X w and A x are half a pass each

    def counting(function, share):
        def counted(*given):
            nonlocal read
            read += share(given)
            return function(*given)

        return counted

    def order_size(given):
        return given[-1].size / p.n

    for module, name in ((stochastic, "run_stochastic"), (accelerated_sdca, "run_plain")):
        monkeypatch.setattr(module, name, counting(getattr(module, name), order_size))
    run = registry.find(method, p).start(p, Start(), Target(), np.random.default_rng(0))
    for name in ("times", "adjoint"):
        function = getattr(type(p.samples), name)
        monkeypatch.setattr(type(p.samples), name, counting(function, lambda given: 0.5))
    told = sum(run.advance(Budget(k, True)).passes for k in (1, 1, 5, 20, 3))
    assert told >= 30
    assert told <= read <= told + 0.5


def test_svrg_takes_three_passes_a_stage_and_looks_are_free():
    p = problem("logistic")
    run = ProxSVRG().start(p, Start(), Target(), np.random.default_rng(0))
    assert run.point().z is None
    assert run.advance(Budget(1, True)).passes == 1
    assert run.point().z is not None
    assert run.advance(Budget(2, True)).passes == 2
    assert run.point().z is None
    for _ in range(4):
        assert run.advance(Budget(1000, False)).passes % 3 == 1 or run.point().z is not None
        assert run.point().z is not None


# ---- as for the others ------------------------------------------------------------------------


@examples(25, database=None)
@given(
    st.sampled_from(SMOOTH), st.sampled_from(["l2", "elasticnet"]), st.floats(-6, 1),
    st.floats(-3, 3), st.booleans(), st.booleans(), st.integers(0, 2**31), st.sampled_from([2, 40]),
)  # fmt: skip
def test_certificates(loss, penalty, power, scale, weighted, intercept, seed, passes):
    """P and D from their definitions, and no gap below zero, on data of any size."""
    base = problem(loss, weighted=weighted, seed=seed % 1000, n=15 + seed % 30)
    p = ERM(10.0**scale * dense(base), base.y, base.loss, penalty, 10.0**power,
            base.weights if weighted else None, intercept=intercept)  # fmt: skip
    known = solve(p, tol=1e-9, max_epochs=3000, random_state=0)
    for method in METHODS:
        if intercept and method == "accelerated_sdca":
            continue
        r = solve(p, method, tol=1e-6, max_epochs=passes, random_state=seed)
        size = 1e-12 * (abs(r.primal) + abs(r.dual))
        assert abs(r.primal - p.primal(r.w, r.intercept)) <= size
        assert abs(r.dual - p.dual(r.x)) <= size
        assert r.gap >= -size
        assert known.dual - size <= r.primal
        assert r.dual <= known.primal + size
        assert not r.converged or r.gap <= 1e-6 * abs(r.primal)


@pytest.mark.parametrize("method", METHODS)
def test_reruns_are_equal_to_the_bit_and_inputs_unchanged(method):
    p = problem("smoothed_hinge", "elasticnet", 1e-3, weighted=True)
    before = p.samples.stored.toarray().copy(), p.y.copy(), p.weights.copy()
    a, b = (solve(p, method, tol=1e-7, random_state=3, max_epochs=5000) for _ in range(2))
    np.testing.assert_array_equal(a.w, b.w)
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.trace["gap"], b.trace["gap"])
    for old, new in zip(before, (p.samples.stored.toarray(), p.y, p.weights), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_gives_the_best_so_far(method):
    p = problem("logistic", alpha=1e-4)

    def interrupt(check):
        if check.epoch >= 60:
            signal.raise_signal(signal.SIGINT)

    r = solve(p, method, tol=1e-14, check_every=2, callback=interrupt, random_state=0)
    assert r.status.code == "interrupted"
    assert r.epochs == 60
    assert r.primal < p.primal(np.zeros(p.d))
    assert r.gap == pytest.approx(p.primal(r.w) - p.dual(r.x), abs=1e-14)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("method", METHODS)
def test_starts(method):
    p = problem("logistic", "elasticnet", 1e-3)
    cold = solve(p, method, tol=1e-6, max_epochs=20_000, random_state=0)
    assert solve(p, method, tol=1e-5, x0=cold, random_state=0).epochs == 0
    on = solve(p, method, tol=1e-8, x0=cold, max_epochs=20_000, random_state=0)
    assert on.converged
    assert on.epochs < solve(p, method, tol=1e-8, max_epochs=20_000, random_state=0).epochs
    for start in (Start(x=cold.x), Start(w=cold.w)):
        assert solve(p, method, tol=1e-6, max_epochs=20_000, x0=start, random_state=0).converged
    far = solve(p, method, tol=1e-7, max_epochs=50_000, x0=Start(w=np.full(p.d, 5.0)),
                random_state=0)  # fmt: skip
    assert far.converged


@pytest.mark.parametrize("method", METHODS)
def test_a_time_limit_is_kept(method):
    p = problem("logistic", alpha=1e-6)
    r = solve(p, method, tol=1e-15, max_epochs=10**7, time_limit=0.05, random_state=0)
    assert r.status.code in ("time_limit", "precision")
    assert np.isfinite(r.gap)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": LOSSES["hinge"]}, "needs a smooth loss, and loss 'hinge' is not smooth"),
        ({"penalty": "l1"}, "penalty l1 is not"),
    ],
)
def test_unfit_problems_are_refused_with_a_method_that_does(method, change, words):
    X = np.arange(12.0).reshape(6, 2)
    given = {"loss": "logistic", "penalty": "l2"} | change
    p = ERM(X, [1, -1, 1, -1, 1, -1], **given)
    with pytest.raises(ValueError, match=words) as error:
        solve(p, method)
    assert "take one of 'auto'" in str(error.value)


def test_the_commands_know_them(tmp_path, monkeypatch, capsys):
    X, y = datasets.text_like(200, 40, 8)
    monkeypatch.setenv("APCG_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    dump_svmlight_file(X, y, "rcv1_subsets.binary", zero_based=False)

    def said(*command):
        monkeypatch.setattr("sys.argv", ["apcg", *command, "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return json.loads(capsys.readouterr().out)

    common = ("--data", "rcv1", "--alpha", "1e-5", "--passes", "20", "--jobs", "1")
    found = said("reproduce", *common, "--methods", "all")
    assert len(found["claims"]) == 6 + 6
    report = (tmp_path / "out" / "paper" / "report.md").read_text()
    assert "acc. SDCA has the same complexity as ours: at most 3 times the seconds" in report
    assert "| SVRG P - P* |" in report
    lines = (tmp_path / "out" / "paper" / "curves" / "rcv1-1e-05.csv").read_text().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"apcg", "sdca", "afg", *METHODS}
    (row,) = said("info", "rcv1", "--alpha", "1e-6")["alphas"]
    promised = row["promised_passes"]
    assert set(METHODS) < set(promised)
    assert promised["apcg"] < promised["accelerated_sdca"] < promised["sag"] < promised["svrg"]
    rows = said("compare", "rcv1", "--methods", "sag,svrg", "--alpha", "1e-2", "--no-plot")["runs"]
    assert [r["method"] for r in rows] == ["sag", "svrg"]


def test_what_has_no_place_in_them_is_refused():
    X, y = np.arange(12.0).reshape(6, 2), [1, -1, 1, -1, 1, -1]
    p = ERM(X, y, "logistic", intercept=True)
    with pytest.raises(ValueError, match="without an intercept, and this one has one") as error:
        solve(p, "accelerated_sdca")
    assert "'sag', 'svrg'" in str(error.value)
    for penalty in (penalties.ElasticNet([1.0, 2.0], 0.5), penalties.L2([1.0, 2.0])):
        for method in ("sag", "svrg"):
            with pytest.raises(ValueError, match="one L2 weight for all features"):
                solve(ERM(X, y, "logistic", penalty), method)
    with pytest.raises(ValueError, match="without bounds"):
        solve(ERM(X, y, "logistic", positive=True), "svrg")
    many = ERM(X, [0, 1, 2, 0, 1, 2], "multinomial")
    for method in METHODS:
        with pytest.raises(ValueError, match=f"'{method}' needs one output, and there are 3; take"):
            solve(many, method)
