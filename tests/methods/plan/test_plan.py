"""The plan: which method it takes, when it changes over, what it is worth."""

import re

import numpy as np
import pytest
from erm_problems import one_hot, problem, text_like

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.methods.base import Target
from apcg.methods.plan.plan import Auto
from apcg.methods.plan.watch import Watch, seconds
from apcg.problems import costs


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smoothed_hinge"])
def test_few_collinear_features_are_solved_in_the_primal(loss):
    """The dual is slow there whatever mu-hat is."""
    X, y = one_hot()
    p = ERM(X, y, loss, alpha=1e-8)
    auto = solve(p, "auto", tol=1e-6, max_epochs=1000, check_every=1, random_state=0)
    apcg = solve(p, "apcg", tol=1e-6, max_epochs=1000, check_every=1, random_state=0)
    assert auto.converged
    assert auto.side == "primal"
    assert auto.epochs < 0.5 * apcg.epochs


def test_many_features_and_easy_problems_stay_in_the_dual():
    X, y = text_like(n=600, d=900, noise=0.3)
    assert solve(ERM(X, y, "logistic", alpha=1e-6), random_state=0).side == "dual"
    X, y = one_hot()
    assert solve(ERM(X, y, "hinge", alpha=1e-2), tol=1e-3, random_state=0).side == "dual"


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("logistic", "l1"), ("huber", "elasticnet"), ("epsilon_insensitive", "elasticnet")],
)
def test_where_newton_does_not_apply_it_is_never_chosen(loss, penalty):
    p = problem(loss, penalty, 1e-5)
    choice = Watch(p, Target(1e-9, 10**9))
    assert not any(choice.leave(e, 1.0) for e in range(1000))


def test_the_choice_follows_the_rate():
    """A gap that falls by ten each pass is left alone; one that stands still is not."""
    X, y = one_hot()
    p = ERM(X, y, "logistic", alpha=1e-6)
    fast, slow, short = (Watch(p, Target(1e-6, n)) for n in (1000, 1000, 12))
    assert not any(fast.leave(e, 0.1**e) for e in range(60))
    assert any(slow.leave(e, 0.99**e) for e in range(60))
    assert not any(short.leave(e, 0.99**e) for e in range(12))  # no room for it


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 300)), int(rng.integers(5, 120))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.uniform(0.1, 1))
    X *= np.exp(rng.normal(0, rng.uniform(0, 1.5), d))
    z = X @ rng.standard_normal(d)
    y = np.where(z + rng.uniform(0, 2) * np.std(z) * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = -1, 1
    loss = ("smoothed_hinge", "logistic", "squared_hinge")[seed % 3]
    return ERM(X, y, loss, alpha=10 ** rng.uniform(-6, -1)), int(rng.choice([10, 25, 50, 100]))


@pytest.mark.slow
def test_auto_against_sdca_and_apcg_on_random_problems():
    """To a certified 1e-6: wherever one of them arrives auto does, and seldom later."""
    ratios = []
    for seed in range(60):
        p, _ = random_problem(seed)
        auto, *others = (
            solve(p, m, max_epochs=3000, random_state=0) for m in ("auto", "sdca", "apcg")
        )
        arrived = [r.epochs for r in others if r.converged]
        assert auto.converged or not arrived
        if arrived:
            ratios.append(auto.epochs / min(arrived))
    assert len(ratios) > 40
    # a factor of Newton's method counts as many passes on such small dense problems
    assert np.mean(np.array(ratios) <= 1.25) >= 0.75
    assert np.exp(np.mean(np.log(ratios))) <= 0.6


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_the_interior_point_method_ends_what_sweeps_do_not(loss, intercept):
    """Noisy labels and a tiny lambda: 1,000 plain passes are not enough."""
    X, y = one_hot(400)
    p = ERM(X, y, loss, alpha=1e-6, intercept=intercept)
    r = solve(p, tol=1e-9, random_state=0)
    assert r.converged
    assert r.side == "primal"
    assert r.gap == pytest.approx(p.gap(r.x, r.w, r.intercept if intercept else None), abs=1e-15)
    plain = solve(p, "dual", tol=1e-9, random_state=0)
    assert not plain.converged or plain.epochs > 100
    assert r.primal <= plain.primal * (1 + 1e-9)


def test_a_run_says_what_was_chosen_and_why(capsys):
    X, y = one_hot(400)
    r = solve(ERM(X, y, "logistic", alpha=1e-4), random_state=0)
    assert r.trace.notes == ["newton: 400 samples for 30 features, so a factor costs little"]
    assert set(r.trace["method"]) == {"newton"}
    X, y = one_hot(3000)
    hinge = ERM(X, y, "hinge", alpha=1e-6)
    r = solve(hinge, tol=1e-9, check_every=1, random_state=0)
    first, change, *_ = r.trace.notes
    assert first == (
        "dual: 3,000 samples for 30 features, and the interior point method for what is slow"
    )
    assert re.fullmatch(
        r"dual -> (interior|smoothing): (\S+ m?s left|not within max_epochs) by the observed rate, "
        r"\S+ m?s predicted",
        change,
    )
    assert list(dict.fromkeys(r.trace["method"]))[:2] == ["dual", change.split()[2].rstrip(":")]
    assert capsys.readouterr() == ("", "")


def test_verbose_shows_the_notes_and_changes_nothing_else(capsys):
    X, y = one_hot(3000)
    p = ERM(X, y, "hinge", alpha=1e-6)
    quiet = solve(p, tol=1e-9, random_state=0)
    assert capsys.readouterr() == ("", "")
    told = solve(p, tol=1e-9, random_state=0, verbose=1)
    assert capsys.readouterr() == ("", "".join(note + "\n" for note in quiet.trace.notes))
    assert len(quiet.trace.notes) >= 2
    np.testing.assert_array_equal(told.w, quiet.w)
    np.testing.assert_array_equal(told.trace["gap"], quiet.trace["gap"])


@pytest.mark.parametrize(
    ("penalty", "plan", "note"),
    [
        ("l1", Auto(), "working_set: the penalty makes weights zero"),
        ("l1", Auto(without=("working_set",)), "adaptive: dual needs"),
        ("l2", Auto(without=("newton", "dual")), "adaptive: the dual is left out"),
        ("l2", Auto(without=("newton",)), "dual: 40 samples for 12 features"),
    ],
)
def test_other_choices_have_reasons_too(penalty, plan, note):
    r = solve(problem("logistic", penalty, 1e-2), plan, random_state=0)
    assert r.trace.notes[0].startswith(note)
    assert r.trace["method"][0] == note.split(":")[0]


def test_the_predictions_in_a_note_are_those_that_decide():
    """A gap that falls by 1 % a pass: log(0.99^30/tol)/log(1/0.99) passes are left."""
    X, y = one_hot()
    p = ERM(X, y, "logistic", alpha=1e-6)
    watch = Watch(p, Target(1e-6, 10**6))
    at = next(e for e in range(1, 200) if watch.leave(e, 0.99**e))
    left = (at * np.log(0.99) - np.log(1e-6)) / -np.log(0.99)
    one_pass = costs.sweep(p) + costs.RATES.call
    assert watch.why.startswith(f"{seconds(left * one_pass)} left by the observed rate, ")
    assert seconds(2.5e9) == "2.5 s"
    assert seconds(2.5e6) == "2.5 ms"
    short = Watch(p, Target(1e-6, 200))
    assert any(short.leave(e, 0.99**e) for e in range(1, 100))
    assert short.why.startswith("not within max_epochs by the observed rate, ")


def test_a_method_that_is_forced_is_the_one_of_every_row():
    r = solve(problem("logistic"), "sdca", random_state=0)
    assert set(r.trace["method"]) == {"sdca"}
    assert r.trace.notes == []


def test_an_interior_point_run_that_gets_stuck_on_the_samples_kept_goes_on_with_all():
    """Repeated rows and a free intercept: sweeps with momentum go round at a gap of 3e-4 here."""
    rng = np.random.RandomState(42)
    X, y, times = rng.rand(15, 30), rng.randint(0, 3, size=15), rng.randint(0, 5, size=15)
    X, y = X.repeat(times, axis=0), np.where(y.repeat(times) == 0, 1.0, -1.0)
    p = ERM(X, y, "hinge", alpha=10.0, intercept=True)
    r = solve(p, tol=1e-15, max_epochs=20_000, random_state=0)
    assert r.gap <= 1e-15 * r.primal
    assert any(note.startswith("dual -> interior") for note in r.trace.notes)


def test_few_samples_take_the_fewest_steps():
    X, y = one_hot(300)
    assert Auto().first(ERM(X, y, "hinge", alpha=1e-4), Start())[0].name == "interior"
    r = solve(ERM(X, y, "hinge", alpha=1e-4, intercept=True), tol=1e-9, random_state=0)
    assert r.converged
    X, y = one_hot(20_000)
    assert Auto().first(ERM(X, y, "hinge", alpha=1e-4), Start())[0].name == "dual"


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_an_intercept_that_is_slow_to_balance_is_no_trap(loss):
    """All x_i are at a bound but one or two: only the balance is short, and sweeps creep."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 26))
    y = np.where(X[:, 0] > 0.7, 1.0, -1.0) if loss == "hinge" else 50 * X[:, 0] + 9
    r = solve(ERM(X, y, loss, alpha=5.0, intercept=True), tol=1e-7, random_state=0)
    assert r.converged
    assert r.epochs < 500


def test_a_factor_that_max_epochs_does_not_pay_for_is_not_begun():
    """More features than samples: one factor costs more passes than there are."""
    X, y = text_like(150, 400, 20, noise=1.0)
    watch = Watch(ERM(X, y, "hinge", alpha=1e-3), Target(1e-6, 1000))
    assert not any(watch.leave(k, 0.5) for k in range(1, 900))
    watch = Watch(ERM(X, y, "hinge", alpha=1e-3), Target(1e-6, 10**7))
    assert any(watch.leave(k, 0.5) for k in range(1, 100_000, 100))
