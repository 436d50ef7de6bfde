"""Layouts of X that kernels read, for `X.view(...)`. Each is made once for all who ask.

    X.view(views.columns)

Who reads one reads raw memory. So only the code next to a kernel asks for one; everything else goes
through the methods of `Matrix`. A layout may be defined anywhere: it is a function of a `Stored`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.validation import Matrix as Table
from .columns import columns, stored_columns
from .compact import compact
from .matrix import Arrays, Stored

__all__ = ["arrays", "columns", "compact", "stored_columns", "table", "transposed", "whole"]


def arrays(X: Stored) -> Arrays:
    """Data, indices and indptr of the rows in CSR form; of dense X the data and two empty ones.

    The border is in none of them: see `X.constant`.
    """
    return X._arrays


def whole(X: Stored) -> Any:
    """X as a NumPy or SciPy matrix, in the same memory; not for an X with a border."""
    if X.constant:
        raise TypeError("the border of X is stored nowhere: `whole` would leave it out.")
    return X.stored


def table(X: Stored) -> Table:
    """X as a dense float64 array, with the border; a copy if it is not that already."""
    made = X.stored.toarray() if X.sparse else X.stored
    made = made.astype(np.float64, copy=False)
    if X.constant:
        made = np.hstack([made, np.full((X.shape[0], 1), X.constant)])
    return np.asarray(made)


def transposed(X: Stored) -> Stored:
    """X', a copy; the border is a row of it."""
    return X.transpose()
