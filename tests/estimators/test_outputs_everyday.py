"""Many classes and outputs as users meet them: estimators, model files, the command."""

import json

import numpy as np
import pytest
from command import apcg
from outputs_problems import text
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    estimator_checks_generator,
)

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.datasets import DataError
from apcg.estimators import APCGClassifier, APCGClassifierCV, APCGRegressor, APCGRegressorCV
from apcg.losses import MulticlassHinge
from apcg.methods.dual.setup_k import SetupK
from apcg.methods.dual.start_k import start
from apcg.methods.dual.tuning import MANY
from apcg.model import LinearModel, encode_classes, encode_labels


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


MODES = [
    {"loss": "logistic"},
    {"loss": "logistic", "multi_class": "multinomial"},
    {"loss": "logistic", "multi_class": "ovr"},
    {"multi_class": "crammer_singer"},
]
WEIGHTS = (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)


def checks():
    """All but the two that compare to 1e-7, which a gap of tol = 1e-6 does not promise."""
    for mode in MODES:
        for estimator, check in estimator_checks_generator(APCGClassifier(**mode)):
            if getattr(check, "func", check) not in WEIGHTS:
                yield pytest.param(estimator, check, id=f"{estimator}-{check.func.__name__}")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("check", WEIGHTS)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_weights_equal_repetition_to_1e_7(mode, check):
    """As for two classes: |w - w*|^2 <= 2 gap/alpha. Of pieces of squares Newton's last step ends
    at the optimum, whatever alpha is.
    """
    alpha = 1e-4 if "multi_class" in mode and "loss" not in mode else 10.0
    check("APCGClassifier", APCGClassifier(**mode, alpha=alpha, tol=1e-15, max_epochs=20_000))


@pytest.mark.parametrize("load", [load_digits, load_iris, load_wine])
def test_the_logistic_classifier_is_that_of_scikit_learn(load):
    X, y = load(return_X_y=True)
    X = X / np.abs(X).max(axis=0).clip(1e-9)
    C, alpha = 1.0, 1 / len(y)
    ours = APCGClassifier("logistic", alpha=alpha, tol=1e-9, random_state=0).fit(X, y)
    theirs = LogisticRegression(C=C, tol=1e-8, max_iter=5000).fit(X, y)
    assert ours.multi_class_ == "multinomial"
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.abs(ours.coef_ - theirs.coef_).max() <= 1e-3
    assert np.abs(ours.intercept_ - theirs.intercept_).max() <= 1e-2
    shares = ours.predict_proba(X)
    assert np.allclose(shares, theirs.predict_proba(X), atol=1e-3)
    assert np.allclose(np.log(shares), ours.predict_log_proba(X), atol=1e-9)


def test_the_modes():
    X, y = digits()
    words = np.array([f"class {k}" for k in y])
    for mode, loss in (("auto", "smoothed_hinge"), ("ovr", "logistic"), ("ovr", "hinge")):
        model = APCGClassifier(loss, multi_class=mode, alpha=1e-2, tol=1e-3, random_state=0)
        model.fit(X, y)
        assert model.multi_class_ == "ovr"
        assert len(model.status_) == 10
    model = APCGClassifier(multi_class="crammer_singer", gamma=0.6, alpha=1e-2, random_state=0)
    model.fit(X, words)
    assert model.multi_class_ == "crammer_singer"
    assert model.score(X, words) > 0.95
    problem = ERM(X, y, MulticlassHinge(0.3), alpha=1e-2, intercept=True)
    value = problem.primal(model.coef_.T.copy(), model.intercept_)
    assert value <= solve(problem, tol=1e-7, random_state=0).primal * (1 + 2e-6)
    two = APCGClassifier("logistic", random_state=0).fit(X[y < 2], y[y < 2])
    assert two.coef_.shape == (1, 64)


@pytest.mark.parametrize(("given", "words"), [
    ({"multi_class": "multinomial"}, "is for loss='logistic'"),
    ({"multi_class": "crammer_singer", "loss": "squared_hinge"}, "is for loss='hinge'"),
    ({"multi_class": "all"}, "multi_class must be one of"),
    ({"loss": "logistic", "method": "adaptive"}, "needs one output"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(given, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=words):
        APCGClassifier(**given).fit(X, y)


def test_penalties_weights_and_warm_starts():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for penalty in ("l1", "elasticnet"):
        model = APCGClassifier("logistic", penalty=penalty, alpha=0.05, random_state=0).fit(X, y)
        assert model.status_.code == "converged"
        assert np.any(model.coef_ == 0)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    a = APCGClassifier("logistic", alpha=0.01, tol=1e-9, random_state=0)
    b = APCGClassifier("logistic", alpha=0.01, tol=1e-9, random_state=0)
    a.fit(X, y, sample_weight=times)
    b.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert np.allclose(a.coef_, b.coef_, atol=1e-3)
    warm = APCGClassifier("logistic", alpha=0.01, warm_start=True, random_state=0).fit(X, y)
    first = warm.n_iter_
    assert warm.set_params(alpha=0.0101).fit(X, y).n_iter_ <= first


def test_searches_on_text_with_twenty_classes():
    X, y = text()
    model = APCGClassifier("logistic", alpha=1e-3, tol=1e-4, random_state=0)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
    grid = GridSearchCV(model, {"alpha": [1e-2, 1e-3]}, cv=3).fit(X, y)
    assert grid.best_score_ > 0.7
    own = APCGClassifierCV("logistic", alphas=[1e-1, 1e-3], cv=3, random_state=0).fit(X, y)
    assert own.multi_class_ == "multinomial"
    assert own.alpha_ == 1e-3
    assert own.coef_.shape == (20, 300)


def test_a_regression_with_many_outputs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 10))
    Y = X @ rng.standard_normal((10, 4)) + 5 + 0.1 * rng.standard_normal((80, 4))
    model = APCGRegressor(alpha=1e-2, tol=1e-11, random_state=0).fit(X, Y)
    ridge = Ridge(alpha=1e-2 * 80).fit(X, Y)
    assert np.allclose(model.coef_, ridge.coef_, atol=1e-4)
    assert np.allclose(model.intercept_, ridge.intercept_, atol=1e-4)
    assert model.predict(X).shape == (80, 4)
    assert model.score(X, Y) > 0.99
    assert APCGRegressor().fit(X, Y[:, :1]).predict(X).shape == (80, 1)
    assert APCGRegressorCV("huber", alphas=3, cv=3, random_state=0).fit(X, Y).score(X, Y) > 0.99


def test_a_model_file_with_many_classes(tmp_path):
    X, y = digits()
    r = solve(ERM(X, y, "multinomial", alpha=1e-3, intercept=True), random_state=0)
    names = np.array([f"digit {k}" for k in range(10)])
    model = LinearModel(r.w, names, "multinomial", r.intercept)
    model.save(tmp_path / "m.npz")
    again = LinearModel.load(tmp_path / "m.npz")
    assert np.array_equal(again.decision(X), X @ r.w + r.intercept)
    assert again.score(X, names[y])[1] > 0.95
    assert np.allclose(again.probabilities(X).sum(axis=1), 1)
    with pytest.raises(DataError, match="labels that the training data has not"):
        again.score(X, y)
    LinearModel(r.w, names[:5], "multinomial", r.intercept).save(tmp_path / "m.npz")
    with pytest.raises(DataError, match="not 10 different"):
        LinearModel.load(tmp_path / "m.npz")


def said(*args):
    """What the command prints, and what it says of errors."""
    done = apcg(*args, inside=True)
    return done.stdout.decode(), done.stderr.decode()


@pytest.mark.slow
def test_the_command(tmp_path, monkeypatch):
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"APCG_{name}_DIR", str(tmp_path))
    X, y = digits()
    file = tmp_path / "digits.libsvm"
    rows = (
        f"{label} " + " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(row) if v)
        for row, label in zip(X[:400], y[:400], strict=True)
    )
    file.write_text("\n".join(rows) + "\n")
    model, loss = tmp_path / "m.npz", ("--loss", "multinomial")
    options = ("--alpha", "1e-3", "--intercept", "--model", model, "--json")
    facts = json.loads(said("train", file, *loss, *options)[0])
    assert facts["outputs"] == 10
    assert len(facts["intercept"]) == 10
    assert facts["scores"]["train"] > 0.95
    hinge = ("--loss", "multiclass_hinge", "--intercept", "--tol", "1e-2", "--test", file)
    assert "intercepts" in said("train", file, *hinge)[0]
    predicted = said("predict", model, file)[0].split()
    assert np.mean(np.array(predicted, dtype=float) == y[:400]) > 0.95
    shares = json.loads(said("predict", model, file, "--probabilities", "--json")[0])
    assert np.allclose(np.sum(shares["predictions"], axis=1), 1)
    methods = ("--methods", "auto,sdca,apcg,newton,adaptive", "--alpha", "1e-2", "--no-plot")
    table, left_out = said("compare", file, *loss, *methods)
    assert "adaptive is left out" in left_out
    assert "sdca" in table
    assert said("info", file, *loss)[0].rstrip().endswith(" dual")


def test_a_fold_with_two_of_three_classes():
    """Its problem has one output, and that of all samples three."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 3
    folds = [(np.flatnonzero(y < 2), np.arange(30)), (np.arange(15), np.arange(15, 30))]
    model = APCGClassifierCV("logistic", alphas=3, cv=folds, random_state=0).fit(X, y)
    assert model.scores_.shape == (3, 2)
    assert model.coef_.shape == (3, 3)


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"cv": [(np.arange(5), np.arange(50))]}, ValueError, "cv gives rows that X"),
    ({"scoring": lambda *_: "a"}, TypeError, "scoring must give a number"),
    ({"n_jobs": "a"}, ValueError, "n_jobs must be None, a number of threads"),
    ({"n_jobs": 0}, ValueError, "n_jobs must be None, a number of threads"),
    ({"alphas": 10**9}, ValueError, "alphas must be at most"),
    ({"tol": "a"}, TypeError, "tol must be a number"),
])  # fmt: skip
def test_a_search_that_cannot_be(options, error, words):
    X, y = np.random.default_rng(0).standard_normal((12, 3)), np.arange(12) % 3
    with pytest.raises(error, match=words):
        APCGClassifierCV("logistic", **{"alphas": 2} | options).fit(X, y)


def test_weights_of_text():
    with pytest.raises(TypeError, match="sample_weight must hold real numbers"):
        APCGClassifier().fit(np.eye(4), [0, 1, 2, 0], sample_weight=list("abcd"))


def test_numbers_beyond_json_are_null(tmp_path, monkeypatch):
    """K numbers for each row, of which some overflow."""
    monkeypatch.chdir(tmp_path)
    model = LinearModel(np.full((1, 2), 1e200) * [1, -1], np.array([0.0, 1.0]), "multinomial")
    model.save("m.npz")
    np.savez("d.npz", X=np.array([[1e200], [1.0]]))
    out = apcg("predict", "m.npz", "d.npz", "--decision", "--json", inside=True).stdout
    found = json.loads(out, parse_constant=pytest.fail)["predictions"]
    assert found[0] == [None, None]
    assert found[1] == [1e200, -1e200]


@pytest.mark.parametrize(("y", "words"), [
    (np.array([0.0, 1.0, np.inf]), "labels that are not finite"),
    (np.array([0.0, 1.0, np.nan]), "labels that are not finite"),
    (np.ones(0), "no samples"),
])  # fmt: skip
def test_labels_that_are_no_classes(y, words):
    for encode in (encode_classes, encode_labels):
        with pytest.raises(DataError, match=words):
            encode(y)


def test_a_model_of_one_class_is_none(tmp_path):
    """Sealed or not."""
    LinearModel(np.ones((3, 1)), np.zeros(1), "multinomial", [0.0]).save(tmp_path / "m.npz")
    with pytest.raises(DataError, match="are not 1 different"):
        LinearModel.load(tmp_path / "m.npz")


def test_auto_says_what_it_chose():
    X, y = text(150, 400, 6)
    codes = np.unique(y, return_inverse=True)[1]
    r = solve(ERM(X, codes, "multinomial", alpha=1e-3), random_state=0)
    assert set(r.trace["method"]) == {"dual"}
    assert r.trace.notes == ["dual: sweeps over blocks of 6 outputs"]
    slow = solve(ERM(*digits(), "multinomial", alpha=1e-5), random_state=0)
    assert slow.mu < 1
    assert slow.trace.notes[0] == "dual: sweeps over blocks of 10 outputs"
    assert slow.trace.notes[1].startswith("momentum: ")
    tall = np.random.default_rng(0).standard_normal((2000, 3))
    squared = ERM(tall, tall @ np.ones((3, 4)), "squared", alpha=1e-3)
    r = solve(squared, random_state=0)
    assert r.trace.notes[0].startswith(str(r.trace["method"][0]))
    lasso = ERM(X, np.eye(6)[codes], "squared", "group", alpha=1e-2)
    assert solve(lasso, random_state=0).trace.notes[0].endswith("chooses rows of W")
    sparse = ERM(X, codes, "multinomial", "l1", alpha=1e-2)
    assert set(solve(sparse, max_epochs=5).trace["method"]) == {"working_set"}
    bounded = ERM(X, codes, "multinomial", "l1", alpha=1e-2, positive=True)
    assert set(solve(bounded, max_epochs=5).trace["method"]) == {"afg"}
    assert solve(ERM(X, codes, "multinomial", alpha=1e-3), "sdca").trace.notes == []


@pytest.mark.slow
def test_cv_with_many_classes_scores_as_solutions_do():
    """The folds end at an estimated gap; what they score is what a solution scores, or nearly."""
    X, y = digits()
    parts = list(StratifiedKFold(3).split(X, y))
    alphas = [1e-1, 1e-3, 1e-5]
    model = APCGClassifierCV("logistic", alphas=alphas, cv=parts, random_state=0).fit(X, y)
    exact = [
        [
            APCGClassifier("logistic", alpha=alpha, random_state=0)
            .fit(X[a], y[a])
            .score(X[b], y[b])
            for a, b in parts
        ]
        for alpha in alphas
    ]
    assert np.abs(model.scores_ - exact).max() <= 0.015
    assert model.alpha_ == alphas[int(np.argmax(np.mean(exact, axis=1)))]
    assert model.status_.code == "converged"
    again = APCGClassifierCV("logistic", alphas=alphas, cv=parts, random_state=0).fit(X, y)
    assert np.array_equal(again.scores_, model.scores_)
    assert np.array_equal(again.coef_, model.coef_)
    alone = sum(
        APCGClassifier("logistic", alpha=alpha, random_state=0).fit(X[a], y[a]).n_iter_
        for alpha in alphas
        for a, _ in parts
    )
    assert model.n_iter_path_.sum() < 0.5 * alone


@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
def test_a_start_of_a_larger_alpha_is_shortened(alpha):
    """x over alpha would be too long a W; D is higher at the start that is taken."""
    X, y = text(300, 400, 6)
    codes = np.unique(y, return_inverse=True)[1]
    easy = solve(ERM(X, codes, "multinomial", alpha=0.1), random_state=0)
    p = ERM(X, codes, "multinomial", alpha=alpha)
    setup = SetupK(p, MANY)
    x = setup.x(start(setup, Start(x=easy.x))[0])
    assert p.dual(x) > p.dual(easy.x)
    same = SetupK(ERM(X, codes, "multinomial", alpha=0.1), MANY)
    assert np.allclose(same.x(start(same, Start(x=easy.x))[0]), easy.x, atol=1e-15)


def test_the_command_speaks_of_its_own_options(tmp_path):
    path = tmp_path / "c.svm"
    path.write_text("1 1:1 2:1\n2 1:2\n3 2:1 3:2\n" * 4)
    told = json.loads(apcg("info", path, "--json", inside=True).stdout)
    assert told["loss"] == "multinomial"
    options = ("--loss", "multinomial", "--max-passes", 1, "--tol", "1e-13", "--json")
    told = json.loads(apcg("train", path, *options, code=3, inside=True).stdout)
    assert told["status"] == "max_epochs"
    assert "--max-passes" in told["message"]
    assert "x0" not in told["message"]
    said = apcg("train", path, "--loss", "softmax", code=2, inside=True).stderr
    assert b"Did you mean 'multinomial'?" in said


def test_an_estimator_speaks_of_its_own_parameters():
    X, y = digits()
    with pytest.warns(ConvergenceWarning):
        model = APCGClassifier("logistic", alpha=1e-6, max_epochs=1).fit(X, y)
    assert "warm_start=True" in model.status_
    assert "x0" not in model.status_
    assert model.status_.code == "max_epochs"


def test_a_search_does_not_speak_of_a_warm_start():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning):
        model = APCGClassifierCV("logistic", alphas=[1e-6], max_epochs=2, cv=2).fit(X, y)
    assert "warm_start" not in model.status_
    assert "max_epochs" in model.status_


@pytest.mark.parametrize("K", [3, 4, 8])
@pytest.mark.parametrize("method", ["sdca", "auto"])
def test_looks_keep_their_own_w(K, method):
    """P of a look is that of its w, also after the sweeps have gone on."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 12)), rng.integers(0, K, 200)
    p, looks = ERM(X, y, "multinomial", alpha=1e-3), []
    solve(p, method, tol=1e-8, max_epochs=30, check_every=1, callback=looks.append, random_state=0)
    assert len(looks) > 2
    for look in looks:
        assert p.primal(look.w) == pytest.approx(look.primal, rel=1e-12)
