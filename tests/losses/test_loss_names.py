"""What a loss of one's own may say, the labels it takes, and the register of names."""

import math
import pickle
import re

import numpy as np
import pytest
from erm_problems import Own, data

from apcg import ERM, losses, solve
from apcg.estimators import APCGClassifier, APCGRegressor


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (Own((0.2, 1.0), 1.0), "lower <= 0 <= upper"),
        (Own((0.0, 0.0), 1.0), "not both 0"),
        (Own((0.0, 1.0), -1.0), "gamma >= 0"),
        (Own((0.0, 1.0), 1.0, epsilon=-0.1), "epsilon >= 0"),
        (Own((0.0, math.nan), 1.0), "lower <= 0 <= upper"),
        (Own((0.0, math.inf), 0.0), "must have a bounded domain"),
    ],
    ids=repr,
)
def test_a_theta_that_is_no_loss(loss, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        losses.by_name(loss)


def test_a_theta_that_the_kernels_would_read_past():
    class Short(losses.Loss):
        theta = (0.0, 1.0, 2.0)

    with pytest.raises(ValueError, match=re.escape("must have 5 numbers, got (0.0, 1.0, 2.0)")):
        losses.by_name(Short())
    with pytest.raises(ValueError, match="must have 5 numbers"):
        Short().value(0.0)


def test_a_theta_that_says_another_domain():
    class Two(losses.Loss):
        theta = (0.0, 0.0, 1.0, -2.0, 2.0)
        gamma, domain = 1.0, (-1.0, 1.0)

    with pytest.raises(ValueError, match="they must be the same"):
        losses.by_name(Two())


def test_the_compiled_loss_is_made_once_and_follows_its_parameters():
    loss = losses.Huber(1.0)
    assert loss.arrays is loss.arrays
    assert loss.arrays is losses.Huber(1.0).arrays
    assert pickle.loads(pickle.dumps(loss)).arrays is loss.arrays
    assert loss.value(3.0) == 2.5
    loss.delta = 2.0
    assert loss.value(3.0) == 4.0
    assert repr(loss) == "Huber(delta=2.0)"


# ---- labels ---------------------------------------------------------------------------------


def test_good_labels_are_not_sorted(monkeypatch):
    def unique(*args, **rest):
        raise AssertionError("sorted")

    y = np.where(np.arange(100) % 3, 1, -1)
    monkeypatch.setattr(np, "unique", unique)
    monkeypatch.setattr(np, "isin", unique)
    labels = losses.Hinge().check_labels(y, 100)
    np.testing.assert_array_equal(labels, y)
    assert ERM(np.eye(100), y, "hinge", intercept=True).intercept


@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([1, -1, 0, 1], "takes the labels -1 and 1 only, got -1, 0, 1; map your classes"),
        ([5, 4, 3, 2, 1, 0, -1], "got -1, 0, 1, 2, 3, ...; map"),
        ([0.5, -0.5, 1.0, -1.0], "got -1, -0.5, 0.5, 1; map"),
        ([-1, -1], "y has only one class (-1): there is nothing to separate"),
        ([1, 1], "y has only one class (1)"),
    ],
)
def test_labels_that_are_not_two_classes(y, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        losses.Hinge().check_labels(y, len(y))


# ---- names ----------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(losses.registry, "_REGISTERED", dict(losses.registry._REGISTERED))


def test_names_are_of_margins_or_of_residuals():
    of_margins, of_residuals = losses.names(margin=True), losses.names(margin=False)
    assert {"hinge", "smoothed_hinge", "squared_hinge", "logistic"} <= set(of_margins)
    assert {"squared", "huber", "epsilon_insensitive"} <= set(of_residuals)
    assert all(losses.by_name(name).margin for name in of_margins)
    assert not any(losses.by_name(name).margin for name in of_residuals)
    assert set(losses.names()) == {*of_margins, *of_residuals, *losses.names_of_classes()}


def test_a_registered_loss_has_a_name_everywhere(registry):
    @losses.register
    class Quantile(losses.Loss):
        name = "quantile"
        margin = False
        gamma = 1e-2

        def __init__(self, q=0.8):
            self.q = q

        @property
        def domain(self):
            return self.q - 1, self.q

    assert losses.names(margin=False)[-1] == "quantile"
    assert "quantile" not in losses.names(margin=True)
    assert losses.by_name("quantile") == Quantile(0.8)
    X, y = data("huber")
    p, q = (ERM(X, y, loss, alpha=1e-3) for loss in ("quantile", Quantile()))
    assert p.primal(np.ones(12)) == q.primal(np.ones(12))
    r = solve(p, tol=1e-8, random_state=0)
    assert r.converged
    model = APCGRegressor("quantile", alpha=1e-3, fit_intercept=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, r.w, atol=1e-3)
    with pytest.raises(ValueError, match="loss must be one of 'hinge'"):
        APCGClassifier("quantile").fit(X, y > 0)
    assert losses.register(Quantile) is Quantile  # again, as a notebook does


def test_what_cannot_be_registered(registry):
    class Anonymous(losses.Loss):
        pass

    class Bare(losses.Loss):
        name = "bare"

        def __init__(self, q):
            self.domain = (q - 1, q)

    class Other(losses.Loss):
        name = "hinge"

    for wrong, kind, text in (
        (3, TypeError, "takes a subclass of apcg.losses.Loss, OwnLoss or OutputsLoss, got 3"),
        (losses.Hinge(), TypeError, "takes a subclass"),
        (dict, TypeError, "takes a subclass"),
        (Anonymous, TypeError, "must have a class attribute `name`"),
        (Bare, TypeError, "give its parameters defaults"),
        (Other, ValueError, "there is a loss 'hinge' already, Hinge; take another name"),
    ):
        with pytest.raises(kind, match=re.escape(text)):
            losses.register(wrong)
    known = (*losses.names(margin=True), *losses.names(margin=False), *losses.names_of_classes())
    assert losses.names() == known
    assert isinstance(losses.by_name("hinge"), losses.Hinge)
