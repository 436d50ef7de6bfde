"""Newton's method for sparse X with ids: one group of columns eliminated, S for the rest."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from apcg import ERM, solve
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.newton.id_rows import IdRows, split
from apcg.methods.newton.ids import (
    Eliminated,
    Elimination,
    EliminationTuning,
    NewtonIds,
    sorted_by_id,
)

DEAR = EliminationTuning(dear=0.0)  # S is always too dear: its diagonal serves


def table(
    seed: int, n: int = 400, users: int = 12, items: int = 60, ones: bool = False, **options: Any
) -> sp.csr_matrix:
    """Rows with a user, an item (some rows have none) and a few numbers."""
    rng = np.random.default_rng(seed)
    popular = np.minimum(rng.zipf(1.5, n) - 1, items - 1)
    X = np.zeros((n, users + items + 4))
    X[np.arange(n), rng.integers(users, size=n)] = 1.0
    has = rng.random(n) < 0.9
    X[np.flatnonzero(has), users + popular[has]] = 1.0
    X[:, users + items :] = rng.standard_normal((n, 4)) * (rng.random((n, 4)) < 0.4)
    if not ones:
        X *= rng.uniform(0.2, 2.0, (n, 1))
    if options.get("shuffled"):
        X = X[:, rng.permutation(X.shape[1])]
    return sp.csr_matrix(X)


def labels(X: sp.csr_matrix, loss: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(X.shape[0])
    return z if loss in ("squared", "huber") else np.where(z > 0, 1.0, -1.0)


def gap_in_long_double(p: ERM, X: Any, w: np.ndarray, x: np.ndarray, b: float) -> tuple[Any, Any]:
    """P(w, b) and D(x), from their definitions."""
    A, y = X.toarray().astype(np.longdouble), p.y.astype(np.longdouble)
    s = np.broadcast_to(p.weights, len(y)).astype(np.longdouble)
    z, x = A @ w + np.longdouble(b), x.astype(np.longdouble)
    per = x / np.where(s > 0, s, 1)
    if p.loss.name == "logistic":
        losses = np.logaddexp(0, -y * z)
        q = np.clip(per, 0, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = [np.where(t > 0, t * np.log(t), 0) for t in (q, 1 - q)]
        conjugate, signed = terms[0] + terms[1], y * x
    elif p.loss.name == "squared_hinge":
        losses = np.maximum(0, 1 - y * z) ** 2
        conjugate, signed = -per + per**2 / 4, y * x
        assert per.min() >= 0
    else:
        losses = (z - y) ** 2 / 2
        conjugate, signed = per**2 / 2 - per * y, x
    v = A.T @ signed / (p.alpha * p.n)
    P = np.sum(s * losses) / p.n + p.alpha / 2 * np.sum(w.astype(np.longdouble) ** 2)
    D = -np.sum(s * conjugate) / p.n - p.alpha / 2 * np.sum(v**2)
    if p.intercept:
        assert abs(signed.sum()) <= 1e-12 * np.abs(signed).sum() + 1e-300
    return P, D


def test_its_predictions_are_in_the_order_of_the_rows():
    X = table(3)
    p = ERM(X, labels(X, "logistic", 3), "logistic", alpha=1e-3, intercept=True)
    run = NewtonIds().start(p, Start(), Target(1e-6, 100), np.random.default_rng(0))
    run.advance(Budget(1))
    point = run.point()
    np.testing.assert_allclose(point.z, X @ point.w + point.b, atol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("tuning", [EliminationTuning(dear=1e9), DEAR], ids=["S", "diagonal"])
def test_answers_are_certified_in_long_double(
    loss: str, intercept: bool, tuning: EliminationTuning
) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = table(seed, ones=seed % 2 == 0, shuffled=seed % 3 == 0)
        weight = rng.random(X.shape[0]) * (rng.random(X.shape[0]) < 0.9) if seed % 2 else None
        alpha = 10.0 ** rng.uniform(-6, 0)
        p = ERM(X, labels(X, loss, seed), loss, alpha=alpha, sample_weight=weight,
                intercept=intercept)  # fmt: skip
        r = solve(p, NewtonIds(tuning), tol=1e-9, max_epochs=20_000, random_state=0)
        assert r.converged, r.status
        P, D = gap_in_long_double(p, X, r.w, r.x, r.intercept)
        assert -1e-15 * abs(P) <= P - D <= 1.0001e-9 * abs(P) + 1e-15 * abs(P)
        assert abs(P - r.primal) <= 1e-12 * abs(P)


@pytest.mark.parametrize("loss", ["smoothed_hinge", "huber"])
def test_other_losses_agree_with_newton(loss: str) -> None:
    X = table(3)
    p = ERM(X, labels(X, loss, 3), loss, alpha=1e-3, intercept=True)
    mine = solve(p, "newton_ids", tol=1e-10, random_state=0)
    other = solve(p, "newton", tol=1e-10, random_state=0)
    assert mine.converged
    assert mine.primal == pytest.approx(other.primal, rel=1e-9)


@pytest.mark.parametrize("value", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_types_of_X(value: Any, index: Any) -> None:
    X = table(1).astype(value)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    p = ERM(X, labels(X, "logistic", 1), "logistic", alpha=1e-3)
    assert solve(p, "newton_ids", random_state=0).converged


def test_rows_out_of_order_and_empty_ones() -> None:
    X = table(5, n=200).tolil()
    X[:7] = 0
    X = X.tocsr()
    for i in range(X.shape[0]):
        at = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[at], X.data[at] = X.indices[at][::-1].copy(), X.data[at][::-1].copy()
    X.has_sorted_indices = False
    y = labels(X, "logistic", 5)
    p, q = ERM(X, y, "logistic", alpha=1e-3), ERM(X.sorted_indices(), y, "logistic", alpha=1e-3)
    found = [solve(each, "newton_ids", tol=1e-9, random_state=0) for each in (p, q)]
    np.testing.assert_allclose(found[0].w, found[1].w, atol=1e-6)


def test_the_widest_range_of_ids_is_eliminated() -> None:
    X = table(0)  # 12 users, 60 items, 4 numbers
    made = ERM(X, labels(X, "squared", 0), "squared").samples.view(split)
    assert made.ids >= 60
    inside = X.toarray()[:, made.place < made.ids] != 0
    assert inside.sum(axis=1).max() <= 1


def test_shuffled_columns_have_a_set_too() -> None:
    X = table(0, shuffled=True)
    made = ERM(X, labels(X, "squared", 0), "squared").samples.view(split)
    assert made.ids >= 30
    assert (X.toarray()[:, made.place < made.ids] != 0).sum(axis=1).max() <= 1


def rows_of(seed: int, intercept: bool = True) -> tuple[IdRows, Elimination, np.ndarray]:
    X = table(seed)
    p = ERM(X, labels(X, "logistic", seed), "logistic", alpha=1e-3, intercept=intercept)
    made, rows = sorted_by_id(p)
    whole = np.hstack([X.toarray(), np.ones((X.shape[0], 1))]) if intercept else X.toarray()
    return made, Elimination(rows, EliminationTuning(dear=1e9)), whole[made.order][:, made.features]


def test_products_are_those_of_X() -> None:
    made, _, A = rows_of(2)
    rng = np.random.default_rng(0)
    w, r, h = rng.standard_normal(A.shape[1]), rng.standard_normal(len(A)), rng.random(len(A))
    h[::3] = 0.0
    q = np.empty(len(A))
    np.testing.assert_allclose(made.times(w), A @ w, atol=1e-12)
    np.testing.assert_allclose(made.adjoint(r), A.T @ r, atol=1e-12)
    np.testing.assert_allclose(made.gram_times(h, w, q), A.T @ (h * (A @ w)), atol=1e-11)
    np.testing.assert_allclose(q, A @ w, atol=1e-12)
    np.testing.assert_allclose(made.column_squares(h), (A**2).T @ h, atol=1e-12)


def test_S_follows_h_by_what_changed() -> None:
    made, _, A = rows_of(4)
    rng = np.random.default_rng(1)
    ridge, r = np.full(A.shape[1], 1e-2), rng.standard_normal(A.shape[1])
    H = Eliminated(made, ridge, dense=True)
    h = rng.random(len(A))
    for share in (1.0, 0.02, 0.3, 0.9, 0.0):  # few changes: added; many: from nothing
        h = np.where(rng.random(len(A)) < share, rng.random(len(A)) * (rng.random(len(A)) < 0.5), h)
        H.update(h)
        exact = np.linalg.solve(A.T @ (h[:, None] * A) + np.diag(ridge), r)
        np.testing.assert_allclose(H.solve(r), exact, rtol=1e-8, atol=1e-8)


def test_S_is_made_only_where_it_is_cheap() -> None:
    _, hessian, _ = rows_of(2)
    assert hessian.dense
    assert not Elimination(hessian._rows, DEAR).dense
    assert not Elimination(hessian._rows, EliminationTuning(dear=1e9, widest=3)).dense
    X = sp.random(300, 2000, 0.05, format="csr", random_state=0)  # words: no ids
    p = ERM(X, labels(X, "logistic", 0), "logistic", alpha=1e-3)
    assert not Elimination(sorted_by_id(p)[1], EliminationTuning()).dense
    assert solve(p, "newton_ids", random_state=0).converged


def test_it_goes_on_from_a_start() -> None:
    X = table(6)
    p = ERM(X, labels(X, "logistic", 6), "logistic", alpha=1e-4, intercept=True)
    first = solve(p, "newton_ids", tol=1e-9, random_state=0)
    run = NewtonIds().start(p, Start(w=first.w, b=first.intercept), Target(1e-6), None)
    from apcg.methods.base import Budget

    run.advance(Budget(1))
    again = solve(p, "newton_ids", tol=1e-6, x0=first, random_state=0)
    assert again.converged
    assert again.epochs <= 2


def test_dense_X_is_refused_by_name() -> None:
    p = ERM(np.eye(4), [1, -1, 1, -1], "logistic")
    with pytest.raises(ValueError, match=r"newton_ids.*needs sparse X in memory"):
        solve(p, "newton_ids")
