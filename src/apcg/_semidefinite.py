"""Whether a symmetric matrix is positive semidefinite, so that x'Qx is convex."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from ._types import Stored
from ._validation import Vector

#: Up to this size all eigenvalues are computed.
EXACT_UP_TO = 400


def _check_minors(Q: Stored) -> None:
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


def check_semidefinite(Q: Stored) -> None:
    """Refuse a Q with x'Qx < 0 for some x: by its least eigenvalue, or by the least Lanczos sees.

    What Lanczos sees is x'Qx/|x|^2 of some x. So a negative one is a proof; none is not.
    """
    _check_minors(Q)
    N = Q.shape[0]
    if N <= EXACT_UP_TO:
        found = scipy.linalg.eigvalsh(Q if isinstance(Q, np.ndarray) else Q.toarray())
    else:
        found = _ritz_values(Q, 40)
    least, most = float(found[0]), float(max(found[-1], 0.0))
    if least < -1e-6 * most:
        raise ValueError(
            f"Q must be positive semidefinite, got an eigenvalue of at most {least:g} (the largest "
            f"is {most:g}); x'Qx is not convex. Is it rounding? Add a multiple of the unit matrix."
        )


def _ritz_values(Q: Stored, steps: int) -> Vector:
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
