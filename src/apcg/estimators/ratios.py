"""A list of l1_ratio in the CV forms: one search for each, and the best of all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.validation import Vector


def copies(search: Any) -> list[Any]:
    """The estimator itself, or for a list of l1_ratio a copy with each of them."""
    if np.ndim(search.l1_ratio) == 0:
        return [search]
    if not (isinstance(search.penalty, str) and search.penalty == "elasticnet"):
        raise ValueError(
            f"a list of l1_ratio is for penalty='elasticnet', and penalty is {search.penalty!r}."
        )
    ratios = check.vector(search.l1_ratio, None, "l1_ratio")
    if ratios.size == 0 or ratios.min() < 0 or ratios.max() > 1:
        raise ValueError(f"l1_ratio must be numbers in [0, 1], got {search.l1_ratio!r}.")
    made = []
    for ratio in ratios.tolist():
        other = copy(search)
        other.l1_ratio = ratio
        made.append(other)
    return made


def keep(search: Any, tried: Sequence[Any], best: Any, grid: Vector) -> None:
    """Put what the copies found into the attributes of the estimator; `best` is one of them."""
    if best is not search:
        search.alphas_ = grid
        search.scores_ = np.stack([each.scores_ for each in tried])
        search.n_iter_path_ = np.stack([each.n_iter_path_ for each in tried])
    if isinstance(search.penalty, str) and search.penalty == "elasticnet":
        search.l1_ratio_ = float(best.l1_ratio)


@contextlib.contextmanager
def kept_so_far(search: Any, tried: Sequence[Any]) -> Iterator[None]:
    """Ctrl-C in the search of a copy: what it knows is put into the attributes of the estimator."""
    try:
        yield
    except KeyboardInterrupt:
        for each in tried:
            if each is not search and "coef_" in vars(each):
                found = {name: v for name, v in vars(each).items() if name.endswith("_")}
                vars(search).update(found, l1_ratio_=float(each.l1_ratio))
        raise
