"""Eigenvalues: the constants of a function from its matrix, and whether that is semidefinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from scipy.sparse.linalg import LinearOperator

from .._base.types import Stored as Array
from .._base.validation import Index, Vector
from . import views
from .matrix import Matrix, Stored

#: Blocks up to this size get their constants from a full eigenvalue decomposition.
_LANCZOS_FROM = 400
#: Lanczos approaches the largest eigenvalue from below: it is run to this, and enlarged by it.
_LANCZOS_TOL = 1e-3


def largest_singular_value_squared(X: Matrix, scale: Vector) -> float:
    """|diag(scale) B|_2^2 for all the rows B, by Lanczos, not less than the true value."""
    n, rows = X.shape
    if not X.squared_norms().any():
        return 0.0
    size = min(n, rows)

    def product(u: Vector) -> Vector:
        """The smaller of BB' and B'B times u."""
        u = np.ravel(u)
        if n <= rows:
            return scale * X.times(X.adjoint(scale * u))
        return X.adjoint(scale**2 * X.times(u))

    if size == 1:
        return float(product(np.ones(1))[0])
    return _lanczos(LinearOperator((size, size), matvec=product, dtype=float))


def check_quadratic(given: Matrix) -> Vector:
    """Refuse a Q that is not symmetric and positive semidefinite; gives its diagonal."""
    N, Q = given.shape[0], given.view(views.whole)
    if given.shape[1] != N:
        raise ValueError(f"Q must be square, got shape ({N}, {given.shape[1]}).")
    asymmetry = abs(Q - Q.T).max()
    if asymmetry > 1e-8 * abs(Q).max():
        raise ValueError(
            f"Q must be symmetric, got entries that differ by {asymmetry:g} from their mirror "
            "images; use (Q + Q.T)/2, which has the same x'Qx."
        )
    _check_minors(Q)
    _check_semidefinite(Q)
    return np.asarray(Q.diagonal(), dtype=np.float64)


def _check_minors(Q: Array) -> None:
    """Q_ii >= 0 and Q_ij^2 <= Q_ii Q_jj, which a positive semidefinite Q has. It is not enough for
    one, but a zero on the diagonal then comes with a row of zeros, as `minimize` takes it to.
    """
    diagonal = np.asarray(Q.diagonal(), dtype=np.float64)
    if diagonal.min() < 0:
        raise ValueError(
            f"Q must be positive semidefinite, got the diagonal entry {diagonal.min():g}."
        )
    scale = np.sqrt(diagonal)
    if isinstance(Q, np.ndarray):
        excess = np.abs(Q) - (1 + 1e-6) * np.outer(scale, scale)
    else:
        entries = Q.tocoo()
        row, column, size = entries.row, entries.col, abs(entries.data)
        excess = size - (1 + 1e-6) * scale[row] * scale[column]
    if excess.size and excess.max() > 1e-12 * diagonal.max():
        worst = int(excess.argmax())
        i, j = (
            divmod(worst, len(scale)) if isinstance(Q, np.ndarray) else (row[worst], column[worst])
        )
        raise ValueError(
            f"Q must be positive semidefinite, got Q[{i}, {j}] = {Q[i, j]:g} with "
            f"{diagonal[i]:g} and {diagonal[j]:g} on the diagonal; a convex x'Qx has "
            "Q_ij^2 <= Q_ii Q_jj."
        )


def _check_semidefinite(Q: Array) -> None:
    """x'Qx >= 0: by the least eigenvalue, or for a large Q by the least that Lanczos sees.

    What Lanczos sees is x'Qx/|x|^2 of some x. So a negative one is a proof; none is not.
    """
    N = Q.shape[0]
    if N <= _LANCZOS_FROM:
        found = scipy.linalg.eigvalsh(Q if isinstance(Q, np.ndarray) else Q.toarray())
    else:
        found = _ritz_values(Q, 40)
    least, most = float(found[0]), float(max(found[-1], 0.0))
    if least < -1e-6 * most:
        raise ValueError(
            f"Q must be positive semidefinite, got an eigenvalue of at most {least:g} (the largest "
            f"is {most:g}); x'Qx is not convex. Is it rounding? Add a multiple of the unit matrix."
        )


def _ritz_values(Q: Array, steps: int) -> Vector:
    """The eigenvalues of Q on the Krylov space of a random vector, in order."""
    operator = scipy.sparse.linalg.aslinearoperator(Q)
    B = np.zeros((0, Q.shape[0]))
    v: Any = np.random.default_rng(0).standard_normal(Q.shape[0])
    for _ in range(steps):
        before = np.linalg.norm(v)
        for _ in range(2):  # Gram-Schmidt; twice is enough
            v = v - np.dot(B.T, np.dot(B, v))
        if np.linalg.norm(v) <= 1e-10 * before:
            break
        B = np.vstack([B, v / np.linalg.norm(v)])
        v = np.asarray(operator.matvec(B[-1]))
    return np.asarray(scipy.linalg.eigvalsh(B @ np.asarray(operator.matmat(B.T))))


def squared_spectral_norm(few: Stored) -> float:
    """|B|_2^2 of the few rows B: the largest eigenvalue of the smaller of BB' and B'B."""
    B = few.stored.astype(np.float64)
    if min(B.shape) <= _LANCZOS_FROM:
        return _top(B @ B.T if B.shape[0] <= B.shape[1] else B.T @ B)
    operator = scipy.sparse.linalg.aslinearoperator(B)
    return _lanczos(operator @ operator.T)


def largest_eigenvalue(few: Stored, members: Index) -> float:
    """Of the block of a semidefinite matrix with these rows and columns, or a little more."""
    return _top(few.stored.astype(np.float64)[:, members])


def _top(gram: Array) -> float:
    """The largest eigenvalue of a semidefinite matrix, or a little more."""
    if gram.shape[0] > _LANCZOS_FROM:
        return _lanczos(scipy.sparse.linalg.aslinearoperator(gram))
    dense = gram if isinstance(gram, np.ndarray) else gram.toarray()
    return float(max(scipy.linalg.eigvalsh(dense)[-1], 0.0))


def _lanczos(operator: LinearOperator) -> float:
    start = np.random.default_rng(0).standard_normal(operator.shape[0])
    top = scipy.sparse.linalg.eigsh(
        operator, k=1, which="LA", v0=start, tol=_LANCZOS_TOL, return_eigenvectors=False
    )
    return float(max(top[0], 0.0)) * (1 + _LANCZOS_TOL)
