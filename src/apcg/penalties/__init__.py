"""Penalties: psi of `minimize` (`psi`), and g of `ERM`.

`base` has what ERM, the methods and the certificates ask of g. Three answer: `interval` (L2, L1,
elastic net, bounds), `groups` (norms of groups of features, or of the rows of W) and `own` (yours).
"""

from .check import check
from .custom import Custom
from .psi import (
    L1,
    L2,
    Box,
    ElasticNet,
    GroupL2,
    GroupLasso,
    L2Ball,
    NonNegative,
    Penalty,
    Zero,
)
from .psi import OwnPenalty as OwnPenalty
from .psi import refuse_ignored as refuse_ignored

__all__ = [
    "L1",
    "L2",
    "Box",
    "Custom",
    "ElasticNet",
    "GroupL2",
    "GroupLasso",
    "L2Ball",
    "NonNegative",
    "Penalty",
    "Zero",
    "check",
]
