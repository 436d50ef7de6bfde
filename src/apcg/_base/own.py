"""What users write is used or refused, never ignored.

The classes of this package that hold compiled functions can be derived from, but the kernels call
no Python: a `value` that a subclass writes would be left out of the steps, and the certificate
would be of another problem. So an override that nobody would call is an error.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np


def refuse_overrides(thing: object, base: type, allowed: frozenset[str], cure: str) -> None:
    """Raise if a user's class of `thing`, or `thing` itself, overrides what compiled code of `base`
    would not call; names in `allowed` are read.
    """
    cls = type(thing)
    ignored = [name for name in vars(thing) if callable(getattr(cls, name, None))]
    ignored += _overridden(cls, base, allowed)  # type: ignore[arg-type]
    if ignored:
        names = ", ".join(sorted(set(ignored)))
        raise TypeError(
            f"{cls.__name__} has its own {names}, which the compiled code of {base.__name__} would "
            f"not call. {cure}"
        )


@lru_cache(maxsize=1024)
def _overridden(cls: type, base: type, allowed: frozenset[str]) -> tuple[str, ...]:
    own = [c for c in cls.__mro__ if is_own(c) and issubclass(c, base)]
    names = {name for c in own for name in vars(c) if not name.startswith(("__", "_abc_"))}
    parents = [c for c in cls.__mro__ if not is_own(c) and issubclass(c, base)]
    return tuple(n for n in names - allowed if any(n in vars(p) for p in parents))


def is_own(cls: type) -> bool:
    """Whether it is a class of a user's."""
    return cls.__module__.partition(".")[0] != "apcg"


def locked(array: np.ndarray) -> np.ndarray:
    """The same numbers, which a function of the user's cannot change."""
    view = array.view()
    view.flags.writeable = False
    return view
