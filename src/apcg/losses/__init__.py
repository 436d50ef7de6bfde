"""The losses phi of ERM, by name or as objects, and your own.

`base` has what ERM and the methods ask of a loss. `interval` and `logistic` have the losses of one
prediction, as functions of m = y a'w with labels y = -1 or 1, or of r = a'w - y; `classes` those
over K classes, `per_output` the sum of one over K outputs, `own` yours.
"""

from .classes import MulticlassHinge, Multinomial
from .interval import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Loss,
    Pinball,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from .logistic import Logistic, StronglyConvex
from .own import OutputsLoss, OwnLoss
from .per_output import Columns
from .registry import ELSEWHERE as ELSEWHERE
from .registry import by_name, check, names, names_of_classes, register

__all__ = [
    "Columns",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "OutputsLoss",
    "OwnLoss",
    "Pinball",
    "SmoothedHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "StronglyConvex",
    "by_name",
    "check",
    "names",
    "names_of_classes",
    "register",
]
