"""Regularised empirical risk minimisation, section 5 of the paper.

    primal   P(w) = (1/n) sum_i s_i phi_i(A_i' w) + lambda g(w)                       (erm-primal)
    dual     D(x) = -(1/n) sum_i s_i phi_i*(-x_i/s_i) - lambda g*(A x/(lambda n))       (erm-dual)

A_i is the sample a_i times its label for a loss of margins, and a_i for a loss of residuals, where
phi_i(z) = phi(z - y_i). s_i are sample weights, rescaled to sum to n; without them s_i = 1.
g(w) = sum_j a_j|w_j| + (b_j/2)w_j^2 on [lower_j, upper_j] covers L2, L1, elastic net and w >= 0.
With b > 0 the dual is solved, otherwise the primal. `intercept` has what a free intercept changes.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from . import _validation as check
from . import intercept as free
from . import losses
from ._kernels.matrix import inner
from ._kernels.terms import Outer, Psi
from ._validation import Vector
from .data import by_row
from .functions import largest_singular_value_squared
from .problem import Composite, Smooth, Terms
from .regulariser import Regulariser


class ERM:
    """minimize P(w) = the mean over i of s_i phi(a_i' w, y_i) + alpha g(w)

    phi is the loss of sample a_i (a row of X) with label y_i, s_i its weight (1 without
    `sample_weight`), g the penalty.

    Parameters
    ----------
    X : samples by features, dense or any SciPy sparse format, float32 or float64. Not copied if it
        is CSR or C-ordered already, and never changed.
    y : labels: -1 and 1 for the hinge family and logistic, real numbers for the others.
    loss : "hinge", "smoothed_hinge", "squared_hinge", "logistic", "squared", "huber",
        "epsilon_insensitive", or an object of `apcg.losses`.
    penalty : "l2", (1/2)|w|^2; "l1", |w|_1; "elasticnet", l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2;
        or an object of `apcg.penalties`, which is then g.
    alpha : the paper's lambda, positive. For the C of scikit-learn's LinearSVC and
        LogisticRegression it is 1/(C n); for Lasso and ElasticNet it is their alpha.
    sample_weight : non-negative; rescaled to sum to n. Rows of weight zero are left out (their
        x_i is 0).
    l1_ratio : for "elasticnet".
    positive : keep w >= 0.
    intercept : whether predictions are a_i' w + b, with an intercept b that no penalty is on. Dual
        points then have sum_i y_i x_i = 0 (sum_i x_i = 0 for a loss of residuals).

    Attributes
    ----------
    n, d : samples of positive weight, features
    n_samples : all rows of X, the length of x
    L : the constants L_i of the coordinates that are solved for
    R : max_i sqrt(s_i)|a_i|, the paper's R
    mu : alpha gamma n/(R^2 + alpha gamma n), the convexity parameter of Theorem 2
    condition_number : R^2/(alpha gamma)
    dual_form : whether g is strongly convex, so that the dual is solved

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM
    >>> X = np.array([[1.0, 0.2], [0.8, -0.5], [-1.0, 0.3], [-0.6, -0.4]])
    >>> problem = ERM(X, [1, 1, -1, -1], loss="hinge", alpha=0.1)
    >>> problem.primal(np.zeros(2)), problem.dual(np.zeros(4))
    (1.0, 0.0)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: Any = "smoothed_hinge",
        penalty: Any = "l2",
        alpha: float = 1e-4,
        sample_weight: Any = None,
        l1_ratio: float = 0.5,
        positive: bool = False,
        intercept: bool = False,
    ) -> None:
        self.loss = losses.by_name(loss)
        self.alpha = _alpha(alpha)
        self.samples = by_row(X, "X")
        self.n_samples, self.d = self.samples.n_coordinates, self.samples.n_rows
        self.y = self.loss.check_labels(y, self.n_samples)
        self.weights, self.n = _weights(sample_weight, self.n_samples)
        self.g = Regulariser.of(penalty, l1_ratio, positive, self.d)
        self.penalty = penalty if isinstance(penalty, str) else repr(penalty)
        self.dual_form = self.g.strong_convexity > 0
        if not isinstance(intercept, bool | np.bool_):
            raise TypeError(f"intercept must be True or False, got {intercept!r}.")
        self.intercept = bool(intercept)
        self._check_classes()
        if not math.isfinite(self.R):
            raise ValueError(
                "X has rows whose squared norm overflows; scale its features (to a standard "
                "deviation of 1, say)."
            )
        if not self.dual_form:
            self._check_primal_form()

    def _check_primal_form(self) -> None:
        if self.loss.gamma == 0:
            raise ValueError(
                f"loss {self.loss.name!r} is not smooth and penalty {self.penalty} is not strongly "
                "convex, so neither the primal nor the dual has a smooth part. Take a smooth loss "
                '("smoothed_hinge", "squared_hinge", "huber"), or penalty "elasticnet".'
            )
        if self.g.leaves_free:
            raise ValueError(
                "penalty leaves features without any penalty or bounds, and then no duality gap "
                "is finite; give each a positive weight."
            )

    def _check_classes(self) -> None:
        if not (self.intercept and self.loss.margin):
            return
        kept = np.broadcast_to(self.weights > 0, self.y.shape)
        if np.unique(self.y[kept]).size < 2:
            raise ValueError(
                "only one class has samples of positive weight, and then no intercept is best: "
                "the larger, the better. Give samples of both classes, or intercept=False."
            )

    def with_alpha(self, alpha: float) -> ERM:
        """The same problem, sharing all data, with another alpha."""
        return self.altered(alpha=_alpha(alpha))

    def with_labels(self, y: Any, sample_weight: Any = None) -> ERM:
        """The same problem, sharing X, with other labels and weights."""
        weights, n = _weights(sample_weight, self.n_samples)
        labels = self.loss.check_labels(y, self.n_samples)
        other = self.altered(y=labels, weights=weights, n=n)
        other._check_classes()
        return other

    def altered(self, **changes: Any) -> ERM:
        """A copy that shares all data, with other attributes."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__getstate__())
        if set(changes) != {"alpha"}:
            for name in ("R", "_squared_norms", "spectral_norm"):
                other.__dict__.pop(name, None)
        other.__dict__.update(changes)
        return other

    separable = True

    # ---- constants --------------------------------------------------------------------------

    @property
    def strong_convexity(self) -> float:
        """lambda times the strong convexity of g; it takes the place of lambda in the theorems."""
        return self.alpha * self.g.strong_convexity

    @cached_property
    def _squared_norms(self) -> Vector:
        """sum_j A_ji^2 (b_min/b_j): the squared norms |A_i|^2 if g is L2."""
        b = self.g.b
        if b.size == 1 or not self.dual_form:
            return self.samples.squared_norms()
        return self.samples.squared_norms(b.min() / b)

    @cached_property
    def R(self) -> float:
        """max_i sqrt(s_i)|A_i|"""
        return math.sqrt(float(np.max(self.weights * self._squared_norms)))

    @property
    def mu(self) -> float:
        """lambda gamma n/(R^2 + lambda gamma n); 0 for a loss that is not smooth, and for L1."""
        strength = self.strong_convexity * self.loss.gamma * self.n
        return strength / (self.R**2 + strength) if strength > 0 else 0.0

    @property
    def condition_number(self) -> float:
        """R^2/(lambda gamma)"""
        below = self.strong_convexity * self.loss.gamma
        return self.R**2 / below if below > 0 else math.inf

    @property
    def L(self) -> Vector:
        """L_i of the form that is solved: |A_i|^2/(lambda n^2) + gamma/(n s_i) in the dual."""
        return self.form.L

    @cached_property
    def spectral_norm(self) -> float:
        """|A|_2 (with rows times sqrt(s_i)), by Lanczos to 1e-3, enlarged by that."""
        return math.sqrt(largest_singular_value_squared(self.samples, np.sqrt(self.weights)))

    # ---- values -----------------------------------------------------------------------------

    # What is given to a public method is checked. Those with an underscore are for loops: they take
    # vectors of the right length, and let through what is not finite. `samples.tdot(w)` is X w.

    def _features(self, w: Any) -> Vector:
        return check.vector(w, self.d, "w", each="column of X")

    def _rows(self, x: Any, name: str = "x") -> Vector:
        return check.vector(x, self.n_samples, name, each="row of X")

    def predictions(self, w: Any) -> Vector:
        """a_i' w for every sample."""
        return self.samples.tdot(self._features(w))

    def primal(self, w: Any, intercept: float = 0.0) -> float:
        """P(w), or P(w, b)"""
        w = self._features(w)
        b = check.number(intercept, "intercept")
        if b != 0 and not self.intercept:
            raise ValueError(
                f"this problem has no intercept, got {b:g}; make it ERM(..., intercept=True)."
            )
        return self.primal_from(w, self.samples.tdot(w) + b)

    def primal_from(self, w: Vector, z: Vector) -> float:
        """P(w), given the predictions z = X w, or X w + b."""
        check.check_length(z, self.n_samples, "z")
        total = self.loss.arrays.total(z, self.y, self.loss.margin, self.weights)
        return float(total / self.n + self.alpha * self.g.value(w))

    def dual(self, x: Any) -> float:
        """D(x); -inf if x is not dual feasible."""
        x = self._rows(x)
        if self.intercept and free.imbalance(self.y * x if self.loss.margin else x) > 1:
            return -math.inf
        return self.dual_from(x, self._combine(x))

    def combine(self, x: Any) -> Vector:
        """v = A x/(lambda n)"""
        return self._combine(self._rows(x))

    def _combine(self, x: Vector) -> Vector:
        signed = self.y * x if self.loss.margin else x
        return self.samples.dot(signed) / (self.alpha * self.n)

    def dual_from(self, x: Vector, v: Vector) -> float:
        """D(x), given v = A x/(lambda n)."""
        check.check_length(x, self.n_samples, "x")
        total = 0.0 - self.loss.arrays.total_conjugate(x, self.weights)
        if not self.loss.margin:
            total += inner(self.y, x)
        return float(total / self.n - self.alpha * self.g.conjugate(v))

    def omega(self, x: Any) -> Vector:
        """grad g*(A x/(lambda n)), the primal point of a dual one (equation omega)."""
        if not self.dual_form:
            raise ValueError(
                "omega(x) has no meaning for this penalty: g is not strongly convex, so g* has no "
                "gradient. The primal is solved instead; see r.w."
            )
        return self.g.conjugate_gradient(self.combine(x))

    def gap(self, x: Any, w: Any = None, intercept: float | None = None) -> float:
        """P(w) - D(x) >= 0, with w = omega(x) unless given, and the b that is best for that w."""
        x = self._rows(x)
        w = self.omega(x) if w is None else self._features(w)
        if intercept is None:
            intercept = self._best_intercept(self.samples.tdot(w)) if self.intercept else 0.0
        return self.primal(w, intercept) - self.dual(x)

    def best_intercept(self, z: Any, guess: float = 0.0) -> float:
        """The b that is best with the predictions z + b; the middle if it is an interval."""
        return self._best_intercept(self._rows(z, "z"), check.number(guess, "guess"))

    def _best_intercept(self, z: Vector, guess: float = 0.0) -> float:
        return free.best(self.loss, self.y, self.weights, z, guess)

    def balance(self, x: Any) -> Vector:
        """A dual feasible point near x with sum_i y_i x_i = 0, which an intercept asks for."""
        return self._balance(self._rows(x))

    def _balance(self, x: Vector) -> Vector:
        return free.balance(self.loss, self.y, self.weights, x)

    def dual_point(self, z: Any, *, exact: bool = False) -> tuple[Vector, Vector]:
        """A feasible x from predictions z = X w, and v = A x/(lambda n).

        x = -s phi'(z), scaled down if g* would be infinite (the bound |v_j| <= a_j of L1). With
        `exact`, v is computed from that x, and x scaled again until it is feasible as it stands.
        """
        return self._dual_point(self._rows(z, "z"), exact)

    def _dual_point(self, z: Vector, exact: bool) -> tuple[Vector, Vector]:
        x = -self.weights * self.loss.arrays.derivative(self.loss.argument(z, self.y))
        x = self._balance(x) if self.intercept else x
        v = self._combine(x)
        slack = 1e-15 if exact else 1e-12  # for what rounding may add to v
        while (excess := self.g.excess(v)) > 1:
            x, v = x / (excess * (1 + slack)), v / (excess * (1 + slack))
            if not exact:
                break
            v, slack = self._combine(x), 100 * slack
        return x, v

    def into_domain(self, x: Any) -> Vector:
        """The dual feasible point nearest to x."""
        return self._into_domain(self._rows(x))

    def _into_domain(self, x: Vector) -> Vector:
        low, high = self.loss.domain
        return self.weights * np.clip(x / np.where(self.weights > 0, self.weights, 1.0), low, high)

    # ---- primal recovery, section 5.1 ---------------------------------------------------------

    def refine(self, x: Any) -> Vector:
        """T(x), the proximal full gradient step of Theorem 4, with the simple splitting.

        argmin_T <grad f(x), T> + (|A|^2/(2 lambda n^2))|T - x|^2 + Psi(T), where
        Psi(T) = (1/n) sum_i s_i phi_i*(-T_i/s_i).
        """
        self._no_intercept("refine")
        x = self._rows(x)
        z = self.samples.tdot(self.omega(x))
        gradient = self.loss.argument(z, self.y) / self.n
        # In units of s_i the step is the same for all: |T - x|^2 above is sum_i (T_i - x_i)^2/s_i.
        kept = np.broadcast_to(self.weights > 0, x.shape)
        s = np.where(kept, self.weights, 1.0)
        c = self.strong_convexity * self.n**2 / max(self.spectral_norm**2, 1e-300)
        step = c / self.n
        shrink = 1 + self.loss.gamma * step
        v = (x / s - c * gradient) / shrink
        T = s * self.loss.arrays.dual_prox(v, np.full(x.size, step / shrink))
        return np.where(kept, T, 0.0)

    def pdgbound(self, x: Any) -> float:
        """Lemma 4: P(omega(x)) - D(x) <= (1/(2 n gamma)) sum_i s_i (A_i' w - a_i)^2.

        a_i is the point of the subdifferential of phi_i* at -x_i/s_i nearest to A_i' w. Infinite
        for a loss that is not smooth.
        """
        self._no_intercept("pdgbound")
        x = self._rows(x)
        if self.loss.gamma == 0 or not math.isfinite(self.dual(x)):
            return math.inf
        z = self.samples.tdot(self.omega(x))
        m = self.loss.argument(z, self.y)
        s = np.broadcast_to(self.weights, x.shape)
        kept = s > 0
        inside = np.clip(x[kept] / s[kept], *self.loss.domain)  # a rounding may be outside
        a = self.loss.nearest_conjugate_slope(inside, m[kept])
        return float(np.sum(s[kept] * (m[kept] - a) ** 2) / (2 * self.n * self.loss.gamma))

    def _no_intercept(self, name: str) -> None:
        if self.intercept:
            raise ValueError(
                f"{name} is for problems without an intercept: see Theorem 4, Lemma 4."
            )

    # ---- the problem as the kernels solve it ----------------------------------------------------

    @cached_property
    def form(self) -> Composite:
        """The dual, or the primal if g is not strongly convex, as f + Psi over coordinates."""
        if self.intercept:
            bordered: ERM = free.bordered(self) if self.dual_form else free.unpenalised(self)
            return bordered.form
        form = self._dual() if self.dual_form else self._primal()
        if not np.isfinite(form.L).all():
            raise ValueError(
                f"the constants L_i overflow: X is too large for alpha = {self.alpha:g}; scale the "
                "features, or take a larger alpha."
            )
        return form

    def _dual(self) -> Composite:
        """Equation (splitting): f has g* and (gamma/(2n)) sum_i x_i^2/s_i, psi_i the rest."""
        n, lam, gamma = self.n, self.alpha, self.loss.gamma
        if self.g.is_l2:
            outer = Outer("square", weight=[1 / (self.strong_convexity * n**2)])
        else:
            outer = Outer("support", weight=[lam], sign=[1 / (lam * n)], theta=self.g.theta)
        s = self.weights if self.weights.all() else np.where(self.weights > 0, self.weights, 1.0)
        f = Smooth(
            self.samples,
            outer,
            1 / (self.strong_convexity * n**2),
            self._squared_norms,
            sign=self.y if self.loss.margin else None,
            c=None if self.loss.margin else -self.y / n,
            sigma=gamma / (n * s) if s.size > 1 else gamma / n,
        )
        terms = Psi(
            "dual:" + self.loss.kernel, [self.loss.theta], weight=1 / n, scale=s, gamma=gamma
        )
        return Composite(f, Terms(terms), self.n_samples)

    def _primal(self) -> Composite:
        """Coordinates are the weights w_j, columns those of X, h_i = s_i phi_i/n."""
        b = self.g.b
        features = self.samples.transposed  # a copy of X
        outer = Outer(
            self.loss.kernel,
            weight=self.weights / self.n,
            sign=self.y if self.loss.margin else (1.0,),
            theta=[self.loss.theta],
        )
        smoothness = 1 / (self.loss.gamma * self.n)
        weights = None if self.weights.size == 1 else self.weights
        f = Smooth(
            features,
            outer,
            smoothness,
            features.squared_norms(weights),
            shift=None if self.loss.margin else self.y,
            sigma=self.alpha * (b if b.size > 1 else float(b[0])),
        )
        theta = self.g.theta * [self.alpha, 0.0, 1.0, 1.0]  # the square is in f
        return Composite(f, Terms(Psi("interval", theta)), self.d)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "form"}  # made again when needed

    def __repr__(self) -> str:
        return (
            f"ERM({self.n} samples, {self.d} features, {self.samples.nnz} stored, loss="
            f"{self.loss!r}, penalty={self.penalty}, alpha={self.alpha:g})"
        )


def _alpha(alpha: Any) -> float:
    hint = "for next to no penalty take 1e-8, say"
    return check.number(alpha, "alpha", low=0.0, open_low=True, hint=hint)


def _weights(sample_weight: Any, n_samples: int) -> tuple[Vector, int]:
    """Weights that sum to the number n of samples that have any, and n; [1.0] if none are given."""
    if sample_weight is None:
        return np.ones(1), n_samples
    weights = check.vector(sample_weight, n_samples, "sample_weight", each="row of X")
    if weights.min() < 0:
        raise ValueError(
            f"sample_weight must not be negative, got {weights.min():g} at {int(weights.argmin())}."
        )
    if weights.max() == 0:
        raise ValueError("sample_weight is zero everywhere: at least one must be positive.")
    weights = weights / weights.max()  # only ratios matter; the sum cannot overflow now
    n = int(np.count_nonzero(weights))
    weights *= n / weights.sum()
    return weights, n
