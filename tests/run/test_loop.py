"""The loop around every method: why it stops, what it gives back, what it records and shows."""

import pickle
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from apcg import Result, Status, Trace, functions, minimize, penalties
from apcg.run import loop

RNG = np.random.default_rng(11)
A = RNG.standard_normal((40, 15)) @ np.diag(np.linspace(0.05, 1.0, 15))
B = RNG.standard_normal(40)
LS = functions.LeastSquares(A, B)
PSI = penalties.L1(0.2)
ENDLESS = {"tol": 0.0, "max_epochs": 10**6}


class Oracle:
    """LS in Python; `disturb(x, calls)` may do something at every partial gradient."""

    def __init__(self, disturb=None, scale=1.0):
        self.L = scale * np.sum(A**2, axis=0)
        self.disturb, self.calls = disturb, 0

    def value(self, x):
        return 0.5 * float(np.sum((A @ x - B) ** 2))

    def partial_gradient(self, i, x):
        self.calls += 1
        g = A[:, i] @ (A @ x - B)
        return g if self.disturb is None else self.disturb(g, self.calls)


def run(f=LS, **options):
    return minimize(f, PSI, np.zeros(15), random_state=0, **options)


def check_best(r):
    """F(x) is the least of the record, unless a later point reached the tolerance."""
    assert np.isfinite(r.x).all()
    assert r.fun == pytest.approx(LS.value(r.x) + PSI.value(r.x), rel=1e-12)
    slack = 1e-9 * abs(r.fun) if r.converged else 0.0
    assert r.fun <= r.trace["fun"].min() + slack


# ---- reasons to stop -------------------------------------------------------------------------


def test_stops_on_the_residual():
    r = run(tol=1e-5)
    assert r.status.code == "converged"
    assert r.converged
    target = 1e-5 * max(1.0, np.abs(LS.gradient(np.zeros(15))).max())
    assert r.residual <= target < r.trace["residual"][-2]
    assert r.residual == r.trace["residual"][-1]
    check_best(r)


@pytest.mark.parametrize("f", [LS, Oracle()], ids=["compiled", "oracle"])
def test_stops_at_max_epochs(f):
    r = run(f, max_epochs=7, check_every=3)
    assert (r.status.code, r.epochs, r.converged) == ("max_epochs", 7, False)
    assert "Raise max_epochs or tol" in r.status
    np.testing.assert_array_equal(r.trace["epoch"], [0, 3, 6, 7])
    check_best(r)


def test_stops_at_the_time_limit():
    r = run(time_limit=0.05, **ENDLESS)
    assert r.status.code == "time_limit"
    assert 0 < r.epochs < 10**6
    assert "Raise time_limit" in r.status
    check_best(r)


def test_the_time_limit_is_heard_within_an_epoch_of_a_slow_oracle():
    def slow(g, calls):
        if calls > 30:  # the checks before the first step are quick
            time.sleep(0.02)
        return g

    f = Oracle(slow)
    r = run(f, time_limit=0.05, **ENDLESS)
    assert (r.status.code, r.epochs) == ("time_limit", 1)
    assert f.calls < 30 + 15 + 15  # not the whole epoch, and the last check
    check_best(r)


@pytest.mark.parametrize("how", ["true", "StopIteration"])
def test_stops_by_the_callback(how):
    def callback(check):
        if check.epoch >= 4:
            if how == "true":
                return True
            raise StopIteration
        return None

    r = run(callback=callback, check_every=2, **ENDLESS)
    assert (r.status.code, r.epochs) == ("callback", 4)
    check_best(r)


def test_an_error_in_the_callback_is_the_users():
    def callback(check):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(callback=callback)


# ---- Ctrl-C ----------------------------------------------------------------------------------


def interrupted(r):
    assert r.status.code == "interrupted"
    assert "This is the best point seen; go on from it by x0" in r.status
    check_best(r)


def test_interrupted_in_a_callback():
    def callback(check):
        if check.epoch == 6:
            raise KeyboardInterrupt

    r = run(callback=callback, check_every=1, **ENDLESS)
    interrupted(r)
    assert r.epochs == 6


@pytest.mark.parametrize("step", [1, 40, 77, 200])
def test_interrupted_in_an_oracle(step):
    def disturb(g, calls):
        if calls == step:
            raise KeyboardInterrupt
        return g

    f = Oracle(disturb)
    if step == 1:  # before there is anything to give back
        with pytest.raises(KeyboardInterrupt):
            run(f, check_every=1, **ENDLESS)
    else:
        interrupted(run(f, check_every=1, **ENDLESS))


def test_interrupted_at_the_first_check():
    def disturb(g, calls):
        if calls == 20:  # 15 calls for the gradient at x0, then the first check
            raise KeyboardInterrupt
        return g

    r = run(Oracle(disturb), **ENDLESS)
    interrupted(r)
    assert r.epochs == 0


def test_interrupted_between_the_first_look_and_its_record(monkeypatch):
    """The look that Ctrl-C cuts off leaves nothing half made, and is done again."""
    made = []

    def record(*columns):
        made.append(columns)
        if len(made) == 1:
            raise KeyboardInterrupt
        return Trace(*columns)

    monkeypatch.setattr(loop, "Trace", record)
    r = run(**ENDLESS)
    interrupted(r)
    assert len(made) == 2


def test_a_second_interrupt_during_the_last_look():
    def disturb(g, calls):
        if calls >= 100:
            raise KeyboardInterrupt
        return g

    interrupted(run(Oracle(disturb), check_every=1, **ENDLESS))


CHILD = """
    import signal, sys
    import numpy as np
    from apcg import functions, minimize, penalties
    signal.signal(signal.SIGINT, signal.default_int_handler)
    A = np.random.default_rng(0).standard_normal((60, 40))
    f = known = functions.LeastSquares(A, np.ones(60))
    class Own:
        L = np.sum(A**2, axis=0)
        def value(self, x):
            return known.value(x)
        def partial_gradient(self, i, x):
            return known.partial_gradient(i, x)
    if sys.argv[1] == "oracle":
        f = Own()
    def ready(check):
        if check.epoch == 2:
            print("ready", flush=True)
    r = minimize(f, penalties.L1(0.1), np.zeros(40), tol=0.0, max_epochs=10**9, callback=ready,
                 check_every=2, random_state=0)
    print(r.status.code, r.epochs > 2, r.fun <= r.trace["fun"].min(), np.isfinite(r.x).all())
"""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("kind", ["compiled", "oracle"])
def test_a_real_interrupt_gives_the_best_point(kind):
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), kind], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert said.split() == ["interrupted", "True", "True", "True"]
    assert child.returncode == 0


# ---- values that are not finite --------------------------------------------------------------


def not_finite(r):
    assert r.status.code == "non_finite"
    assert "Look at the constants L" in r.status
    assert not r.converged
    assert np.isfinite(r.x).all()


def test_constants_that_are_too_small_diverge():
    r = run(Oracle(scale=0.02), max_epochs=10_000)
    not_finite(r)
    check_best(r)
    assert np.isfinite(r.trace["fun"]).all()


def test_a_smoothness_that_is_too_small_diverges_in_the_kernel():
    h = functions.Custom(lambda t, b: 0.5 * (t - b) ** 2, lambda t, b: t - b, 0.02, data=B)
    r = minimize(functions.LinearComposite(A, h), None, random_state=0, max_epochs=10_000)
    not_finite(r)
    assert r.fun <= LS.value(np.zeros(15)) * (1 + 1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("since", [1, 50])
def test_an_oracle_that_gives_no_number(bad, since):
    r = run(Oracle(lambda g, calls: g if calls < since else bad), check_every=1)
    not_finite(r)
    check_best(r)


def test_an_objective_that_is_no_number_at_the_start():
    f = Oracle()
    f.value = lambda x: np.nan
    r = run(f)
    not_finite(r)
    assert (r.epochs, len(r.trace)) == (0, 0)
    np.testing.assert_array_equal(r.x, np.zeros(15))


# ---- checks and callbacks --------------------------------------------------------------------


@pytest.mark.parametrize("check_every", [1, 4])
def test_the_callback_sees_every_check(check_every):
    seen = []
    r = run(callback=seen.append, check_every=check_every, max_epochs=2000)
    assert r.converged
    assert len(seen) == len(r.trace)
    for name in ("epoch", "seconds", "fun", "residual"):
        np.testing.assert_array_equal([getattr(c, name) for c in seen], r.trace[name])
    assert all(LS.value(c.x) + PSI.value(c.x) == pytest.approx(c.fun) for c in seen)
    assert all(e % check_every == 0 for e in r.trace["epoch"])
    assert (np.diff(r.trace["seconds"]) >= 0).all()
    assert not hasattr(seen[0], "gap")


def test_the_callback_cannot_spoil_the_answer():
    def callback(check):
        with pytest.raises(ValueError, match="read-only"):
            check.x[:] = 0.0

    r = run(callback=callback)
    check_best(r)
    r.x += 1.0  # it is the user's now


@pytest.mark.parametrize("options", [{}, {"mu": 0.9}, {"mu": 0.02}, {"method": "rpcg"}])
@pytest.mark.parametrize("max_epochs", [1, 9, 60])
def test_the_answer_is_never_worse_than_a_recorded_check(options, max_epochs):
    """A mu that is too large makes F go up and down; the best is kept."""
    check_best(run(max_epochs=max_epochs, check_every=1, tol=0.0, **options))


# ---- Trace, Status, Result -------------------------------------------------------------------


def test_the_trace():
    trace = run(max_epochs=6, check_every=2).trace
    assert trace.columns == ("epoch", "seconds", "fun", "residual")
    assert list(trace) == list(trace.columns)
    assert len(trace) == 4
    np.testing.assert_array_equal(trace.fun, trace["fun"])
    assert repr(trace) == "Trace(4 checks of epoch, seconds, fun, residual)"
    with pytest.raises(KeyError, match="no column 'gap'; it has epoch, seconds, fun, residual"):
        trace["gap"]
    with pytest.raises(AttributeError, match="no column 'gap'; it has epoch"):
        trace.gap  # noqa: B018
    frame = trace.to_pandas()
    assert list(frame.columns) == list(trace.columns)
    np.testing.assert_array_equal(frame["residual"], trace["residual"])


def test_a_row_of_the_trace_must_be_complete():
    trace = Trace("epoch", "fun")
    with pytest.raises(KeyError, match="fun"):
        trace.append(epoch=0)


def test_the_plot_of_a_trace(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    trace = run(max_epochs=20, check_every=2).trace
    axes = trace.plot()
    (line,) = axes.get_lines()
    np.testing.assert_array_equal(line.get_xdata(), trace["epoch"])
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel() == "proximal-gradient residual"
    axes.figure.savefig(tmp_path / "trace.png")
    mine = Figure().add_subplot()
    assert trace.plot("fun", ax=mine) is mine
    assert mine.get_ylabel() == "F(x)"
    with pytest.raises(KeyError, match="no column 'gap'"):
        trace.plot("gap")


def test_the_status_is_a_string_with_a_code():
    status = run(max_epochs=1).status
    assert isinstance(status, str)
    assert isinstance(status, Status)
    assert status.code == "max_epochs"
    again = pickle.loads(pickle.dumps(status))
    assert (again, again.code, type(again)) == (status, status.code, Status)


def test_the_result():
    r = run(method="apcg", mu=0.01, max_epochs=5)
    text = repr(r)
    for part in ("Result(fun=", "epochs=5", "method='apcg'", "mu=0.01", "x: 15 numbers"):
        assert part in text
    assert str(r.status) in text
    again = pickle.loads(pickle.dumps(r))
    assert isinstance(again, Result)
    np.testing.assert_array_equal(again.x, r.x)
    np.testing.assert_array_equal(again.trace["fun"], r.trace["fun"])
    assert (r.mu, r.gamma0) == (0.01, 0.01)
    np.testing.assert_array_equal(r.L, LS.lipschitz())
    assert r.seconds == r.trace["seconds"][-1]
