"""scikit-learn's own checks, and what it expects besides."""

import pickle
import threading
from itertools import chain

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    estimator_checks_generator,
)

from apcg import APCGClassifier, APCGClassifierCV, APCGRegressor, APCGRegressorCV
from apcg.losses import Hinge, names
from apcg.penalties import Box

ALL = (APCGClassifier, APCGRegressor, APCGClassifierCV, APCGRegressorCV)
#: The default grid passes as well, and takes minutes.
CHECKED = [APCGClassifier(), APCGRegressor(), APCGClassifierCV(alphas=3), APCGRegressorCV(alphas=3)]
WEIGHTS = ("on_dense_data", "on_sparse_data")


def pairs():
    """Every check but the two that compare to 1e-7, which a gap of tol = 1e-6 does not promise.

    Those of the classifier that searches are slow: each fit is three folds of three alphas.
    """
    made = chain.from_iterable(estimator_checks_generator(e) for e in CHECKED)
    slow = {True: (pytest.mark.slow,), False: ()}
    return [
        pytest.param(e, c, marks=slow[isinstance(e, APCGClassifierCV)])
        for e, c in made
        if not name(c).endswith(WEIGHTS)
    ]


def name(check):
    return getattr(check, "func", check).__name__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
@pytest.mark.parametrize(
    ("estimator", "check"), pairs(), ids=lambda p: str(p) if hasattr(p, "fit") else name(p)
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("cls", "loss"),
    [
        *((APCGClassifier, loss) for loss in names(margin=True)),
        *((APCGRegressor, loss) for loss in names(margin=False)),
        (APCGClassifierCV, "smoothed_hinge"),
        (APCGRegressorCV, "squared"),
    ],
)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_equal_repetition_to_1e_7(cls, loss, kind):
    """|w - w*|^2 <= 2 gap/alpha: alpha = 10 and tol = 1e-15 are enough, for every loss."""
    grid = {"alphas": [10.0, 100.0]} if cls.__name__.endswith("CV") else {"alpha": 10.0}
    check = {
        "on_dense_data": check_sample_weight_equivalence_on_dense_data,
        "on_sparse_data": check_sample_weight_equivalence_on_sparse_data,
    }[kind]
    check(cls.__name__, cls(loss, tol=1e-15, max_epochs=20_000, **grid))


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def test_integer_weights_equal_repetition_to_the_certificate(cancer):
    X, y = cancer
    s = np.random.default_rng(0).integers(0, 4, len(y))
    for class_weight in (None, "balanced", {0: 2.0, 1: 0.5}):
        model = APCGClassifier("logistic", class_weight=class_weight, alpha=1e-3, random_state=0)
        a = clone(model).fit(X, y, sample_weight=s)
        b = clone(model).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
        assert a.trace_["primal"][-1] == pytest.approx(b.trace_["primal"][-1], rel=2e-6)
        radius = np.sqrt(2 * a.duality_gap_ / 1e-3) + np.sqrt(2 * b.duality_gap_ / 1e-3)
        assert np.linalg.norm(a.coef_ - b.coef_) <= radius


def test_attributes(cancer):
    X, y = cancer
    m = APCGClassifier("logistic", alpha=1e-3, random_state=0).fit(X, y)
    assert m.coef_.shape == (1, 30)
    assert m.intercept_.shape == (1,)
    assert m.dual_coef_.shape == (1, len(y))
    assert 0 <= m.duality_gap_ <= 1e-6 * m.trace_["primal"][-1]
    assert m.status_.code == "converged"
    assert m.n_iter_ == m.trace_["epoch"][-1]
    signed = m.dual_coef_[0] * np.where(y == 1, 1, -1)
    assert abs(signed.sum()) < 1e-9
    assert np.allclose(signed @ X / (1e-3 * len(y)), m.coef_[0], atol=1e-2)
    assert m.score(X, y) > 0.98
    p = m.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.allclose(np.log(p), m.predict_log_proba(X), atol=1e-6)
    assert sp.issparse(m.sparsify().coef_)
    assert m.densify().score(X, y) > 0.98


def test_probabilities_are_for_the_logistic_loss_only(cancer):
    m = APCGClassifier("hinge")
    assert not hasattr(m, "predict_proba")
    assert hasattr(m.set_params(loss="logistic"), "predict_proba")
    with pytest.raises(AttributeError):
        _ = APCGClassifier("squared_hinge").predict_log_proba


def test_more_than_two_classes_and_threads():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    labels = np.array([f"digit {k}" for k in range(10)])[y]
    m = APCGClassifier("logistic", alpha=1e-4, multi_class="ovr", random_state=3).fit(X, labels)
    two = clone(m).set_params(n_jobs=2).fit(X, labels)
    assert np.array_equal(m.coef_, two.coef_)
    assert m.coef_.shape == (10, 64)
    assert m.duality_gap_.shape == (10,)
    assert len(m.status_) == len(m.trace_) == 10
    assert m.score(X, labels) > 0.95
    p = m.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.allclose(np.exp(m.predict_log_proba(X)), p)
    k = list(m.classes_).index("digit 8")
    alone = APCGClassifier("logistic", alpha=1e-4, random_state=0).fit(X, labels == "digit 8")
    assert np.allclose(alone.coef_[0], m.coef_[k], atol=0.05)


def test_two_fits_at_once_give_what_one_after_the_other_gives(cancer):
    X, y = cancer
    models = [APCGClassifier(alpha=a, random_state=0) for a in (1e-3, 1e-4)]
    alone = [clone(m).fit(X, y).coef_ for m in models]
    threads = [threading.Thread(target=m.fit, args=(X, y)) for m in models]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(m.coef_, c) for m, c in zip(models, alone, strict=True))


def test_no_convergence_is_a_warning_that_helps(cancer):
    with pytest.warns(ConvergenceWarning, match=r"gap is .* after 2 passes.*Raise max_epochs"):
        APCGClassifier(alpha=1e-6, max_epochs=2, method="dual").fit(*cancer)
    with pytest.warns(ConvergenceWarning, match=r"3 of 3 problems.* for class"):
        APCGClassifier(alpha=1e-6, max_epochs=2).fit(cancer[0], np.arange(569) % 3)
    with pytest.warns(ConvergenceWarning, match=r"There is no minimum.*Take a penalty"):
        APCGClassifier("logistic", penalty=None).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


def test_warm_start(cancer):
    X, y = cancer
    m = APCGClassifier("logistic", alpha=1e-4, warm_start=True, random_state=0).fit(X, y)
    cold = m.n_iter_
    assert m.fit(X, y).n_iter_ < cold / 2
    m.set_params(alpha=0.8e-4).fit(X, y)
    m.fit(X[:400], y[:400])  # other samples: from the last w
    assert m.dual_coef_.shape == (1, 400)
    m.fit(X[:, :5], y)  # other features: from nothing
    m.fit(X[:, :5], y, sample_weight=np.arange(len(y)))
    m.sparsify().fit(X[:, :5], y)
    Xd, yd = load_diabetes(return_X_y=True)
    r = APCGRegressor(alpha=1e-4, warm_start=True, random_state=0).fit(Xd, yd)
    cold = r.n_iter_
    assert r.fit(Xd, yd).n_iter_ < cold / 2
    lasso = APCGRegressor(penalty="l1", alpha=0.1, warm_start=True, random_state=0)
    lasso.fit(Xd, yd).fit(Xd[:300], yd[:300])


@pytest.mark.parametrize("loss", ["smoothed_hinge", "hinge", "squared_hinge", "logistic"])
def test_grid_search(cancer, loss):
    grid = {"alpha": [1e-1, 1e-2], "fit_intercept": [True, False]}
    search = GridSearchCV(APCGClassifier(loss, tol=1e-4), grid, cv=3, error_score="raise")
    assert search.fit(*cancer).best_score_ > 0.9


def test_pipelines():
    X, y = load_breast_cancer(return_X_y=True)
    sparse = make_pipeline(StandardScaler(with_mean=False), APCGClassifier(alpha=1e-2))
    assert sparse.fit(sp.csr_array(X), y).score(X, y) > 0.95
    texts = ["good film", "bad film", "a good book", "what a bad book", "so good", "so bad"]
    labels = ["good", "bad"] * 3
    words = make_pipeline(TfidfVectorizer(), APCGClassifier("logistic", alpha=1e-3))
    assert words.fit(texts, labels).predict(["good good"]) == ["good"]
    union = FeatureUnion(
        [("words", TfidfVectorizer()), ("letters", TfidfVectorizer(analyzer="char"))]
    )
    assert make_pipeline(union, APCGClassifier()).fit(texts, labels).score(texts, labels) == 1


def test_meta_estimators(cancer):
    X, y = cancer
    calibrated = CalibratedClassifierCV(APCGClassifier("hinge", alpha=1e-2, tol=1e-4), cv=3)
    assert calibrated.fit(X, y).predict_proba(X).shape == (len(y), 2)
    Xd, yd = load_digits(return_X_y=True)
    rest = OneVsRestClassifier(APCGClassifier(alpha=1e-2), n_jobs=2)
    assert rest.fit(Xd / 16, yd).score(Xd / 16, yd) > 0.9
    scores = cross_val_score(APCGClassifier(alpha=1e-2), X, y, n_jobs=2, error_score="raise")
    assert scores.min() > 0.9


def test_persistence(cancer, tmp_path):
    X, y = cancer
    m = APCGClassifier("logistic", alpha=1e-2, random_state=0).fit(X, y)
    joblib.dump(m, tmp_path / "model.joblib")
    for copy in (joblib.load(tmp_path / "model.joblib"), pickle.loads(pickle.dumps(m))):
        assert np.array_equal(copy.predict_proba(X), m.predict_proba(X))
        assert copy.status_.code == "converged"
    joblib.dump(X, tmp_path / "X.joblib")
    mapped = joblib.load(tmp_path / "X.joblib", mmap_mode="r")
    assert np.array_equal(clone(m).fit(mapped, y).coef_, m.coef_)
    assert "APCGClassifier" in m._repr_html_()


def test_frames_and_names(cancer):
    X, y = cancer
    names = [f"f{k}" for k in range(30)]
    frame = pd.DataFrame(X, columns=names)
    m = APCGClassifier(alpha=1e-2, random_state=0).fit(frame, pd.Series(y))
    assert list(m.feature_names_in_) == names
    assert m.n_features_in_ == 30
    with pytest.raises(ValueError, match="feature names"):
        m.predict(frame[names[::-1]])
    pl = pytest.importorskip("polars")
    again = APCGClassifier(alpha=1e-2, random_state=0).fit(pl.DataFrame(X, schema=names), y)
    assert np.array_equal(again.coef_, m.coef_)
    pipe = make_pipeline(StandardScaler(), m).set_output(transform="pandas")
    assert pipe.fit(frame, y).score(frame, y) > 0.9


def test_metadata_routing(cancer):
    X, y = cancer
    s = np.random.default_rng(0).uniform(0, 1, len(y))
    with config_context(enable_metadata_routing=True):
        model = APCGClassifier(alpha=1e-2).set_fit_request(sample_weight=True)
        scores = cross_val_score(
            model.set_score_request(sample_weight=False), X, y, params={"sample_weight": s}
        )
        assert scores.min() > 0.9
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        cv = APCGClassifierCV(alphas=[1e-2, 1e-3], scoring=scorer)
        cv.set_fit_request(sample_weight=True).fit(X, y, sample_weight=s)
        grouped = APCGClassifierCV(alphas=[1e-2], cv=GroupKFold(3))
        grouped.fit(X, y, groups=np.arange(len(y)) % 7)
        assert grouped.scores_.shape == (1, 3)
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        APCGClassifierCV(alphas=[1e-2]).fit(X, y, groups=np.arange(len(y)))


def test_bad_parameters_say_what_to_do(cancer):
    X, y = cancer
    for params, words in (
        ({"loss": "squared"}, "loss must be one of"),
        ({"penalty": "l3"}, "penalty must be one of"),
        ({"alpha": -1.0}, "alpha must be in"),
        ({"loss": "hinge", "penalty": Box(-1.0, 1.0)}, "not smooth"),
        ({"method": "adam"}, "method must be one of"),
        ({"max_epochs": 0}, "max_epochs must be at least 1"),
        ({"class_weight": "even"}, "class_weight"),
    ):
        with pytest.raises(ValueError, match=words):
            APCGClassifier(**params).fit(X, y)
    with pytest.raises(TypeError, match="fit_intercept"):
        APCGClassifier(fit_intercept="yes").fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        APCGClassifier().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="positive weight"):
        APCGClassifier().fit(X, np.arange(len(y)) % 3, sample_weight=np.arange(len(y)) % 3 > 0)
    with pytest.raises(ValueError, match="residuals"):
        APCGRegressor(Hinge()).fit(X, y)
    with pytest.raises(ValueError, match="alphas must be positive"):
        APCGRegressorCV(alphas=[1.0, 0.0]).fit(X, y)


def test_constant_and_empty_columns_and_odd_inputs(cancer):
    X, y = cancer
    X = np.column_stack([X[:, :5], np.ones(len(y)), np.zeros(len(y))])
    base = APCGClassifier("logistic", alpha=1e-2, random_state=0)
    m = clone(base).fit(X, y)
    assert m.coef_[0, -1] == 0
    assert abs(m.coef_[0, -2]) < 1e-2  # the intercept does its work for nothing
    S = sp.csr_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    for other in (X.astype(np.float32), np.asfortranarray(X), S, sp.csc_matrix(X), X.tolist()):
        assert np.allclose(clone(base).fit(other, y).coef_, m.coef_, atol=1e-3)
    clone(base).set_params(random_state=np.random.default_rng(0)).fit(X, y)
    clone(base).set_params(random_state=np.random.RandomState(0)).fit(X, y)


def test_callbacks_of_scikit_learn(cancer):
    pytest.importorskip("sklearn.callback")
    X, y = cancer
    seen = []

    class Recorder:
        def setup(self, estimator, context):
            seen.append("setup")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            seen.append((context.task_name, fitted_estimator))
            return context.task_name == "pass" and context.task_id == 4

        def teardown(self, estimator, context):
            seen.append("teardown")

    m = APCGClassifier(alpha=1e-4, method="dual", random_state=0).set_callbacks(Recorder())
    m.fit(X, y)
    assert (seen[0], seen[-1]) == ("setup", "teardown")
    passes = [f for s in seen if s not in ("setup", "teardown") for n, f in [s] if n == "pass"]
    assert len(passes) == 5
    assert m.n_iter_ == 5
    assert m.status_.code == "callback"
    assert passes[-1].score(X, y) > 0.8
    seen.clear()
    APCGRegressorCV(alphas=[1e-1, 1e-2], cv=3).set_callbacks(Recorder()).fit(X, y)
    names = [s[0] for s in seen if s not in ("setup", "teardown")]
    assert names.count("alpha") == 6
    assert names[-1] == "fit"


def test_a_pipeline_says_why_there_are_no_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), APCGClassifier()).fit(X, y)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    said, error = [], caught.value
    while error is not None:
        said.append(str(error))
        error = error.__cause__
    assert any("probabilities are for loss='logistic'" in line for line in said)
