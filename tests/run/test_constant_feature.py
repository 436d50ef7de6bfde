"""An X with a constant last column that is stored nowhere, whose weight has a penalty."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, linear_model, losses, solve
from apcg.data.check import by_row
from apcg.methods import registry

CONSTANT = 3.0
MARGINS = ["squared_hinge", "hinge", "logistic"]
RESIDUALS = ["squared", "epsilon_insensitive"]
#: Methods of the paper and of others that need many passes: an honest gap is enough there.
SLOW = ("smoothing", "sdca", "apcg", "afg", "adaptive", "accelerated_sdca", "orthogonal")


def pair(shape, sparse, loss, alpha, K=1):
    """The same problem with the column stored, and with the column as a number."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal(shape)
    if sparse:
        X = sp.random(*shape, 0.2, "csr", random_state=6)
    z = X @ rng.standard_normal((shape[1], K)) + 0.5 * rng.standard_normal((shape[0], K)) + 0.5
    y = np.where(z[:, 0] > 0, 1.0, -1.0) if loss in MARGINS else z[:, 0]
    if K > 1:
        y = z.argmax(axis=1)
    column = np.full((shape[0], 1), CONSTANT)
    stored = sp.hstack([X, column], format="csr") if sparse else np.hstack([X, column])
    X = by_row(X, "X").bordered(CONSTANT)
    s = rng.uniform(0.2, 2.0, shape[0])
    return [ERM(each, y, loss, "l2", alpha, sample_weight=s) for each in (stored, X)]


@pytest.mark.parametrize("loss", [*MARGINS, *RESIDUALS])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("shape", [(200, 12), (40, 90)], ids=["tall", "wide"])
def test_every_method_that_takes_it_has_the_same_optimum(shape, sparse, loss):
    stored, problem = pair(shape, sparse, loss, 0.05)
    best = solve(stored, tol=1e-10)
    names = registry.fitting(problem)
    assert {"auto", "dual"} <= set(names)
    for name in names:
        r = solve(problem, method=name, tol=1e-7, max_epochs=2000, random_state=0)
        assert stored.primal(r.w) == pytest.approx(r.primal, rel=1e-12)
        assert r.dual <= best.primal * (1 + 1e-12)
        assert r.converged or name in SLOW, (name, r.status)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", [losses.MulticlassHinge(0.0, 4), losses.Multinomial(4)])
def test_many_outputs(loss, sparse):
    stored, problem = pair((150, 20), sparse, loss, 0.01, K=4)
    best = solve(stored, tol=1e-9)
    for name in ("auto", "dual"):
        r = solve(problem, method=name, tol=1e-6, max_epochs=3000, random_state=0)
        assert r.converged
        assert stored.primal(r.w) == pytest.approx(best.primal, rel=1e-6)


def test_a_method_of_stored_columns_refuses_it():
    _, problem = pair((60, 8), True, "logistic", 0.1)
    with pytest.raises(ValueError, match="needs an X whose columns are all stored"):
        solve(problem, method="newton_ids")


L = linear_model
MODELS = {
    "squared hinge": L.LinearSVC(C=0.01, tol=1e-3),
    "hinge": L.LinearSVC(loss="hinge", C=1e-4, tol=1e-3),
    "crammer_singer": L.LinearSVC(multi_class="crammer_singer", C=0.01, tol=1e-3),
    "three classes": L.LinearSVC(C=0.01, tol=1e-3),
    "svr": L.LinearSVR(epsilon=0.1, C=0.01, tol=1e-3),
    "svr squared": L.LinearSVR(loss="squared_epsilon_insensitive", C=0.01, tol=1e-3),
    "logistic": L.LogisticRegression(solver="liblinear", C=0.01, tol=1e-3),
}


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", MODELS)
def test_a_penalised_intercept_takes_no_copy_of_X(name, sparse):
    """The peak is that of no intercept; a copy of X, which is most of the memory, would show."""
    rng = np.random.default_rng(0)
    n, d = (1500, 2000) if sparse else (4500, 250)
    X = sp.random(n, d, 0.25, "csr", random_state=0) if sparse else rng.standard_normal((n, d))
    size = X.data.nbytes + X.indices.nbytes if sparse else X.nbytes
    z = X @ rng.standard_normal((d, 3))
    z += z.std() * rng.standard_normal(z.shape)
    classes = 3 if name in ("three classes", "crammer_singer") else 2
    y = z[:, 0] if name.startswith("svr") else z[:, :classes].argmax(axis=1)

    def peak(fit_intercept):
        model = type(MODELS[name])(**MODELS[name].get_params())
        tracemalloc.start()
        model.set_params(fit_intercept=fit_intercept).fit(X, y)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert "converged" in str(model.status_)
        return most

    assert peak(True) < peak(False) + 0.5 * size
