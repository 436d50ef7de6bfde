"""Losses of the user's, by functions in Python: of one prediction, or of K at once.

All that is known of such a loss is `value`, `derivative`, `conjugate` and gamma > 0. It is solved
in the primal, by full gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from .._base.own import locked
from .._base.validation import Matrix, Vector
from . import shift
from .base import BaseLoss, ScalarLoss, check_classes
from .check import quick_outputs_report
from .per_output import Columns

#: What a user writes.
_PARTS = ("value", "derivative", "conjugate")
#: A step to the other side of the balance is so many times that of Newton's method, and longer by
#: a factor, at most so many times, if it does not get there.
_ACROSS, _LONGER, _TRIALS = 4.0, 8.0, 6


class OwnLoss(ScalarLoss):
    """A loss phi(z, y) of one prediction, by functions of yours: derive from this class.

    A subclass has `name`, `gamma` > 0 (phi is 1/gamma-smooth in z) and three methods, which take
    arrays of one shape and give an array of that shape:

        value(z, y)        phi(z, y)
        derivative(z, y)   its derivative in z
        conjugate(u, y)    phi*(u) = max_z u z - phi(z, y), infinite outside its domain

    Labels are real numbers; -1 and 1 with `margin = True`. With a y of K columns the loss of a
    sample is the sum over them. It is solved by method "afg". `losses.check` compares the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, losses, solve
    >>> class HalfSquare(losses.OwnLoss):
    ...     name, gamma = "half_square", 1.0
    ...     def value(self, z, y):
    ...         return (z - y) ** 2 / 2
    ...     def derivative(self, z, y):
    ...         return z - y
    ...     def conjugate(self, u, y):
    ...         return u**2 / 2 + u * y
    >>> solve(ERM(np.eye(3), [1.0, 2.0, 3.0], HalfSquare(), alpha=0.1)).converged
    True
    """

    margin: bool | None = False
    domain = "the slopes that conjugate(-x, y) is finite at"

    def read_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        return locked(np.array(self.check_labels(y, n))), 1

    def check_use(self, y: Any, s: Vector, K: int, intercept: bool) -> None:
        check_there(self)
        few = y[:5]
        for name in _PARTS:
            got = np.shape(getattr(self, name)(np.zeros(few.size), few))
            if got != few.shape:
                raise ValueError(
                    f"{name} of loss {self!r} must give an array of the shape of its arguments, "
                    f"{few.shape}, got {got}."
                )
        quick_outputs_report(Columns(self), few[:, None], 1).raise_if_wrong()
        super().check_use(y, s, K, intercept)

    def best_shift(self, z: Vector, y: Any, s: Vector, guess: Any) -> Any:
        return float(best_shift(self, z, y, s, np.array([guess]))[0])

    def balance(self, x: Vector, y: Any, s: Vector, z: Vector | None = None) -> Vector:
        return balance(self, x, y, s, z)


class OutputsLoss(BaseLoss):
    """A loss phi(z_i, y_i) of K predictions at once, by functions of yours: derive from this class.

    A subclass has `name`, `gamma` > 0, `value(z, y)`, `derivative(z, y)` and `conjugate(u, y)` for
    (n, K) arrays z and u, with one number, K numbers and one number for each row. Labels are
    classes 0..K-1, unless `check_labels(y, n, K)` says otherwise: it gives (labels, K). It is
    solved by method "afg". `losses.check` compares the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import xlogy
    >>> from apcg import ERM, losses, solve
    >>> class Softmax(losses.OutputsLoss):
    ...     name, gamma = "own_softmax", 1.0
    ...     def value(self, z, y):
    ...         return np.logaddexp.reduce(z, axis=1) - z[np.arange(len(y)), y]
    ...     def derivative(self, z, y):
    ...         p = np.exp(z - np.logaddexp.reduce(z, axis=1, keepdims=True))
    ...         return p - np.eye(z.shape[1])[y]
    ...     def conjugate(self, u, y):
    ...         p = u + np.eye(u.shape[1])[y]
    ...         inside = (p >= 0).all(axis=1) & (abs(p.sum(axis=1) - 1) < 1e-9)
    ...         return np.where(inside, xlogy(p, np.maximum(p, 0)).sum(axis=1), np.inf)
    >>> bool(losses.check(Softmax()))
    True
    """

    domain: Any = "the slopes that conjugate(-x, y) is finite at"

    def check_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        """(labels, K): integers 0..K-1, or an error that says what they should be."""
        return check_classes(y, n, K, self.name)

    def read_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        labels, K = self.check_labels(y, n, K)
        return locked(np.array(labels)), K

    def check_use(self, y: Any, s: Vector, K: int, intercept: bool) -> None:
        check_there(self)
        quick_outputs_report(self, y[:5], K).raise_if_wrong()

    # with K = 1 the arrays of a problem are vectors; value, derivative and conjugate get a column

    def total(self, z: Vector, y: Any, s: Vector) -> float:
        return super().total(_matrix(z), y, s)

    def duals(self, z: Vector, y: Any, s: Vector) -> Vector:
        return super().duals(_matrix(z), y, s).reshape(z.shape)

    def conjugate_total(self, x: Vector, y: Any, s: Vector) -> float:
        return super().conjugate_total(_matrix(x), y, s)

    def best_shift(self, z: Vector, y: Any, s: Vector, guess: Any) -> Any:
        found = best_shift(self, z, y, s, np.broadcast_to(guess, _matrix(z).shape[1]))
        return found if z.ndim > 1 else float(found[0])

    def balance(self, x: Vector, y: Any, s: Vector, z: Vector | None = None) -> Vector:
        return balance(self, x, y, s, z)


def check_there(loss: BaseLoss) -> None:
    """Refuse an own loss that lacks a part."""
    missing = [n for n in _PARTS if getattr(type(loss), n) is getattr(BaseLoss, n)]
    if missing or loss.gamma <= 0:
        raise TypeError(
            "a loss of your own has gamma > 0 and the methods value(z, y), derivative(z, y) and "
            f"conjugate(u, y); {loss!r} has gamma = {loss.gamma:g}"
            + (f" and no {', '.join(missing)}." if missing else ".")
        )


def _matrix(z: Vector) -> Matrix:
    return z if z.ndim > 1 else z[:, None]


# ---- an intercept, by slopes alone ---------------------------------------------------------------


def best_shift(loss: BaseLoss, z: Vector, y: Any, s: Vector, guess: Vector) -> Vector:
    """argmin_b sum_i s_i phi_i(z_i + b), by Newton's method with differences of slopes.

    Where slopes are all but constant, the change over the last step stands for phi''.
    """
    last: list[Vector] = []

    def way(b: Vector, x: Vector, gradient: Vector) -> Vector:
        H, far = _bend(loss, z + b, y, s, b.size), 1e3 * (1 + float(np.abs(b).max()))
        if last:
            moved, turned = b - last[0], gradient - last[1]
            square = float(moved @ moved)
            more = float(moved @ turned) / square - float(moved @ H @ moved) / square
            H += max(more, 0.0) * np.outer(moved, moved) / square
        last[:] = b, gradient
        H += np.eye(b.size) * float(np.abs(gradient).max()) / far
        return np.asarray(-np.linalg.lstsq(H, gradient, rcond=1e-9)[0])

    return shift.newton(loss, z, y, s, np.array(guess, dtype=np.float64), way)


def _bend(loss: BaseLoss, z: Vector, y: Any, s: Vector, K: int) -> Matrix:
    """The second derivatives of sum_i s_i phi_i(z_i + b) in b at 0, by differences of slopes."""
    h = 1e-5 * (1 + float(np.mean(np.abs(z))))
    H = [loss.sums(loss.duals(z - h * e, y, s), y) - loss.sums(loss.duals(z + h * e, y, s), y)
         for e in np.eye(K)]  # fmt: skip
    return (np.array(H) + np.array(H).T) / (4 * h)


def balance(loss: BaseLoss, x: Vector, y: Any, s: Vector, z: Vector | None) -> Vector:
    """A dual feasible point near x whose sum over samples is zero.

    The domain of phi* is not known. But it is convex, and all slopes are in it: if x is that of the
    predictions z, the mean of x and of slopes to the other side of z is feasible. Without z, all x
    are shifted alike, or if phi* is infinite there, scaled down.
    """
    if shift.imbalance(loss.signed(x, y)) <= 1:
        return x
    if z is not None and (found := _mean_of_slopes(loss, x, y, s, z)) is not None:
        return found
    weight = np.broadcast_to(s, len(x)) / np.sum(np.broadcast_to(s, len(x)))
    signed = loss.signed(x, y)
    for _ in range(3):  # once, and again for what rounding left
        signed = signed - np.multiply.outer(weight, signed.sum(axis=0))
    moved = loss.signed(signed, y)  # a sign undoes itself
    if np.isfinite(loss.conjugate_total(moved, y, s)):
        return moved
    return loss.signed(shift.scaled(loss.signed(x, y)), y)


def _mean_of_slopes(loss: BaseLoss, x: Vector, y: Any, s: Vector, z: Vector) -> Vector | None:
    """x + sum_k share_k (x_k - x) in balance, x_k the slopes at z + t_k e_k; None if not found."""
    sums = loss.sums(x, y)
    way = np.linalg.lstsq(_bend(loss, z, y, s, sums.size), sums, rcond=1e-9)[0]
    moves = np.diag(way)[way != 0] * _ACROSS * sums.size
    for _ in range(_TRIALS):
        steps = [loss.duals(z + move, y, s) - x for move in moves]
        R = np.column_stack([loss.sums(step, y) for step in steps] or [np.zeros_like(sums)])
        shares, _ = nnls(R / (np.abs(R).max() or 1.0), -sums / (np.abs(R).max() or 1.0))
        found = x + sum(share * step for share, step in zip(shares, steps, strict=False))
        if shares.sum() <= 1 and shift.imbalance(loss.signed(found, y)) <= 1:
            return np.asarray(found)
        moves = moves * _LONGER
    return None
