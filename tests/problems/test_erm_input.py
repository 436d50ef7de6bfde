"""What ERM and solve accept, what they refuse, and what they leave alone."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from erm_problems import data, text_like

from apcg import ERM, losses, solve
from apcg.data import views
from apcg.penalties import L1, Box

X, Y = data("logistic")
D = X.toarray()
REAL = np.linspace(-1, 1, 40)


def with_entry(value):
    bad = D.copy()
    bad[3, 2] = value
    return bad


BAD = [
    (lambda: ERM(D, REAL), ValueError, "takes the labels -1 and 1 only, got -1, -0.948718"),
    (lambda: ERM(D, np.where(Y > 0, 1, 0)), ValueError, "map your classes to -1 and 1"),
    (lambda: ERM(D, np.ones(40)), ValueError, "y has only one class (1)"),
    (
        lambda: ERM(D, np.array(["a", "b"] * 20)),
        TypeError,
        "got dtype <U1; map your classes to -1 and 1",
    ),
    (
        lambda: ERM(D, Y[:-1]),
        ValueError,
        "y must have length 40 (one entry for each row of X), got length 39",
    ),
    (
        lambda: ERM(D, Y[:, None]),
        ValueError,
        "y must be a vector of length 40, got an array of shape (40, 1)",
    ),
    (lambda: ERM(D, np.where(Y > 0, np.nan, 1)), ValueError, "y contains"),
    (
        lambda: ERM(with_entry(np.nan), Y),
        ValueError,
        "X contains 1 NaN or infinite entry (the first is nan at row 3, column 2)",
    ),
    (lambda: ERM(sp.csr_array(with_entry(np.inf)), Y), ValueError, "X contains 1 NaN or infinite"),
    (lambda: ERM(D[:0], Y[:0]), ValueError, "X is empty: its shape is (0, 12)"),
    (lambda: ERM(D[:, :0], Y), ValueError, "X is empty: its shape is (40, 0)"),
    (lambda: ERM(D[0], Y), ValueError, "X must be a matrix with two dimensions"),
    (lambda: ERM(D.astype(complex), Y), TypeError, "X must hold real numbers"),
    (lambda: ERM(D.astype(object), Y), TypeError, "X must hold real numbers"),
    (lambda: ERM(D, Y, alpha=-1e-3), ValueError, "alpha must be in [0, inf), got -0.001"),
    (lambda: ERM(D, Y, alpha=np.nan), ValueError, "alpha must be in"),
    (lambda: ERM(D, Y, alpha="1"), TypeError, "alpha must be a number"),
    (lambda: ERM(D, Y, losses.Logistic), ValueError, "Make an object of the class: Logistic(...)"),
    (lambda: ERM(D, Y, "Logistic"), ValueError, "Did you mean 'logistic'?"),
    (lambda: ERM(D, Y, positive="yes"), TypeError, "positive must be True, False or a pair"),
    (lambda: ERM(D * 1e200, Y), ValueError, "squared norm overflows; scale its features"),
    (lambda: solve(D, Y), TypeError, "make one: solve(ERM(X, y, loss, penalty, alpha))"),
    (lambda: ERM(D, Y, "logstic"), ValueError, "Did you mean 'logistic'?"),
    (lambda: ERM(D, Y, "log_loss"), ValueError, "Did you mean 'logistic'?"),
    (lambda: ERM(D, Y, "softmax"), ValueError, "Did you mean 'multinomial'?"),
    (lambda: ERM(D, Y, "crammer_singer"), ValueError, "Did you mean 'multiclass_hinge'?"),
    (lambda: ERM(D, Y, "squared_error"), ValueError, "Did you mean 'squared'?"),
    (lambda: ERM(D, Y, "loss"), ValueError, "loss must be one of 'hinge', 'smoothed_hinge'"),
    (
        lambda: ERM(D, Y, penalty="l3"),
        ValueError,
        "penalty must be one of 'l2', 'l1', 'elasticnet'",
    ),
    (lambda: ERM(D, Y, penalty="elastic_net"), ValueError, "Did you mean 'elasticnet'?"),
    (lambda: ERM(D, Y, penalty="elasticnet", l1_ratio=1.5), ValueError, "l1_ratio must be in"),
    (
        lambda: ERM(D, Y, "hinge", Box(-1.0, 1.0)),
        ValueError,
        "with an L1 part for each feature",
    ),
    (
        lambda: ERM(D, REAL, "epsilon_insensitive", L1(np.eye(D.shape[1])[0])),
        ValueError,
        "is not smooth and penalty",
    ),
    (lambda: ERM(D, Y, "hinge", "l1").L, ValueError, "there are no constants L_i"),
    (lambda: solve(ERM(D, Y, "hinge", "l1"), "sdca"), ValueError, "strongly convex"),
    (
        lambda: ERM(D, Y, sample_weight=-np.ones(40)),
        ValueError,
        "sample_weight must not be negativ",
    ),
    (lambda: ERM(D, Y, sample_weight=np.zeros(40)), ValueError, "sample_weight is zero everywhere"),
    (lambda: ERM(D, Y, sample_weight=np.ones(3)), ValueError, "sample_weight must have length 40"),
    (lambda: ERM(D, Y, sample_weight=np.full(40, np.nan)), ValueError, "sample_weight contains"),
    (
        lambda: solve(ERM(D, Y), "sgd"),
        ValueError,
        "method must be one of 'auto', 'apcg', 'sdca', 'afg'",
    ),
    (lambda: solve(D), TypeError, "problem must be an apcg.ERM, got ndarray"),
    (lambda: solve(ERM(D, Y), tol=-1), ValueError, "tol must be in [0, inf), got -1"),
    (lambda: solve(ERM(D, Y), max_epochs=1.5), TypeError, "max_epochs must be an integer"),
    (lambda: solve(ERM(D, Y), check_every=0), ValueError, "check_every must be at least 1, got 0"),
    (lambda: solve(ERM(D, Y), sampling="cyclic"), ValueError, "sampling must be one of"),
    (
        lambda: solve(ERM(D, Y), x0=np.zeros(3)),
        ValueError,
        "x0 must have length 40 (one entry for each row of X), got length 3",
    ),
    (lambda: solve(ERM(D, Y), "apcg", mu=2), ValueError, "mu must be in [0, 1], got 2"),
    (lambda: solve(ERM(D, Y), "sdca", mu=0.1), ValueError, 'parameter of method "apcg" only'),
    (lambda: solve(ERM(D, Y, "hinge"), "afg"), ValueError, "needs a smooth loss"),
    (
        lambda: ERM(D, Y).primal(np.zeros(3)),
        ValueError,
        "w must have length 12 (one entry for each column of X)",
    ),
    (
        lambda: ERM(D, Y).dual(np.zeros(3)),
        ValueError,
        "x must have length 40 (one entry for each row of X)",
    ),
    (lambda: ERM(D, Y, penalty="l1").gap(np.zeros(40)), ValueError, "omega(x) has no meaning"),
]


@pytest.mark.parametrize(("make", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_bad_input_has_a_clear_error(make, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        make()


def fingerprint(m):
    if sp.issparse(m) and m.format == "coo":
        return [a.tobytes() for a in (m.data, m.row, m.col)]
    if sp.issparse(m):
        return [a.tobytes() for a in (m.data, m.indices, m.indptr)]
    return [np.asarray(m).tobytes()]


def matrices(tmp_path):
    csr = sp.csr_array(D)
    unsorted = sp.csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape, copy=True)
    for a, b in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[a:b] = unsorted.indices[a:b][::-1].copy()
        unsorted.data[a:b] = unsorted.data[a:b][::-1].copy()
    unsorted.has_sorted_indices = False
    doubled = sp.csr_array(
        (np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), csr.indptr * 2), shape=csr.shape
    )
    wide = sp.csr_array(D)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    frozen = D.copy()
    frozen.flags.writeable = False
    np.save(tmp_path / "X.npy", D)
    readonly = sp.csr_array(D)
    for part in (readonly.data, readonly.indices, readonly.indptr):
        part.flags.writeable = False
    return {
        "dense": D,
        "Fortran": np.asfortranarray(D),
        "read-only": frozen,
        "memory-mapped": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "big-endian": D.astype(">f8"),
        "csr": csr,
        "csr read-only": readonly,
        "csr int64": wide,
        "csr unsorted": unsorted,
        "csr duplicates": doubled,
        "csc": sp.csc_matrix(D),
        "coo": sp.coo_matrix(D),
    }


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("method", ["apcg", "sdca", "afg"])
def test_every_form_of_x_gives_the_same_and_is_left_alone(tmp_path, method, penalty):
    answers = {}
    for name, M in matrices(tmp_path).items():
        before, y = fingerprint(M), Y.copy()
        p = ERM(M, y, "logistic", penalty, 1e-2)
        answers[name] = solve(p, method, tol=1e-4, max_epochs=500, random_state=0)
        assert fingerprint(M) == before, name
        np.testing.assert_array_equal(y, Y)
    for r in answers.values():
        np.testing.assert_allclose(r.w, answers["dense"].w, rtol=1e-6, atol=1e-9)
    # the same arithmetic in the same order: the same bits
    np.testing.assert_array_equal(answers["csr"].w, answers["csr int64"].w)
    np.testing.assert_array_equal(answers["dense"].w, answers["Fortran"].w)
    np.testing.assert_array_equal(answers["dense"].w, answers["memory-mapped"].w)


@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
def test_usable_data_is_not_copied(make):
    M = make(D)
    p = ERM(M, Y)
    assert np.shares_memory(p.samples.view(views.arrays)[0], M.data if sp.issparse(M) else M)


@pytest.mark.parametrize("make", [sp.csr_array, np.asarray])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "logistic", "squared"])
def test_float32_reaches_a_tight_gap_of_its_own(make, loss):
    """The state is float64, so a float32 X has an optimum known as well as any other."""
    p = ERM(make(D.astype(np.float32)), Y, loss, "l2", 1e-3)
    assert p.samples.stored.dtype == np.float32
    r = solve(p, tol=1e-8, max_epochs=20_000, random_state=0)
    assert r.converged
    assert p.primal(r.w) - p.dual(r.x) <= 1e-8 * r.primal
    exact = ERM(D.astype(np.float32).astype(np.float64), Y, loss, "l2", 1e-3)
    assert exact.primal(r.w) == pytest.approx(r.primal, rel=1e-12)


def test_zero_rows_and_columns():
    Z = D.copy()
    Z[5] = Z[7] = 0
    Z[:, 3] = 0
    for loss in ("hinge", "smoothed_hinge", "logistic", "squared_hinge"):
        for penalty in ("l2", "elasticnet", "l1"):
            if loss == "hinge" and penalty == "l1":
                continue
            p = ERM(sp.csr_array(Z), Y, loss, penalty, 0.05)
            r = solve(p, "sdca", tol=1e-5, max_epochs=20_000, random_state=0)
            assert r.converged
            assert r.w[3] == 0
            if loss == "hinge":
                assert r.x[5] == r.x[7] == 1  # 1 - 0 is a loss of slope 1 whatever w is


def test_all_rows_zero():
    p = ERM(np.zeros((4, 2)), np.array([1, -1, 1, 1.0]), "smoothed_hinge", alpha=0.1)
    r = solve(p, random_state=0)
    assert r.converged
    assert r.primal == pytest.approx(0.5)


def test_one_sample_of_each_class_and_one_feature():
    p = ERM(np.array([[1.0], [-2.0]]), np.array([1.0, -1.0]), "squared_hinge", alpha=0.3)
    for method in ("apcg", "sdca", "afg"):
        assert solve(p, method, tol=1e-10, random_state=0).converged


def test_one_regression_sample():
    """n = 1: mu may be anything up to 1."""
    p = ERM(np.array([[3.0, 1.0]]), np.array([2.0]), "squared", alpha=0.7)
    r = solve(p, tol=1e-12, random_state=0)
    w = np.linalg.solve(np.outer([3, 1], [3, 1]) + 0.7 * np.eye(2), 2 * np.array([3, 1.0]))
    np.testing.assert_allclose(r.w, w, rtol=1e-5)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("method", ["apcg", "sdca"])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "logistic"])
@pytest.mark.parametrize("weighted", [False, True])
def test_memory(method, loss, weighted):
    """A CSR float64 X costs under 10 (n + d) doubles on top of itself, at the peak.

    Sample weights add themselves, a sigma_i for each sample, and an array while P(0) is computed.
    """
    M, y = text_like(n=20_000, d=5_000, nonzeros=60)
    M.indices[:] = np.random.default_rng(0).permutation(5_000)[M.indices]
    M = sp.csr_array((M.data, M.indices, M.indptr), shape=M.shape)
    assert not M.has_sorted_indices  # which is no reason to copy it
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    solve(ERM(M[:50], y[:50], loss), method, max_epochs=1)  # what is imported late is not counted
    tracemalloc.start()
    try:
        p = ERM(M, y, loss, "l2", 1e-5, sample_weight=weights)
        solve(p, method, max_epochs=6, check_every=2, random_state=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (13 if weighted else 10) * 8 * (20_000 + 5_000)
