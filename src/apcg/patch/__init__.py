"""Programs written for scikit-learn, run with the solvers of apcg and unchanged.

    python -m apcg.patch script.py [arguments]
    python -m apcg.patch -m module [arguments]

or in a program, before it imports from scikit-learn:

    import apcg
    apcg.patch_sklearn()

The names of `apcg.linear_model` then stand where scikit-learn has its own: in
`sklearn.linear_model` and `sklearn.svm`, and in every other module of scikit-learn that uses them.
The module that defines a class keeps it, so that models fitted before can still be pickled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any


class Patched:
    """What `patch_sklearn` did; at the end of a `with` block it is undone."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __enter__(self) -> Patched:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        unpatch_sklearn(self.names)

    def __repr__(self) -> str:
        return f"Patched({', '.join(self.names)})"


def patch_sklearn(names: str | Iterable[str] | None = None) -> Patched:
    """Put the classes and functions of `apcg.linear_model` in the places of scikit-learn's.

    Names that a program has imported before keep what they are: call it first. Worker processes
    that are given models get ours; those that import from scikit-learn themselves must call it too.

    Parameters
    ----------
    names : str, list of str or None
        Names of `apcg.linear_model.__all__`; None for all of them.

    Returns
    -------
    Patched
        A context manager: `with patch_sklearn(): ...` undoes it at the end.

    Examples
    --------
    >>> import apcg, sklearn.linear_model
    >>> with apcg.patch_sklearn():
    ...     sklearn.linear_model.Lasso.__module__
    'apcg.linear_model.nets'
    >>> sklearn.linear_model.Lasso.__module__
    'sklearn.linear_model._coordinate_descent'
    """
    return Patched(swap(_pairs(names)))


def unpatch_sklearn(names: str | Iterable[str] | None = None) -> None:
    """Undo `patch_sklearn`, for some names or for all of them.

    Parameters
    ----------
    names : str, list of str or None
        As in `patch_sklearn`.

    Examples
    --------
    >>> import apcg, sklearn.linear_model
    >>> patched = apcg.patch_sklearn("Lasso")
    >>> apcg.unpatch_sklearn()
    >>> sklearn.linear_model.Lasso.__module__.startswith("sklearn")
    True
    """
    swap({name: (ours, theirs) for name, (theirs, ours) in _pairs(names).items()})


def swap(pairs: dict[str, tuple[Any, Any]], *, homes: bool = False) -> list[str]:
    """Replace the first of each pair by the second in all modules of scikit-learn that are loaded.

    A module keeps what it defines, unless `homes`. Returns the names that were replaced.
    """
    found = {id(old): (name, new) for name, (old, new) in pairs.items()}
    done = set()
    for path, module in list(sys.modules.items()):
        if path.partition(".")[0] != "sklearn":
            continue
        for key, value in list(vars(module).items()):
            if id(value) in found and (homes or value.__module__ != path):
                name, new = found[id(value)]
                setattr(module, key, new)
                done.add(name)
    return sorted(done)


def _pairs(names: str | Iterable[str] | None) -> dict[str, tuple[Any, Any]]:
    """scikit-learn's object and ours, by name."""
    from .. import linear_model
    from ..linear_model._sklearn import theirs

    known = linear_model.__all__
    wanted = known if names is None else [names] if isinstance(names, str) else list(names)
    if unknown := sorted(set(wanted) - set(known)):
        raise ValueError(f"apcg.linear_model has no {', '.join(unknown)}; it has {known}.")
    return {name: (getattr(theirs, name), getattr(linear_model, name)) for name in wanted}
