"""apcg.dask on a real cluster of processes: answers, faults, errors that name the chunk."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import apcg
from apcg.engines import NoWorkers

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
from apcg.dask import ERM, APCGClassifier, APCGRegressor, solve  # noqa: E402
from apcg.engines import dask as engine  # noqa: E402

pytestmark = [
    pytest.mark.xdist_group("dask"),
    pytest.mark.filterwarnings("default"),  # Dask's own
]


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit=0,
        )  # fmt: skip
        with cluster, distributed.Client(cluster) as made:
            yield made


def two(client):
    """Both workers are there."""
    client.wait_for_workers(2, timeout=120)


def nothing_left(client):
    two(client)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        held = client.run(lambda dask_worker: [*dask_worker.data, *dask_worker.state.actors])
        if not any(held.values()):
            return True
        time.sleep(0.05)
    return False


def text(n=600, d=900, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.03, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


def sparse_chunks(X, rows):
    """A dask array whose chunks are SciPy matrices."""
    numbers = da.from_array(X.toarray(), chunks=(rows, X.shape[1]))
    return numbers.map_blocks(sp.csr_matrix)


def mixed_chunks(X, rows):
    """The first chunk is a dense array."""
    return da.concatenate([da.from_array(X[:rows].toarray()), sparse_chunks(X[rows:], rows)])


def certified(r, X, y, loss, alpha, **more):
    """P and D of the answer, computed again from all rows here."""
    whole = apcg.ERM(X, y, loss, alpha=alpha, **more)
    assert abs(whole.primal(r.w, r.intercept) - r.primal) <= 1e-12 * r.primal
    assert abs(whole.dual(r.x) - r.dual) <= 1e-12 * r.primal
    assert r.gap <= 1e-6 * r.primal
    return whole


def test_solve_is_that_of_one_machine(client):
    X, y = text()
    s = np.random.default_rng(1).random(len(y))
    problem = ERM(mixed_chunks(X, 150), y, "logistic", alpha=1e-4, sample_weight=s, intercept=True)
    r = solve(problem, random_state=0, dual_point=True, shards=2)
    whole = certified(r, X, y, "logistic", 1e-4, sample_weight=s, intercept=True)
    assert abs(apcg.solve(whole, tol=1e-8).primal - r.primal) <= 1e-6 * r.primal
    assert nothing_left(client)
    again = solve(problem, random_state=0, shards=2)
    assert np.array_equal(again.w, r.w)


def test_few_numbers_are_solved_here(client):
    """As on one machine, to the bit; callbacks see what they see on a cluster."""
    X, y = text()
    s, seen = np.random.default_rng(1).random(len(y)), []
    options = {"alpha": 1e-4, "sample_weight": s, "intercept": True}
    problem = ERM(sparse_chunks(X, 150), y, "logistic", **options)
    r = solve(problem, random_state=np.random.default_rng(0), callback=seen.append)
    whole = certified(r, X, y, "logistic", 1e-4, sample_weight=s, intercept=True)
    seed = int(np.random.default_rng(0).integers(2**31))
    one = apcg.solve(whole, random_state=seed, callback=lambda look: None)
    assert np.array_equal(r.w, one.w)
    assert r.trace.messages[-1] == 1
    assert [look.iteration for look in seen] == list(range(len(seen)))
    assert seen[-1].gap <= 1e-6
    assert nothing_left(client)


def test_classifier(client):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6)).astype(np.float32)
    words = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + rng.standard_normal((400, 3)), axis=1)]
    dX, dy = da.from_array(X, chunks=(100, 3)), da.from_array(words, chunks=100)
    for loss, y, labels, shards in (
        ("logistic", words, dy, 2), ("smoothed_hinge", words, dy, None),
        ("smoothed_hinge", words, dy, 2), ("logistic", words == "a", dy == "a", 2),
    ):  # fmt: skip
        ours = APCGClassifier(loss, alpha=1e-3, random_state=0, shards=shards).fit(dX, labels)
        one = apcg.APCGClassifier(loss, alpha=1e-3, tol=1e-9).fit(X, y)
        assert ours.multi_class_ == one.multi_class_
        np.testing.assert_allclose(ours.coef_, one.coef_, atol=1e-2)
        assert np.all(ours.predict(dX).compute() == ours.to_local().predict(X))
        assert np.mean(ours.predict(dX).compute() == one.predict(X)) > 0.98
        np.testing.assert_allclose(ours.decision_function(dX).compute(), one.decision_function(X),
                                   atol=2e-2)  # fmt: skip
        assert float(ours.score(dX, labels)) == pytest.approx(one.score(X, y), abs=0.02)
    shares = ours.predict_proba(dX)
    assert shares.shape == (400, 2)
    np.testing.assert_allclose(shares.compute().sum(axis=1), 1.0)
    assert nothing_left(client)


def test_regressor_on_a_dataframe(client):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 5)), columns=list("abcde"))
    frame["y"] = frame["a"] - 2 * frame["c"] + 0.1 * rng.standard_normal(300) + 4
    lazy = dd.from_pandas(frame, npartitions=3)
    ours = APCGRegressor(alpha=1e-3, penalty="l1", shards=2).fit(lazy[list("abcde")], lazy["y"])
    one = apcg.APCGRegressor(alpha=1e-3, penalty="l1", tol=1e-9).fit(
        frame[list("abcde")], frame["y"]
    )
    np.testing.assert_allclose(ours.coef_, one.coef_, atol=1e-4)
    assert ours.intercept_[0] == pytest.approx(one.intercept_[0], abs=1e-4)
    assert list(ours.feature_names_in_) == list("abcde")
    score = ours.score(lazy[list("abcde")], lazy["y"])
    assert float(score) == pytest.approx(one.score(frame[list("abcde")], frame["y"]), abs=1e-6)
    with pytest.raises(ValueError, match="expected those of fit in their order"):
        ours.predict(lazy[list("edcba")])
    here = ours.to_local().predict(frame[list("abcde")])
    np.testing.assert_allclose(ours.predict(lazy[list("abcde")]).compute(), here)


def kill(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def retire(client):
    client.retire_workers([sorted(client.scheduler_info()["workers"])[0]])


def restart(client):
    client.restart(wait_for_workers=False)  # the fit waits for them


@pytest.mark.slow
@pytest.mark.parametrize("fault", [retire, kill, restart])
def test_a_lost_worker_costs_a_rebuild(client, fault):
    two(client)
    X, y = text()
    done = []

    def trouble(look):
        if look.iteration == 3 and not done:
            done.append(look)
            fault(client)

    problem = ERM(sparse_chunks(X, 100), y, "logistic", alpha=1e-5, intercept=True)
    r = solve(problem, random_state=0, callback=trouble, shards=3, dual_point=True)
    assert done
    assert r.converged
    # Dask does not retire a worker that has actors: nothing is lost then
    assert r.trace.restarts[-1] >= (fault is not retire)
    certified(r, X, y, "logistic", 1e-5, intercept=True)
    if fault is retire:  # bring it back for the others
        client.cluster.scale(1)
        client.cluster.scale(2)
    assert nothing_left(client)


def test_a_stop_in_the_middle_leaves_nothing(client):
    two(client)
    X, y = text()
    problem = ERM(sparse_chunks(X, 100), y, "logistic", alpha=1e-5)
    r = solve(problem, callback=lambda look: look.iteration == 2, shards=2)
    assert r.status.code == "callback"
    assert r.gap > 0
    assert nothing_left(client)
    main = threading.main_thread().ident

    def interrupt(look):
        if look.iteration == 2:
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.1)

    assert solve(problem, callback=interrupt, shards=2).status.code == "interrupted"
    assert nothing_left(client)


@pytest.mark.slow
def test_without_workers_it_ends_with_the_best_so_far():
    X, y = text(200, 50)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as own,
    ):
        problem = ERM(da.from_array(X.toarray(), chunks=(50, 50)), y, "logistic", alpha=1e-5)

        def close(look):
            if look.iteration == 2:
                cluster.scale(0)
                own.sync(cluster._correct_state)

        with pytest.raises(NoWorkers, match="Start workers") as caught:
            solve(problem, client=own, callback=close, timeout=1.0, shards=1)
    assert caught.value.best.primal < np.log(2)


def test_errors_name_the_chunk(client):
    two(client)
    X, y = np.ones((40, 3)), np.tile([1.0, -1.0], 20)
    dX, bad = da.from_array(X, chunks=(10, 3)), X.copy()
    bad[25, 1] = np.nan
    unknown = dX[da.from_array(X[:, 0], chunks=10) > 0]
    cases = [
        (da.from_array(bad, chunks=(10, 3)), y, r"chunk 2 \(rows 20 to 29\).*NaN|nan"),
        (unknown, y, "chunk 0 of X has an unknown number"),
        (dX, da.from_array(y, chunks=20), "chunk 0 of y has 20 entries, and that of X has 10"),
        (dX, y[:30], "must have 40 entries"),
        (dX.map_blocks(lambda b: b, chunks=((10, 10, 0, 20), (3,))), y, "chunk 2 of X has no rows"),
        (dX, np.ones(40), "both of them"),
        (dX, np.where(np.arange(40) == 17, np.nan, y), "chunk 1 .*y has nan"),
        (dX, np.where(np.arange(40) == 17, None, y), "chunk 1 .*y is missing at entry 7"),
    ]
    for data, labels, words in cases:
        with pytest.raises(ValueError, match=words):
            solve(ERM(data, labels, "logistic"))
    with pytest.raises(TypeError, match="must be a dask array or dataframe"):
        solve(ERM(X, y))
    for given, words in (({"time_limit": "1"}, "time_limit must be a number"),
                         ({"max_epochs": -1}, "max_epochs must be at least 0"),
                         ({"timeout": -1.0}, r"timeout must be in \[0, inf\)")):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=words):
            solve(ERM(dX, y), **given)
    with pytest.raises(ValueError, match="only one class"):
        APCGClassifier().fit(dX, np.zeros(40))
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        APCGClassifier("hinge").fit(dX, y).predict_proba(dX)
    assert nothing_left(client)


def test_a_worker_that_lives_may_take_long_for_its_first_shard(client, monkeypatch):
    """Its import of apcg, say; `timeout` is for clusters without workers."""
    monkeypatch.setattr(engine, "_PATIENCE", 0.2)

    class Late:
        def answer(self):
            return 1

    def late(rows):
        time.sleep(3.0)
        return Late()

    two(client)
    rows = [da.ones(2, chunks=2).to_delayed()[0]]
    with engine.DaskEngine(client, rows, late, timeout=1.5) as made:
        assert made.each("answer") == [1]


@pytest.mark.slow
def test_warnings(client):
    two(client)
    X, y = text(300, 6000)
    problem = ERM(sparse_chunks(X, 50), y, "hinge", alpha=1e-2)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # the data is in memory here
        with pytest.warns(UserWarning, match="smoothed_hinge"):
            r = solve(problem, tol=1e-2, shards=2)
    assert r.converged


@pytest.mark.slow
def test_the_example_runs():
    example = Path(__file__).parents[3] / "examples" / "dask_cluster.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)
    for words in ("2 workers", "converged", "of the optimum", "accuracy 0.8"):
        assert words in done.stdout
