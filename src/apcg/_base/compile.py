"""A user's scalar function as a C function pointer, for the kernels."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeAlias

import scipy

#: f(t, a), as users give it: a is the entry of `data`.
Function: TypeAlias = "Callable[[float, float], float] | scipy.LowLevelCallable"
#: prox(v, step, a)
ProxFunction: TypeAlias = "Callable[[float, float, float], float] | scipy.LowLevelCallable"
#: An address, and what keeps the code behind it alive.
Pointer: TypeAlias = tuple[int, object]

ADVICE = (
    "give a plain Python function of numbers that numba can compile (pip install 'apcg[numba]'), "
    "or a scipy.LowLevelCallable"
)


def pointer(function: Function | ProxFunction, arguments: int, name: str) -> Pointer:
    """(address, owner) of `double f(double, ..., const double *theta)`.

    A Python function f(t, ..., a) takes `arguments` numbers and then its one parameter a, which is
    theta[0] on the C side; a LowLevelCallable takes the pointer itself. The owner must be kept
    alive as long as the address is used.
    """
    if isinstance(function, scipy.LowLevelCallable):
        return _low_level(function, arguments, name), function
    if not inspect.isfunction(function):
        raise TypeError(f"{name} must be a function, got {function!r}: {ADVICE}.")
    taken = len(inspect.signature(function).parameters)
    if taken != arguments + 1:
        raise TypeError(
            f"{name} must take {arguments + 1} numbers (the last is the entry of `data`), "
            f"got a function of {taken}."
        )
    return _numba(function, arguments, name)


def _numba(function: Callable[..., float], arguments: int, name: str) -> Pointer:
    try:
        import numba
    except ImportError:
        raise ImportError(
            f"{name} is a Python function and numba is not installed: {ADVICE}."
        ) from None
    scalar = numba.njit(function)
    double, data = numba.types.float64, numba.types.CPointer(numba.types.float64)
    signature = double(*[double] * arguments, data)
    if arguments == 1:

        def call(t, theta):  # type: ignore[no-untyped-def]
            return scalar(t, theta[0])
    else:

        def call(v, step, theta):  # type: ignore[no-untyped-def,misc]
            return scalar(v, step, theta[0])

    try:
        compiled = numba.cfunc(signature)(call)
    except Exception as error:  # numba lets through whatever looking up the function's names raises
        raise TypeError(
            f"numba could not compile {name}; keep it to arithmetic, math.* and branches, and "
            f"return a float. Its complaint: {_gist(str(error))}"
        ) from error
    assert compiled.address is not None  # it is compiled
    return compiled.address, compiled


def _gist(complaint: str) -> str:
    """The first line of numba's that says something of the function."""
    complaint = re.sub(r"\x1b\[[\d;]*m", "", complaint)  # colours, where colorama is installed
    lines = [line.strip() for line in complaint.splitlines()]
    telling = [x for x in lines if x and not x.startswith(("Failed in", "During:", "File"))]
    return telling[0] if telling else complaint


def _low_level(function: scipy.LowLevelCallable, arguments: int, name: str) -> int:
    import ctypes

    wanted = ["double"] * arguments
    signature = function.signature.replace("const ", "").replace(" ", "")
    expected = f"double({','.join([*wanted, 'double*'])})"
    if signature != expected:
        raise TypeError(
            f"{name} must have the C signature {expected}, got {function.signature}; the pointer "
            "at the end is to the entry of `data`."
        )
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = tuple.__getitem__(function, 0)
    address: int = get(capsule, function.signature.encode())
    return address
