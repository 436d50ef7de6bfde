"""The regulariser g of ERM from what a user gave: a name, an object of `apcg.penalties`, or own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._base import validation as check
from .base import GROUPS, NAMES, Regulariser, shown
from .groups import GroupNorms
from .interval import Interval
from .own import OwnRegulariser
from .psi import Box, ElasticNet, GroupLasso, Penalty, Zero


def of(penalty: Any, l1_ratio: float, positive: Any, d: int, K: int = 1) -> Regulariser:
    """g from a name, an object of `apcg.penalties` or an object of the user's.

    It is a function of w with d features, and of W with d rows and K columns if K > 1.
    """
    ratio = check.number(l1_ratio, "l1_ratio", low=0.0, high=1.0)
    bounds = _bounds(positive)
    if penalty is None or (isinstance(penalty, str) and penalty == "none"):
        penalty = Zero()
    if isinstance(penalty, str) and penalty in NAMES and bounds is None and K == 1:
        return _of_name(penalty, ratio)
    if isinstance(penalty, str | type):
        name = check.choice(penalty, "penalty", NAMES if K == 1 else (*NAMES, *GROUPS))
        if name in GROUPS:
            if bounds is not None:
                raise ValueError(f"positive={positive!r} does not go with penalty {name!r}.")
            return GroupNorms(1.0) if name == "group" else GroupNorms(ratio, 1 - ratio)
        penalty = _named(name, ratio)
    if isinstance(penalty, Penalty):
        return Interval.of(penalty, bounds, d).over(K)
    if bounds is not None:
        raise ValueError(
            f"positive={positive!r} is for the penalties of apcg, got {shown(penalty)}; write "
            "bounds into the value, prox and conjugate of your own."
        )
    if not isinstance(penalty, GroupLasso):
        return OwnRegulariser(penalty, d, K)
    if K > 1:
        raise TypeError(
            f'penalties.GroupLasso is for one output, and there are {K}; take penalty "group", '
            "which has the rows of W as groups, or a g of your own."
        )
    return GroupNorms.of(penalty, d)


def _bounds(positive: Any) -> Box | None:
    """The bounds on w that a user gave: True for w >= 0, or a pair of them; None without any."""
    if isinstance(positive, bool | np.bool_):
        return Box(0.0, np.inf) if positive else None
    if not isinstance(positive, tuple) or len(positive) != 2:
        raise TypeError(
            f"positive must be True, False or a pair (lower, upper), got {positive!r}; each of the "
            "pair is a number or has one for each feature."
        )
    made = Box(*positive)
    if np.any(np.asarray(made.lower) > 0) or np.any(np.asarray(made.upper) < 0):
        raise ValueError(
            "positive=(lower, upper) must leave w = 0, where methods begin: lower <= 0 <= upper."
        )
    return made


def _named(name: str, ratio: float) -> Penalty:
    return ElasticNet(1.0, {"l2": 0.0, "l1": 1.0, "elasticnet": ratio}[name])


@lru_cache(maxsize=64)
def _of_name(name: str, ratio: float) -> Interval:
    """g of that name, the same for all features, however many; it never changes."""
    return Interval.of(_named(name, ratio), None, 0)
