"""What a loss phi of ERM is, for one prediction or for K at once: `BaseLoss`.

    one prediction   z, x and y are (n,): `interval`, `logistic`, `own.OwnLoss`
    K predictions    z and x are (n, K): `classes`, `per_output.Columns`, `own.OutputsLoss`

phi is 1/gamma-smooth and 1/eta-strongly convex; gamma = 0 means not smooth, eta = inf not strongly
convex. The dual variable x_i of a sample is s_i times a point of the domain, s_i its weight. The
verbs with s do the dividing by weights, so that nobody else divides by one that is zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base import validation as check
from .._base.own import locked
from .._base.validation import Vector
from .._base.weights import divisor

#: What the compiled sweeps over K outputs call the losses they know.
SOFTMAX, SIMPLEX, COLUMNS, LOGISTIC = 0, 1, 2, 3


class BaseLoss:
    """The verbs that ERM, its intercept and the certificates use.

    Here they are written with `value`, `derivative` and `conjugate` alone; compiled losses have
    faster ones.
    """

    #: what `by_name` and `ERM(..., loss=...)` call it, once it is registered
    name: str
    #: whether it is a function of the margin y a'w (labels -1 and 1) or of real labels; None: of
    #: classes. Dual variables of a loss of margins are premultiplied by the labels.
    margin: bool | None = None
    gamma = 0.0
    eta = math.inf
    #: whether compiled code knows it; methods that call such code need that
    compiled = False
    #: the compiled functions of a loss of one prediction, and whether those are lines and parabolas
    kernel: str | None = None
    in_pieces = False
    #: what the compiled sweeps over K outputs call it; None if they do not know it
    kind: int | None = None
    #: whether it is the sum over K outputs of a loss of one prediction, which it has as `loss`
    by_output = False
    #: where x_i/s_i is: an interval, or words
    domain: Any

    def value(self, z: Any, y: Any) -> Any:
        """phi(z_i, y_i) for each sample"""
        raise NotImplementedError

    def derivative(self, z: Any, y: Any) -> Any:
        """The gradient of phi(z_i, y_i) in z_i for each sample"""
        raise NotImplementedError

    def conjugate(self, u: Any, y: Any) -> Any:
        """`phi*(u_i) = max_z <u_i, z> - phi(z, y_i)` for each sample"""
        raise NotImplementedError

    def read_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        """(labels, K) of n samples, or an error that says what they should be."""
        raise NotImplementedError

    def check_use(self, y: Any, s: Vector, K: int, intercept: bool) -> None:
        """Refuse labels for which no intercept is best, and parts that do not belong together."""

    # ---- sums over samples, and dual variables ---------------------------------------------------

    def total(self, z: Vector, y: Any, s: Vector) -> float:
        """sum_i s_i phi_i(z_i)"""
        return float(np.sum(s * self.value(locked(z), y)))

    def duals(self, z: Vector, y: Any, s: Vector) -> Vector:
        """x = -s phi'(z), the dual point that belongs to the predictions z."""
        return self.signed(np.asarray(-_each(s, z) * self.derivative(locked(z), y)), y)

    def conjugate_total(self, x: Vector, y: Any, s: Vector) -> float:
        """sum_i s_i phi_i*(-x_i/s_i); infinite if x is not dual feasible."""
        u = -self.signed(x, y) / _each(divisor(s), x)
        with np.errstate(all="ignore"):
            values = s * self.conjugate(u, y)
        none = np.broadcast_to(s == 0, values.shape)
        moved = np.any(x.reshape(len(x), -1) != 0, axis=1)
        return float(np.sum(np.where(none, np.where(moved, np.inf, 0.0), values)))

    def signed(self, x: Vector, y: Any) -> Vector:
        """x times the labels for a loss of margins: the coefficients of the samples in A x."""
        return y * x if self.margin else x

    def sums(self, x: Vector, y: Any) -> Vector:
        """sum_i y_i x_i (sum_i x_i without margins), a number for each output."""
        return np.atleast_1d(self.signed(x, y).sum(axis=0))

    def clip(self, x: Vector, y: Any, s: Vector) -> Vector:
        """A dual feasible point near x, the nearest if that is known; for an own loss, x."""
        return x

    # ---- an intercept ----------------------------------------------------------------------------

    def best_shift(self, z: Vector, y: Any, s: Vector, guess: Any) -> Any:
        """The b that is best with the predictions z + b; `guess` is a b that is near."""
        raise NotImplementedError

    def balance(self, x: Vector, y: Any, s: Vector, z: Vector | None = None) -> Vector:
        """A dual feasible point near x whose sum over samples is zero: of y_i x_i, if `margin`.

        If z is given, x is that of the predictions z.
        """
        raise NotImplementedError

    def separates(self, z: Vector, y: Any, s: Vector) -> bool:
        """Whether the loss falls to its infimum, and never gets there, as z grows without end."""
        return False

    # ---- the same loss ---------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items(), key=str))))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({parameters})"


class ScalarLoss(BaseLoss):
    """A loss of one prediction, of a margin or with a real label."""

    margin: bool | None = True

    def check_labels(self, y: Any, n: int) -> Vector:
        """The labels as float64, or an error that says what they should be."""
        cure = "map your classes to -1 and 1, for example np.where(y == positive_class, 1, -1)"
        given = np.asarray(y)
        if self.margin and given.dtype.kind in "OUST":
            raise TypeError(f"y must hold the labels -1 and 1, got dtype {given.dtype}; {cure}.")
        labels = check.vector(y, n, "y", each="row of X").copy()
        if self.margin:
            ups = np.count_nonzero(labels == 1.0)
            if ups + np.count_nonzero(labels == -1.0) < n:
                found = np.unique(labels)
                shown = ", ".join(f"{v:g}" for v in found[:5])
                raise ValueError(
                    f"loss {self.name!r} takes the labels -1 and 1 only, got {shown}"
                    f"{', ...' if found.size > 5 else ''}; {cure}."
                )
            if ups in (0, n):
                raise ValueError(
                    f"y has only one class ({labels[0]:g}): there is nothing to separate. "
                    "Give samples of both classes."
                )
        return labels

    def read_labels(self, y: Any, n: int, K: int | None = None) -> tuple[Any, int]:
        return self.check_labels(y, n), 1

    def check_use(self, y: Any, s: Vector, K: int, intercept: bool) -> None:
        if not (intercept and self.margin) or s.size == 1:  # of both classes, by `check_labels`
            return
        kept = s > 0
        if not (np.any(kept & (y > 0)) and np.any(kept & (y < 0))):
            raise ValueError(
                "only one class has samples of positive weight, and then no intercept is best: "
                "the larger, the better. Give samples of both classes, or intercept=False."
            )


def _each(s: Vector, z: Vector) -> Vector:
    """The weights, so that they multiply z."""
    return s if z.ndim == 1 else s[:, None]


def check_classes(y: Any, n: int, K: int | None, name: str) -> tuple[Any, int]:
    """Labels 0..K-1 as int32, and K."""
    cure = "map your classes to 0..K-1, for example np.unique(y, return_inverse=True)[1]"
    given = np.asarray(y)
    if given.dtype.kind in "OUST":
        raise TypeError(f"y must hold the labels 0..K-1, got dtype {given.dtype}; {cure}.")
    labels = check.vector(y, n, "y", each="row of X")
    whole = np.rint(labels)
    if np.any(labels != whole) or labels.min() < 0:
        wrong = labels[(labels != whole) | (labels < 0)][0]
        raise ValueError(f"loss {name!r} takes the labels 0..K-1, got {wrong:g}; {cure}.")
    most = int(labels.max()) + 1
    if K is None:
        K = most
        if max(n, 2) < K:  # a forgotten mapping would ask for much memory
            raise ValueError(
                f"y has the label {K - 1} and only {n} samples: {K} classes would be more than "
                f"samples; {cure}."
            )
    if most > K:
        raise ValueError(f"y has the label {most - 1}, and there are {K} classes: 0..{K - 1}.")
    if K < 2 or labels.min() == labels.max():
        raise ValueError(
            f"y has only one class ({labels[0]:g}): there is nothing to separate. Give samples of "
            "at least two classes."
        )
    return labels.astype(np.int32), K
