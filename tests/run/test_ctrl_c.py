"""Ctrl-C at any moment: what there is comes back, at once, for every loss and penalty."""

import _thread
import inspect
import os
import signal
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import apcg
from apcg import (
    ERM,
    APCGClassifier,
    APCGClassifierCV,
    APCGRegressor,
    APCGRegressorCV,
    path,
    penalties,
    solve,
)
from apcg.estimators import interrupted, linear, ratios
from apcg.methods.dual.driver import DualRun
from apcg.methods.sparse.dense import path_dense
from apcg.run import path as _  # noqa: F401  (the module, not the function)
from apcg.run import solve as __  # noqa: F401

RUN_PATH, RUN_SOLVE = sys.modules["apcg.run.path"], sys.modules["apcg.run.solve"]
HOME = str(Path(apcg.__file__).parent)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 30))
REAL = X[:, 0] - X[:, 1] + 0.3 * RNG.standard_normal(60)
SIGNS = np.where(REAL > 0, 1.0, -1.0)
COLUMNS = X[:, :3] + 0.3 * RNG.standard_normal((60, 3))
CLASSES = COLUMNS.argmax(axis=1)
#: moments, as parts of all calls of functions of apcg in a whole run
MOMENTS = (0.0, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97)


class Pressed:
    """Presses Ctrl-C at a call of a Python function of apcg: of that number, or none if it is 0."""

    def __init__(self, at=0, note=lambda: None):
        self.at, self.count, self.note, self.noted = at, 0, note, None

    def __call__(self, frame, event, arg):
        code = frame.f_code
        # Python ignores what is raised while it closes a generator
        generator = code.co_flags & inspect.CO_GENERATOR
        if event == "call" and code.co_filename.startswith(HOME) and not generator:
            self.count += 1
            if self.count == self.at:
                self.noted = self.note()
                raise KeyboardInterrupt

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)


def moments(run):
    """The numbers of the calls to press at."""
    with Pressed() as pressed:
        run()
    return [1 + int(part * (pressed.count - 1)) for part in MOMENTS]


# ---- path ---------------------------------------------------------------------------------------

PATHS = {
    "smoothed hinge": ERM(X, SIGNS, "smoothed_hinge", "l2"),
    "hinge": ERM(X, SIGNS, "hinge", "l2", intercept=True),
    "hinge, elastic net": ERM(X, SIGNS, "hinge", "elasticnet"),
    "logistic, L1": ERM(X, SIGNS, "logistic", "l1", intercept=True),
    "squared, L1": ERM(X, REAL, "squared", "l1"),
    "squared, L1, sparse": ERM(sp.csr_array(X * (X > 0.5)), REAL, "squared", "l1"),
    "squared, L2": ERM(X, REAL, "squared", "l2"),
    "huber, groups": ERM(X, REAL, "huber", penalties.GroupLasso([10, 10, 10])),
    "squared, groups": ERM(X, REAL, "squared", penalties.GroupLasso([10, 10, 10])),
    "softmax": ERM(X, CLASSES, "multinomial", "l2"),
    "softmax, L1": ERM(X, CLASSES, "multinomial", "l1"),
    "multiclass hinge": ERM(X, CLASSES, "multiclass_hinge", "l2"),
    "multi-task": ERM(X, COLUMNS, "squared", "group"),
    "columns, L1": ERM(X, COLUMNS, "squared", "l1"),
}
ALPHAS = np.geomspace(0.3, 0.01, 8)


@pytest.mark.slow(but=6)
@pytest.mark.parametrize("kind", PATHS)
def test_a_path_gives_back_what_there_is(kind, monkeypatch):
    """All answers that were done; nothing new is begun; an error only if there is none."""
    p, done, begun = PATHS[kind], [], []
    real, together, one = RUN_PATH._one_by_one, path_dense.answers, RUN_PATH.solve_on

    def watched(source):
        def walk(*given):
            for found in source(*given):
                done.append(found)
                yield found

        return walk

    monkeypatch.setattr(RUN_PATH, "_one_by_one", watched(real))
    monkeypatch.setattr(path_dense, "answers", watched(together))
    monkeypatch.setattr(RUN_PATH, "solve_on", lambda *given: (begun.append(1), one(*given))[1])

    def run():
        done.clear()
        begun.clear()
        return path(p, ALPHAS, tol=1e-4, random_state=0)

    for moment in moments(run):
        with Pressed(moment, lambda: (len(done), len(begun))) as pressed:
            try:
                answers = run()
            except KeyboardInterrupt:
                assert pressed.noted[0] == 0
                continue
        were_done, were_begun = pressed.noted
        assert were_done <= len(answers) <= were_done + 1
        assert len(begun) <= max(were_begun, 1)
        for alpha, r in zip(ALPHAS, answers, strict=False):
            q = p.with_alpha(alpha)
            assert q.primal(r.w, r.intercept) == pytest.approx(r.primal)
            assert q.dual(r.x) <= r.dual + 1e-12 * abs(r.dual)
        codes = {r.status.code for r in answers[:-1]}
        assert codes <= {"converged", "max_epochs"}


def test_a_path_on_one_matrix_ends_with_its_first_answer(monkeypatch):
    """Ctrl-C before the first stretch was swallowed, and all alphas solved one by one."""

    def pressed(*given):
        os.kill(os.getpid(), signal.SIGINT)
        yield from ()

    monkeypatch.setattr(path_dense, "answers", pressed)
    answers = path(PATHS["squared, L1"], ALPHAS)
    assert len(answers) == 1
    assert answers[0].converged


def test_ctrl_c_between_two_points_of_a_path_keeps_them(monkeypatch):
    """By a real signal."""
    real, calls = RUN_PATH._gone_on, []

    def pressed(*given):
        calls.append(1)
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*given)

    monkeypatch.setattr(RUN_PATH, "_gone_on", pressed)
    try:
        answers = path(PATHS["logistic, L1"], ALPHAS)
    except KeyboardInterrupt:
        pytest.fail("the answers were lost")
    assert [r.converged for r in answers] == [True] * 3


# ---- solve --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["logistic, L1", "hinge", "softmax", "squared, L2"])
def test_ctrl_c_after_the_last_look_gives_back_the_answer(kind, monkeypatch):
    p = PATHS[kind].with_alpha(0.01)
    whole = solve(p, random_state=0)
    for name in ("_final", "_not_worse"):
        with monkeypatch.context() as patch:

            def press(*given):
                os.kill(os.getpid(), signal.SIGINT)
                raise AssertionError("the signal was not heard")

            patch.setattr(RUN_SOLVE, name, press)
            r = solve(p, random_state=0)
        assert r.status.code == "interrupted"
        assert r.gap <= max(whole.gap, 1e-6 * whole.primal)
        assert p.dual(r.x) == pytest.approx(r.dual)


# ---- one against the rest -----------------------------------------------------------------------


def fitted(model, *given):
    """Fit; whether Ctrl-C was heard."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(*given)
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("loss", ["logistic", "hinge", "smoothed_hinge"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize(("rows", "features"), [(60, 25), (2000, 10)])
def test_ctrl_c_ends_one_against_the_rest(loss, penalty, rows, features, monkeypatch):
    """No other class is begun, and all have attributes. (Smaller ones are over before a key is.)"""
    rng, begun, real = np.random.default_rng(1), [], linear.solve
    data = rng.standard_normal((rows, features))
    y = (data[:, :6] + rng.standard_normal((rows, 6))).argmax(axis=1)
    options = {"alpha": 1e-3, "penalty": penalty, "multi_class": "ovr", "random_state": 0}
    monkeypatch.setattr(linear, "solve", lambda *a, **k: (begun.append(1), real(*a, **k))[1])

    heard = []
    for moment in moments(lambda: fitted(APCGClassifier(loss, **options), data, y)):
        model = APCGClassifier(loss, **options)
        begun.clear()
        with Pressed(moment, lambda: len(begun)) as pressed:
            stopped = fitted(model, data, y)
        if not hasattr(model, "coef_"):
            assert stopped
            assert not begun  # it was still at the checks
            continue
        assert model.coef_.shape == (6, features)
        assert np.isfinite(model.coef_).all()
        codes = {status.code for status in model.status_}
        assert stopped or "interrupted" not in codes
        assert "interrupted" in codes or codes == {"converged"}  # pressed after the last class
        assert len(begun) == pressed.noted
        heard.append(stopped)
    assert sum(heard) >= 3


def test_classes_that_were_swept_together_are_kept(monkeypatch):
    """The sweeps for all classes are interrupted: each has the w of its x."""
    rng, advance = np.random.default_rng(0), DualRun._sweep
    data = rng.standard_normal((300, 200))
    y = (data[:, :6] + rng.standard_normal((300, 6))).argmax(axis=1)

    def press(self, budget):
        if self.swept == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self, budget)

    monkeypatch.setattr(DualRun, "_sweep", press)
    model = APCGClassifier("logistic", alpha=1e-3, multi_class="ovr", random_state=0)
    assert fitted(model, data, y)
    assert {status.code for status in model.status_} == {"interrupted"}
    assert model.score(data, y) > 0.9
    assert (model.duality_gap_ < 0.1).all()


def test_ctrl_c_with_threads(monkeypatch):
    """Heard by the main thread: what no thread has done by then is given back as it stands."""
    released, real, spare = threading.Event(), linear.solve, interrupted.unsolved
    calls = []

    def slow(*given, **options):
        calls.append(1)
        if len(calls) == 2:
            _thread.interrupt_main()
        if len(calls) >= 2:
            assert released.wait(60)
        return real(*given, **options)

    def told(*given):
        released.set()
        return spare(*given)

    monkeypatch.setattr(linear, "solve", slow)
    monkeypatch.setattr(linear, "unsolved", told)
    y = (X[:, :4] + 0.1 * RNG.standard_normal((60, 4))).argmax(axis=1)
    model = APCGClassifier("logistic", alpha=1e-6, multi_class="ovr", n_jobs=2, penalty="l1")
    assert fitted(model, X, y)
    codes = [status.code for status in model.status_]
    assert "interrupted" in codes
    assert model.coef_.shape == (4, 30)


# ---- cross-validation ---------------------------------------------------------------------------

SEARCHES = {
    "race": (APCGClassifierCV("logistic", alphas=5, random_state=0), SIGNS),
    "race, classes": (
        APCGClassifierCV("logistic", alphas=5, multi_class="ovr", random_state=0),
        CLASSES,
    ),
    "sweeps": (APCGClassifierCV("logistic", alphas=5, random_state=0), CLASSES),
    "at once": (
        APCGRegressorCV("squared", penalty="l1", alphas=np.geomspace(0.5, 0.01, 5), random_state=0),
        REAL,
    ),
    "ridge": (APCGRegressorCV("squared", alphas=5, random_state=0), REAL),
}


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_gives_back_what_there_is(kind):
    """If an alpha was scored there is a model, with a certificate; NaN where there is no score."""
    made, y = SEARCHES[kind]
    names = ("alpha_", "best_score_", "scores_", "coef_", "duality_gap_", "status_")

    kept = 0
    for moment in moments(lambda: fitted(clone(made), X, y)):
        model = clone(made)
        with Pressed(moment):
            stopped = fitted(model, X, y)
        assert stopped
        if not hasattr(model, "alpha_"):
            assert not any(hasattr(model, name) for name in names)
            continue
        kept += 1
        assert model.alpha_ in model.alphas_
        best = model.scores_[list(model.alphas_).index(model.alpha_)]
        assert model.best_score_ == pytest.approx(np.nanmean(best))
        if hasattr(model, "coef_"):  # or the last fit had not begun
            assert np.isfinite(model.coef_).all()
            assert model.predict(X).shape == y.shape
    assert kept >= (1 if kind == "ridge" else 3)


@pytest.mark.parametrize("kind", ["race", "at once"])
def test_ctrl_c_while_an_alpha_is_chosen_leaves_all_attributes(kind, monkeypatch):
    made, y = SEARCHES[kind]
    model, keep, pressed = clone(made), ratios.keep, []

    def pressing(*given):
        keep(*given)
        if not pressed:
            pressed.append(1)
            raise KeyboardInterrupt

    monkeypatch.setattr(ratios, "keep", pressing)
    assert fitted(model, X, y)
    assert model.alpha_ in model.alphas_
    assert model.coef_.shape[-1] == X.shape[1]
    assert model.status_.code == "interrupted"
    assert model.predict(X).shape == y.shape


def test_a_search_that_is_interrupted_has_the_model_of_a_fold():
    made, y = SEARCHES["race"]
    model, again = clone(made), clone(made)
    with Pressed() as pressed:
        fitted(model, X, y)
    with Pressed(int(0.6 * pressed.count)):
        assert fitted(again, X, y)
    assert again.status_.code == "interrupted"
    assert again.score(X, y) > 0.8
    assert again.duality_gap_ > model.duality_gap_


def test_a_regression_of_one_problem_keeps_its_best_point():
    with Pressed() as pressed:
        fitted(APCGRegressor("huber", alpha=1e-6, tol=1e-10), X, REAL)
    model = APCGRegressor("huber", alpha=1e-6, tol=1e-10)
    with Pressed(int(0.9 * pressed.count)):
        assert fitted(model, X, REAL)
    assert model.status_.code == "interrupted"
    assert np.isfinite(model.coef_).all()
