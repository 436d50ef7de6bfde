"""ERM with K outputs: W is (d, K), predictions and dual points (n_samples, K), one certificate.

    primal   P(W) = (1/n) sum_i s_i phi_i(W'a_i) + lambda g(W)
    dual     D(x) = -(1/n) sum_i s_i phi_i*(-x_i/s_i) - lambda g*(V),  V = sum_i a_i x_i'/(lambda n)

which is the problem of `erm` with A_i = a_i (x) I, a matrix, as section 5 of the paper allows. The
conventions are those of `erm`. `ERM(X, y, loss)` makes one of these if the loss is over classes, or
if y has more than one column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .. import losses
from .._base import validation as check
from .._base.checks_outputs import quick_outputs_report
from .._base.elsewhere import refuse_other_names
from .._base.own import is_own, refuse_overrides
from .._base.validation import Matrix, Vector
from .._base.weights import divisor, normalised
from ..losses.outputs import Columns, OutputsLoss
from ..penalties import registry as penalties
from ..penalties.interval import Interval
from . import intercept_outputs as free
from .erm import ERM


def has_outputs(y: Any, loss: Any) -> bool:
    """Whether labels and loss are those of a problem with K outputs."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple):
        shape = (len(y), len(y[0]))
    if shape is not None and len(shape) == 2 and shape[1] > 1:
        return True
    return isinstance(loss, OutputsLoss) or (
        isinstance(loss, str) and loss in losses.names_of_classes()
    )


def class_for(cls: type[ERM], y: Any, loss: Any, given: Iterable[str] = ()) -> type[ERM]:
    """The class of a problem that is made by `cls`. What a class of the user's says is refused.

    So are parameters that are `given` by the names of other libraries.
    """
    refuse_other_names("ERM", given, ("intercept",))
    many = has_outputs(y, loss)
    if not is_own(cls):
        return Outputs if cls is ERM and many else cls
    refuse_overrides(object.__new__(cls), ERM, frozenset(), "Make the problem with ERM(...).")
    if many and not issubclass(cls, Outputs):
        raise TypeError(f"{cls.__name__} has one output; make the problem with ERM(...).")
    return cls


def side_by_side(problems: Sequence[ERM]) -> Outputs:
    """Problems of one output with the same X, weights, loss and penalty as one: their sum."""
    first, K = problems[0], len(problems)
    y = np.ascontiguousarray(np.column_stack([p.y for p in problems]))
    other = object.__new__(Outputs)
    other.__dict__.update(first.__getstate__())
    other.__dict__.update(y=y, K=K, loss=Columns(first.loss))
    other.g = first.interval.over(K)
    return other


def apart(problem: Outputs) -> list[ERM]:
    """The problems that `side_by_side` makes one of: one for each output, over the same X."""
    loss, g, found = problem.loss, problem.g, []
    assert isinstance(loss, Columns)
    assert isinstance(g, Interval)
    for y in np.ascontiguousarray(problem.y.T):
        part = object.__new__(ERM)
        part.__dict__.update(problem.__getstate__())
        part.__dict__.update(y=y, K=1, loss=loss.loss, g=g.over(1))
        found.append(part)
    return found


class Outputs(ERM):
    """A problem with K outputs; made by `ERM`."""

    def _take_labels(self, y: Any) -> None:
        if not isinstance(self.loss, OutputsLoss):
            self.loss = Columns(self.loss)
        self.y, self.K = self.loss.check_labels(y, self.n_samples)

    def _regulariser(self, penalty: Any, l1_ratio: float, positive: bool) -> Any:
        return penalties.of(penalty, l1_ratio, positive, self.d, self.K)

    def _check_classes(self) -> None:
        if self.loss.kind is None and not isinstance(self.loss, Columns):
            missing = [n for n in ("value", "derivative", "conjugate")
                       if getattr(type(self.loss), n) is getattr(OutputsLoss, n)]  # fmt: skip
            if missing or self.loss.gamma <= 0:
                raise TypeError(
                    "a loss of your own with K outputs has gamma > 0 and the methods value(z, y), "
                    f"derivative(z, y) and conjugate(u, y); {self.loss!r} has gamma = "
                    f"{self.loss.gamma:g}" + (f" and no {', '.join(missing)}." if missing else ".")
                )
            few = min(self.n_samples, 5)
            quick_outputs_report(self.loss, self.y[:few], self.K).raise_if_wrong()
        if self.loss.gamma == 0 and self.soft is None:
            raise ValueError(
                f"loss {self.loss.name!r} is not smooth, and with K outputs it takes penalty "
                f'"l2" or "elasticnet" only, the same for all entries of W and without bounds, got '
                f"{self.penalty}. Take one of these, or a smooth loss: "
                '"multinomial", losses.MulticlassHinge(gamma=1.0), "smoothed_hinge" or "huber"; or '
                'solve for one output at a time, if the loss is a sum over them (with "l1" too).'
            )
        if not self.intercept:
            return
        if isinstance(self.loss, Columns):
            if self.loss.loss.margin:
                kept = np.broadcast_to(self.weights > 0, self.n_samples)[:, None]
                both = np.any(kept & (self.y > 0), axis=0) & np.any(kept & (self.y < 0), axis=0)
                if not both.all():
                    raise ValueError(
                        f"column {int(np.flatnonzero(~both)[0])} of y has only one class with "
                        "samples of positive weight, and then no intercept is best."
                    )
            return
        each = np.bincount(self.y, np.broadcast_to(self.weights, self.n_samples), minlength=self.K)
        if np.any(each == 0):
            raise ValueError(
                f"no sample of class {int(np.flatnonzero(each == 0)[0])} has a positive weight, "
                "and then no intercept is best: the smaller, the better. Leave the class out, or "
                "take intercept=False."
            )

    def with_labels(self, y: Any, sample_weight: Any = None) -> Outputs:
        """The same problem, sharing X, with other labels and weights, and as many outputs."""
        weights, n = normalised(sample_weight, self.n_samples)
        labels, K = self.loss.check_labels(y, self.n_samples, self.K)
        other = self.altered(y=labels, K=K, weights=weights, n=n)
        other._check_classes()
        assert isinstance(other, Outputs)
        return other

    # ---- constants --------------------------------------------------------------------------

    @property
    def separable(self) -> bool:
        """Whether g is a sum over the entries of W."""
        return bool(self.g.separable)

    @property
    def soft(self) -> tuple[float, float] | None:
        """(a, b) if g is the same a|w| + (b/2)w^2 for all entries of W, b > 0; else None."""
        found: tuple[float, float] | None = getattr(self.g, "soft", None)
        return found

    @cached_property
    def squared_norms(self) -> Vector:
        b = np.asarray(self.g.b).reshape(-1)
        if b.size == 1 or not self.dual_form:
            return self.samples.squared_norms()
        return self.samples.squared_norms(b.min() / b)

    @property
    def L(self) -> Vector:
        """|a_i|^2/(lambda n^2) + gamma/(n s_i), the constants of the blocks x_i of the dual."""
        if not self.dual_form:
            raise ValueError("L_i are those of the dual, and g is not strongly convex.")
        own = self.loss.gamma / (self.n * divisor(self.weights))
        return np.asarray(self.squared_norms / (self.strong_convexity * self.n**2) + own)

    @property
    def form(self) -> Any:
        """The kernels of one output do not know K of them."""
        raise ValueError("a problem with K outputs has no form over single coordinates.")

    # ---- values -----------------------------------------------------------------------------

    def check_w(self, w: Any, name: str = "w") -> Matrix:
        return _matrix(w, (self.d, self.K), name)

    def check_x(self, x: Any, name: str = "x") -> Matrix:
        return _matrix(x, (self.n_samples, self.K), name)

    def check_b(self, b: Any, name: str = "intercept", **bounds: Any) -> Vector:
        """K numbers; one number stands for K of it."""
        given = check.to_array(b, name)
        if given.shape not in ((), (self.K,)) or not np.isfinite(given).all():
            raise ValueError(f"{name} must be {self.K} numbers, got {b!r}.")
        for number in given.reshape(-1):
            check.number(number, name, **bounds)
        return np.array(np.broadcast_to(given, self.K), dtype=np.float64)

    def primal(self, w: Any, intercept: Any = 0.0) -> float:
        """P(W), or P(W, b)"""
        w, b = self.check_w(w), self.check_b(intercept)
        if b.any() and not self.intercept:
            raise ValueError(
                f"this problem has no intercept, got {b}; make it ERM(..., intercept=True)."
            )
        return self.primal_from(w, self.samples.times(w) + b)

    def primal_from(self, w: Matrix, z: Matrix) -> float:
        """P(W), given the predictions z = X W, or X W + b."""
        if z.shape != (self.n_samples, self.K):
            raise ValueError(f"z must have the shape {(self.n_samples, self.K)}, got {z.shape}.")
        return float(self.loss_total(z) / self.n + self.alpha * self.g.value(w))

    def loss_total(self, z: Matrix) -> float:
        """sum_i s_i phi_i(z_i)"""
        return float(self.loss.total(z, self.y, self.weights))

    def dual(self, x: Any) -> float:
        """D(x); -inf if x is not dual feasible."""
        x = self.check_x(x)
        if self.intercept and self.imbalance(x) > 1:
            return -math.inf
        return self.dual_from(x, self.v_of(x))

    def imbalance(self, x: Matrix) -> float:
        return free.imbalance(self.signed(x))

    def signed(self, x: Matrix) -> Matrix:
        signed = isinstance(self.loss, Columns) and self.loss.loss.margin
        return self.y * x if signed else x

    def v_of(self, x: Matrix) -> Matrix:
        # x is small beside A x, which would be copied to divide it
        return self.samples.adjoint(self.signed(x) / (self.alpha * self.n))

    def dual_from(self, x: Matrix, v: Matrix) -> float:
        """D(x), given v = A x/(lambda n)."""
        return float(-self.conjugate_total(x) / self.n - self.alpha * self.g.conjugate(v))

    def conjugate_total(self, x: Matrix) -> float:
        """sum_i s_i phi_i*(-x_i/s_i)"""
        return float(self.loss.total_conjugate(x, self.y, self.weights))

    def gap(self, x: Any, w: Any = None, intercept: Any = None) -> float:
        """P(W) - D(x) >= 0, with W = omega(x) unless given, and the b that is best for that W."""
        x = self.check_x(x)
        w = self.omega(x) if w is None else self.check_w(w)
        if intercept is None:
            intercept = self.best_shift(self.samples.times(w)) if self.intercept else 0.0
        return self.primal(w, intercept) - self.dual(x)

    def best_intercept(self, z: Any, guess: Any = 0.0) -> Any:
        """The b that is best with the predictions z + b; sum_k b_k = 0 for a loss over classes."""
        return self.best_shift(self.check_x(z, "z"), self.check_b(guess, "guess"))

    def best_shift(self, z: Matrix, guess: Any = 0.0) -> Any:
        guess = np.array(np.broadcast_to(np.asarray(guess, float), self.K))
        return free.best(self.loss, self.y, self.weights, z, guess)

    def balanced(self, x: Matrix) -> Matrix:
        return free.balance(self.loss, self.y, self.weights, x)

    def into_domain(self, x: Any) -> Matrix:
        """A dual feasible point near x."""
        return np.asarray(self.loss.clip(self.check_x(x), self.y, self.weights))

    def refine(self, x: Any) -> Matrix:
        """Of one output only."""
        raise ValueError("refine is for problems with one output.")

    def pdgbound(self, x: Any) -> float:
        """Of one output only."""
        raise ValueError("pdgbound is for problems with one output.")

    def __repr__(self) -> str:
        return super().__repr__().replace("ERM(", f"ERM({self.K} outputs, ", 1)


def _matrix(given: Any, shape: tuple[int, int], name: str) -> Matrix:
    array = check.to_array(given, name)
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {array.shape}.")
    array = np.ascontiguousarray(array, dtype=np.float64)
    check.check_finite(array.reshape(-1), name)
    return array
