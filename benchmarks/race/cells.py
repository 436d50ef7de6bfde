"""The cells of the race: which data, loss, penalty and lambda, in which group.

l2          L2 penalty, no intercept, all peers
everyday    generated data of everyday kinds (ids, raw scales, rare classes), as l2 and l1
l1, elasticnet   the same for sparse models
path        a whole path of lambdas
intercept   a free intercept, through the estimators, against those of scikit-learn
default     the same with default settings, at lambda = 1/n (which is C = 1)
tiny        default settings on 100 x 10 numbers
cv          the CV forms
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import estimators
import paths
import quadratic
import sparse
from contestants import Event, without_intercept
from everyday_data import EVERYDAY
from problems import Problem, load

CLASSES = ("a9a", "rcv1", "covtype:100000", "covtype", "news20", "golub", "alon")
LOSSES = ("hinge", "logistic", "squared_hinge", "squared")
LAMBDAS = ("1e-3", "1e-4", "1/n", "1e-5", "1e-6", "1e-8")
FRACTIONS = ("max/10", "max/100", "max/1000")


@dataclass(frozen=True)
class Cell:
    """One line of the table. `lam` is a number, "1/n", "max/100" or "path"."""

    group: str
    data: str
    loss: str
    penalty: str
    lam: str

    @property
    def key(self) -> str:
        """What it is known by in a file of results."""
        return " ".join(asdict(self).values())

    def event(self, packages: tuple[str, ...]) -> Event:
        """The race on this cell, among those of these packages; loads the data."""
        X, y = load(self.data)
        p = Problem(X, y, self.loss, self.penalty)
        if self.group == "path":
            return paths.event(p, packages)
        if self.group == "cv":
            return estimators.cross_validated(p, packages)
        p = replace(p, lam=p.resolve(self.lam))
        if self.group == "intercept":
            return estimators.with_intercept(p, packages)
        if self.group in ("default", "tiny"):
            return estimators.as_it_comes(p, packages)
        makers = quadratic.MAKERS if self.penalty == "l2" else sparse.MAKERS
        return without_intercept(p, makers, packages)


def of_all() -> Iterator[Cell]:
    """Every cell, by group."""
    for data in (*CLASSES, "cal_housing"):
        for loss in LOSSES if data != "cal_housing" else ("squared",):
            for lam in LAMBDAS:
                yield Cell("l2", data, loss, "l2", lam)
    for data in EVERYDAY:
        for loss in LOSSES:
            for lam in ("1e-3", "1/n", "1e-6"):
                yield Cell("everyday", data, loss, "l2", lam)
        for loss in ("squared", "logistic"):
            yield Cell("everyday", data, loss, "l1", "max/100")
    for penalty in ("l1", "elasticnet"):
        for data in ("a9a", "rcv1", "golub", "alon", "cal_housing"):
            for loss in ("squared", "logistic") if data != "cal_housing" else ("squared",):
                for lam in FRACTIONS:
                    yield Cell(penalty, data, loss, penalty, lam)
    for data, loss, penalty in (
        ("alon", "squared", "l1"),
        ("golub", "squared", "l1"),
        ("cal_housing", "squared", "l1"),
        ("rcv1", "squared", "l1"),
        ("golub", "logistic", "l1"),
        ("rcv1", "logistic", "l1"),
        ("a9a", "logistic", "l2"),
        ("rcv1", "logistic", "l2"),
    ):
        yield Cell("path", data, loss, penalty, "path")
    for group, lams in (("intercept", ("1e-3", "1/n", "1e-6")), ("default", ("1/n",))):
        for data in ("a9a", "rcv1", "covtype:100000", "alon", "cal_housing"):
            for loss in LOSSES if data != "cal_housing" else ("squared",):
                for lam in lams:
                    yield Cell(group, data, loss, "l2", lam)
    for loss in LOSSES:
        yield Cell("tiny", "tiny", loss, "l2", "1/n")
    yield Cell("cv", "breast_cancer", "logistic", "l2", "path")
    yield Cell("cv", "digits", "logistic", "l2", "path")
    yield Cell("cv", "diabetes", "squared", "l2", "path")
    yield Cell("cv", "diabetes", "squared", "l1", "path")


GROUPS = tuple(dict.fromkeys(cell.group for cell in of_all()))
