"""The methods by name. `register` makes one known to `solve`, the command and the plots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._base.validation import choice
from ..problems.erm import ERM
from .base import Method, Need, OwnRun, Run, met, unmet
from .dual.method import BlockAPCG, BlockSDCA, DualSweeps
from .in_parts.method import InParts
from .in_parts.sweeps import PartSweeps
from .interior.general import InteriorK
from .interior.interior import Interior
from .interior.interior_l1 import InteriorL1
from .literature.accelerated_sdca import AcceleratedDualAscent
from .literature.sag import StochasticAverageGradient
from .literature.svrg import ProxSVRG
from .newton.bounded import BoundedNewton
from .newton.ids import NewtonIds
from .newton.many_outputs import BlockNewton
from .newton.newton import Newton
from .paper.adaptive import AdaptiveMethod
from .paper.afg import AFGMethod
from .paper.apcg import Algorithm5
from .paper.sdca import DualAscent
from .plan.plan import Auto
from .reductions.least_squares import LeastSquaresMethod
from .reductions.orthogonal import Orthogonal
from .reductions.per_output import OneByOne
from .reductions.row_space import Span
from .reductions.scaled import Scaled
from .reductions.smoothing import Smoothing
from .sparse import ClassSet, GroupSet, OutputsGroupSet, WorkingSet

#: Those of a name, one for one output and one for more, maybe.
_METHODS: dict[str, tuple[Method, ...]] = {}


def register(method: Method) -> Method:
    """Make a method known by its name. Returns it, so that it serves as a decorator of a class.

    Of those of one name that fit a problem, the last one that was registered is taken.
    """
    _check(method)
    _METHODS[method.name] = (method, *_METHODS.get(method.name, ()))
    return method


def names() -> tuple[str, ...]:
    """The names of all methods, in the order they were registered."""
    return tuple(_METHODS)


def find(method: str | Method, problem: ERM) -> Method:
    """The method of that name that fits the problem best, or the method object itself."""
    if not isinstance(method, str) and hasattr(method, "start"):
        _check(method)
        return method
    known = _METHODS.get(method) if isinstance(method, str) else None
    known = known or _METHODS[choice(method, "method", names())]
    if len(known) == 1:
        return known[0]
    fits = (m for m in known if unmet(m, problem) is None)
    return next(fits, None) or max(known, key=lambda m: met(m, problem))


def fitting(problem: ERM) -> list[str]:
    """The names of the methods whose needs the problem meets."""
    return [name for name in _METHODS if unmet(find(name, problem), problem) is None]


def with_mu(method: Any, mu: float) -> Method:
    """Method "apcg" with this mu."""
    if not isinstance(method, Algorithm5 | BlockAPCG):
        raise ValueError('mu is a parameter of method "apcg" only.')
    return replace(method, mu=mu)


def check_fit(method: Method, problem: ERM) -> None:
    """Raise one error that names both sides if the method does not fit the problem."""
    need = unmet(method, problem)
    if need is None:
        return
    others = ", ".join(repr(name) for name in fitting(problem))
    cure = f"take one of {others}" if others else "no registered method fits this problem"
    raise ValueError(f"method {method.name!r} needs {need.what}, and {need.has(problem)}; {cure}.")


def _check(method: Method) -> None:
    missing = [part for part in ("name", "needs", "start") if not hasattr(method, part)]
    if missing:
        raise TypeError(
            f"a method must have name, needs and start; {method!r} has no {', '.join(missing)}. "
            "apcg.methods.base says what each is."
        )
    if isinstance(method, type) and getattr(method.start, "__self__", None) is None:
        raise TypeError(f"method must be an object, got the class; take {method.__name__}().")
    if not isinstance(method.name, str):
        raise TypeError(f"the name of a method must be a string, got {method.name!r}.")
    needs = method.needs
    if not isinstance(needs, tuple | list) or not all(isinstance(need, Need) for need in needs):
        raise TypeError(f"needs of method {method.name!r} must be a tuple of Need.")


def adopted(method: Method, given: Any) -> Run:
    """What `start` gave, as a run; an error if it is none."""
    if isinstance(given, Run):
        return given
    missing = [part for part in ("advance", "point", "seen") if not hasattr(given, part)]
    if missing:
        raise TypeError(
            f"start of method {method.name!r} must give a run with advance, point and seen; got "
            f"{type(given).__name__}, which has no {', '.join(missing)}."
        )
    return OwnRun(given)


#: The plan that `solve` takes if it is asked for no other method.
AUTO = Auto()
for _method in (
    AUTO,
    Algorithm5(),
    DualAscent(),
    AFGMethod(),
    Newton(),
    BoundedNewton(),
    NewtonIds(),
    AdaptiveMethod(),
    DualSweeps(),
    InteriorK(),
    Interior(),
    InteriorL1(),
    Smoothing(),
    Span(Auto()),
    Scaled(Auto()),
    Orthogonal(),
    LeastSquaresMethod(),
    WorkingSet(),
    GroupSet(),
    StochasticAverageGradient(),
    ProxSVRG(),
    AcceleratedDualAscent(),
    BlockAPCG(),
    BlockSDCA(),
    BlockNewton(),
    OutputsGroupSet(),
    OneByOne(Auto()),
    ClassSet(),
    InParts(),
    PartSweeps(),
):
    register(_method)
