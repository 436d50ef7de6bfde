"""The methods by name. `register` makes one known to `solve`, the command and the plots."""

from __future__ import annotations

from typing import Any

from .._base.validation import choice
from ..problems.erm import ERM
from .base import Method, Need, OwnRun, Run, unmet
from .dual.one_output import Lean
from .interior.interior import Interior
from .interior.interior_l1 import InteriorL1
from .literature.accelerated_sdca import AcceleratedDualAscent
from .literature.sag import StochasticAverageGradient
from .literature.svrg import ProxSVRG
from .newton.newton import Newton
from .paper.adaptive import AdaptiveMethod
from .paper.afg import AFGMethod
from .paper.apcg import Algorithm5
from .paper.sdca import DualAscent
from .plan.many_outputs import BlockAPCG, BlockAuto, BlockNewton, BlockSDCA, OutputsAFG
from .plan.plan import Auto
from .reductions.per_output import OneByOne
from .reductions.row_space import Span
from .reductions.smoothing import Smoothing
from .sparse import WorkingSet
from .sparse.groups.method import GroupSet
from .sparse.softmax.method import ClassSet, OutputsGroupSet

_METHODS: dict[str, Method] = {}
#: those for problems with K > 1 outputs
_FOR_OUTPUTS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Make a method known by its name. Returns it, so that it serves as a decorator of a class.

    One with an attribute `outputs` that is true is for problems with K > 1 outputs, of a name that
    may be that of a method for one.
    """
    _check(method)
    table = _FOR_OUTPUTS if getattr(method, "outputs", False) else _METHODS
    table[method.name] = method
    return method


def names() -> tuple[str, ...]:
    """The names of all methods, in the order they were registered."""
    return tuple(_METHODS | _FOR_OUTPUTS)


def find(method: str | Method, K: int = 1) -> Method:
    """The method of that name for K outputs, or the method object itself."""
    if isinstance(method, str) or not hasattr(method, "start"):
        name = choice(method, "method", names())
        known, sort = (_METHODS, "many outputs") if K == 1 else (_FOR_OUTPUTS, "one output")
        if name not in known:
            others = ", ".join(map(repr, known))
            raise ValueError(f"method {name!r} is for {sort}, got {K}; take one of {others}.")
        return known[name]
    _check(method)
    if K > 1 and not getattr(method, "outputs", False):
        raise ValueError(
            f"method {method.name!r} is for one output, got {K}; give it an attribute `outputs` "
            "that is true if it takes W of shape (d, K)."
        )
    return method


def fitting(problem: ERM) -> list[str]:
    """The names of the methods whose needs the problem meets."""
    known = _METHODS if problem.K == 1 else _FOR_OUTPUTS
    return [name for name, method in known.items() if unmet(method, problem) is None]


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


for _method in (
    Auto(),
    Algorithm5(),
    DualAscent(),
    AFGMethod(),
    Newton(),
    AdaptiveMethod(),
    Lean(),
    Interior(),
    InteriorL1(),
    Smoothing(),
    Span(Auto()),
    WorkingSet(),
    GroupSet(),
    StochasticAverageGradient(),
    ProxSVRG(),
    AcceleratedDualAscent(),
    BlockAuto(),
    BlockAPCG(),
    BlockSDCA(),
    BlockNewton(),
    OutputsAFG(),
    OutputsGroupSet(),
    OneByOne(),
    ClassSet(),
):
    register(_method)
