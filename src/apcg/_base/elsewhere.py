"""What other libraries call our parameters: the error for one of their names says ours."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Their names, and what to write here.
NAMES = {
    "C": "alpha=1/(C n), with n the number of samples",
    "Cs": "alphas, 1/(C n) for each C, with n the number of samples",
    "n_alphas": "alphas, which takes a number as well",
    "l1_ratios": "l1_ratio, which takes a list in the CV forms",
    "max_iter": "max_epochs, the passes over the data",
    "n_iter": "max_epochs, the passes over the data",
    "epochs": "max_epochs, the passes over the data",
    "solver": 'method, by default "auto", which chooses one',
    "seed": "random_state",
    "intercept": "fit_intercept",
    "fit_intercept": "intercept",
}


def refuse_other_names(owner: str, given: Iterable[str], known: Container[str]) -> None:
    """Say what to write for a parameter that `owner` has under another name."""
    for name in given:
        if name in NAMES and name not in known:
            raise TypeError(f"{owner} has no parameter {name!r}; write {NAMES[name]}.")


def answers_other_names(function: Callable[P, R]) -> Callable[P, R]:
    """The function; called with a parameter that it has under another name, it says which."""
    known = signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_other_names(function.__qualname__.removesuffix(".__init__"), kwargs, known)
        return function(*args, **kwargs)

    return checked
