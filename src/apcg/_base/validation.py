"""User input to canonical arrays, or an error that says what was got, what was wanted and the cure.

Nothing the user gave is ever changed: where a conversion is needed, it makes a copy.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
_DOUBLE = np.dtype(np.float64)
P = ParamSpec("P")
R = TypeVar("R")

#: What other libraries call our parameters, and what to write here.
OTHER_NAMES = {
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


def is_sparse(x: Any) -> bool:
    """Whether x is a SciPy sparse matrix or array. (SciPy's own test narrows the type too far.)"""
    return sp.issparse(x)


def to_array(x: Any, name: str) -> NDArray[Any]:
    """A real NumPy array, float32 if it is that already and float64 otherwise."""
    if type(x) is np.ndarray and x.dtype is _DOUBLE:  # nothing to look at
        return x
    if is_sparse(x):
        raise TypeError(
            f"{name} must be a dense array, got a sparse one; use {name}.toarray().ravel()."
        )
    if np.ma.is_masked(x):
        raise ValueError(f"{name} has masked entries; remove them, or fill them with x.filled().")
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} cannot be made into an array: {error}") from None
    check_real(array.dtype, name)
    usable = array.dtype in (np.float32, np.float64) and array.dtype.isnative
    return array if usable else array.astype(np.float64)


def check_real(dtype: np.dtype[Any], name: str) -> None:
    """Complex numbers, strings and objects are refused; integers and booleans are not."""
    if dtype.kind in "fiub":
        return
    cures = {
        "c": "for its real part use .real",
        "O": "if it is None or has missing entries, give numbers; if all of it is numbers, use "
        ".astype(float)",
        "U": "a file must be read first, and categories must be encoded as numbers",
    }
    cure = cures.get(dtype.kind, "convert it with .astype(float)")
    raise TypeError(f"{name} must hold real numbers, got dtype {dtype}; {cure}.")


def check_finite(
    data: NDArray[Any], name: str, place: Callable[[int], str] = "position {}".format
) -> None:
    """Refuse NaN and infinities, and say where the first one is."""
    # The sum is finite only if every entry is (or on overflow, which the slow test sorts out).
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(data)
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        count = int(bad.sum())
        raise ValueError(
            f"{name} contains {count} NaN or infinite {'entry' if count == 1 else 'entries'} (the "
            f"first is {data.reshape(-1)[where]} at {place(where)}); remove or impute them."
        )


def vector(x: Any, length: int | None, name: str, *, finite: bool = True, each: str = "") -> Vector:
    """A float64 vector of the given length, one entry for each `each`.

    It may share memory with x: copy before writing.
    """
    array = to_array(x, name)
    if array.ndim != 1:
        got = "a single number" if array.ndim == 0 else f"an array of shape {array.shape}"
        cure = f"; use {name}.ravel()" if max(array.shape, default=0) == array.size > 0 else ""
        wanted = "a vector" if length is None else f"a vector of length {length}"
        raise ValueError(f"{name} must be {wanted}, got {got}{cure}.")
    if length is not None and array.size != length:
        why = f" (one entry for each {each})" if each else ""
        raise ValueError(f"{name} must have length {length}{why}, got length {array.size}.")
    if finite:
        check_finite(array, name)
    return np.ascontiguousarray(array, dtype=np.float64)


def shaped(given: Any, shape: tuple[int, ...], name: str, *, each: str = "") -> Matrix:
    """A float64 vector or matrix of the given shape, like `vector`."""
    if len(shape) == 1:
        return vector(given, shape[0], name, each=each)
    array = to_array(given, name)
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {array.shape}.")
    array = np.ascontiguousarray(array, dtype=np.float64)
    check_finite(array.reshape(-1), name)
    return array


def check_shape(v: Any, shape: tuple[int, ...], name: str) -> None:
    """Raise if an array does not have the shape; kernels do not look at lengths."""
    if v.shape != shape:
        wanted = f"length {shape[0]}" if len(shape) == 1 else f"the shape {shape}"
        raise ValueError(f"{name} must have {wanted}, got an array of shape {v.shape}.")


def check_length(v: Any, length: int, name: str, *, columns: bool = False) -> None:
    """Refuse a vector of another length: the kernels do not look at it. For inner loops.

    With `columns` it may have more than one, of that length.
    """
    shape = np.shape(v)
    if shape != (length,) and not (
        columns and shape[:1] == (length,) and np.size(v) and v.ndim == 2
    ):
        raise ValueError(f"{name} must have length {length}, got an array of shape {shape}.")


def floats(value: Any, name: str) -> Vector:
    """Numbers as float64, or an error that names what is too large for that."""
    try:
        return np.asarray(value, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} must be below 1e308, got a larger integer.") from error


def number(
    value: Any,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    infinite: bool = False,
    hint: str = "",
) -> float:
    """A real number in [low, high] (or in (low, high]), not NaN. `hint` ends the error."""
    if not isinstance(value, float) and (
        isinstance(value, bool | np.complexfloating | np.timedelta64)
        or not isinstance(value, numbers.Real | np.number)
    ):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    try:
        result = float(value)
    except OverflowError:  # an integer or a fraction beyond 1e308
        raise ValueError(f"{name} must be below 1e308 in size, got a larger number.") from None
    outside = not low <= result <= high or (open_low and result == low)
    if outside or (not infinite and not math.isfinite(result)):
        left = "(" if open_low or not math.isfinite(low) else "["
        right = "]" if math.isfinite(high) else ")"
        hint = f"; {hint}" if hint else ""
        raise ValueError(f"{name} must be in {left}{low:g}, {high:g}{right}, got {result:g}{hint}.")
    return result


def integer(value: Any, name: str, *, low: int) -> int:
    """An integer of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        whole = isinstance(value, float) and value.is_integer()
        cure = f"; write {int(value)}" if whole else ""
        raise TypeError(
            f"{name} must be an integer, got {value!r} of type {type(value).__name__}{cure}."
        )
    if int(value) < low:
        raise ValueError(f"{name} must be at least {low}, got {int(value)}.")
    if int(value) >= 2**62:  # it is counted in 64 bits
        raise ValueError(f"{name} must be below 2^62, got a number of {len(str(value))} digits.")
    return int(value)


def choice(
    value: Any, name: str, known: Sequence[str], elsewhere: Mapping[str, str] | None = None
) -> str:
    """One of the known names; the error lists them and the nearest.

    `elsewhere` has the names that other libraries give to some of them, or a sentence for one.
    """
    if isinstance(value, str) and value in known:
        return value
    same = (elsewhere or {}).get(str(value).casefold(), "")
    near = [same] if same in known else get_close_matches(str(value).casefold(), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if " " in same:
        hint = f" {same}"
    if isinstance(value, type):
        hint = f" Make an object of the class: {value.__name__}(...)."
    names = ", ".join(repr(k) for k in known)
    raise ValueError(f"{name} must be one of {names}; got {value!r}.{hint}")


def function(value: object, name: str, *, optional: bool = False) -> Callable[..., Any] | None:
    """A callable, or None where that is allowed."""
    if value is None and optional:
        return None
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {value!r} of type {type(value).__name__}.")
    return value


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a generator, a RandomState or None."""
    try:
        if isinstance(random_state, bool):
            raise TypeError
        return np.random.default_rng(
            random_state.randint(2**31)
            if isinstance(random_state, np.random.RandomState)
            else random_state
        )
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be None, a non-negative integer, a numpy Generator or a "
            f"RandomState, got {random_state!r}."
        ) from None


def partition(
    blocks: Any, n_coordinates: int, name: str = "blocks", each: str = "coordinate"
) -> tuple[Index, Index]:
    """(members, starts) of a partition given as a list of sizes or of index arrays.

    Block i has the coordinates members[starts[i]:starts[i + 1]]. Errors say `name` and `each`.
    """
    try:
        given = [np.asarray(b) for b in blocks]
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a list of sizes or of index arrays, got {blocks!r}."
        ) from None
    if not given:
        raise ValueError(f"{name} is empty: give at least one of them.")
    empty = [k for k, b in enumerate(given) if b.size == 0]
    if empty:
        raise ValueError(f"Block {empty[0]} of {name} is empty: leave it out.")
    wrong = [b for b in given if b.dtype.kind not in "iu"]
    if wrong:
        raise TypeError(
            f"{name} must hold integers: sizes, or arrays of {each}s; got "
            f"{wrong[0].tolist()!r} of dtype {wrong[0].dtype}."
        )
    if all(b.ndim == 0 for b in given):
        exact = [int(b) for b in given]  # their sum may not fit into 64 bits
        if min(exact) < 1 or sum(exact) != n_coordinates:
            raise ValueError(
                f"The sizes in {name} must be positive and add up to the {n_coordinates} {each}s; "
                f"they add up to {sum(exact)}, the smallest is {min(exact)}. ({name} is a list of "
                f"sizes, or of arrays of {each}s.)"
            )
        sizes = np.array(exact, dtype=np.intp)
        members = np.arange(n_coordinates, dtype=np.intp)
    elif all(b.ndim == 1 for b in given):
        sizes = np.array([b.size for b in given], dtype=np.intp)
        members = np.concatenate(given).astype(np.intp)
        _check_partition(members, n_coordinates, name, each)
    else:
        raise ValueError(
            f"{name} must be all sizes (integers) or all one-dimensional index arrays, got arrays "
            f"of {', '.join(str(d) for d in sorted({b.ndim for b in given}))} dimensions."
        )
    return members, np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def _check_partition(members: Index, n_coordinates: int, name: str, each: str) -> None:
    if members.min() < 0 or members.max() >= n_coordinates:
        raise ValueError(
            f"{name} has {each} {members.min() if members.min() < 0 else members.max()}, "
            f"outside 0..{n_coordinates - 1}."
        )
    count = np.bincount(members, minlength=n_coordinates)
    if count.max() > 1:
        raise ValueError(
            f"{name} overlap: {each} {int(count.argmax())} is in {int(count.max())} of them; "
            f"every {each} must be in exactly one."
        )
    if count.min() == 0:
        raise ValueError(
            f"{name} leave out {each} {int(count.argmin())}; every {each} must be in exactly one."
        )


def refuse_other_names(owner: str, given: Iterable[str], known: Container[str]) -> None:
    """Say what to write for a parameter that `owner` has under another name."""
    for name in given:
        if name in OTHER_NAMES and name not in known:
            raise TypeError(f"{owner} has no parameter {name!r}; write {OTHER_NAMES[name]}.")


def answers_other_names(function: Callable[P, R]) -> Callable[P, R]:
    """The function; called with a parameter that it has under another name, it says which."""
    known = signature(function).parameters
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not known.keys() >= kwargs.keys():
            refuse_other_names(owner, kwargs, known)
        return function(*args, **kwargs)

    return checked
