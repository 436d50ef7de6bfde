"""Regularised empirical risk minimisation, section 5 of the paper.

    primal   P(w) = (1/n) sum_i s_i phi_i(A_i' w) + lambda g(w)                     (42: erm-primal)
    dual     D(x) = -(1/n) sum_i s_i phi_i*(-x_i/s_i) - lambda g*(A x/(lambda n))     (43: erm-dual)

If g is strongly convex the dual is solved, otherwise the primal. `forms` has the two forms.

Conventions
-----------
X   (n_samples, d)   the data: sample a_i is row i. It is never copied to multiply it by labels.
y   (n_samples,)     labels: -1 and 1 for a loss of margins, real numbers for one of residuals
s   (n_samples,)     sample weights that sum to n, the number of positive ones; [1.0] if none given
w   (d,)             the primal point
b   a number         the intercept, 0.0 without one; it is not an entry of w
z   (n_samples,)     predictions X w + b
m   (n_samples,)     margins y_i z_i, with phi_i(z) = phi(y_i z) and A_i = y_i a_i; or residuals
                     z_i - y_i, with phi_i(z) = phi(z - y_i) and A_i = a_i
x   (n_samples,)     the dual point, labels premultiplied: x_i/s_i is in `loss.domain`, and x_i = 0
                     where s_i = 0. With an intercept sum_i y_i x_i = 0, or sum_i x_i = 0.
v   (d,)             A x/(lambda n); w = grad g*(v) at the optimum

With K > 1 outputs W is (d, K), the intercepts (K,), predictions and x (n_samples, K) and v (d, K),
which is the same problem with A_i = a_i (x) I, a matrix, as section 5 of the paper allows. s stays
a vector, and so does y for a loss over classes. K comes from the loss and the labels.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, cast

import numpy as np

from .. import losses
from .._base import memory
from .._base import validation as check
from .._base.own import is_own, refuse_overrides
from .._base.validation import Vector, answers_other_names
from .._base.weights import divisor, normalised
from ..data import Matrix
from ..data.mapped import samples_of
from ..data.spectra import largest_singular_value_squared
from ..losses.per_output import with_labels
from ..losses.shift import imbalance
from ..penalties.base import NOT_SEPARABLE, Regulariser, shown
from ..penalties.interval import Interval
from ..penalties.registry import of as regulariser_of
from . import forms, no_penalty, recovery
from . import intercept as free
from .composite import Composite

#: Rows whose squared norm is below this share of the largest move nothing.
NEXT_TO_NOTHING = 1e-250


class ERM:
    """minimize P(w) = the mean over i of s_i phi(a_i' w, y_i) + alpha g(w)

    phi is the loss of sample a_i (a row of X) with label y_i, s_i its weight (1 without
    `sample_weight`), g the penalty.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features), or path
        Dense or any SciPy sparse format, float32 or float64; not copied if it is CSR or C-ordered.
        Or data on disk: a folder by `apcg convert`, a `datasets.OnDisk`; y may be left out then.
    y : array of shape (n_samples,) or (n_samples, K)
        Labels: -1 and 1 for the hinge family and logistic, real numbers for the others.
    loss : str or Loss, default="smoothed_hinge"
        "hinge", "smoothed_hinge", "squared_hinge", "logistic", "squared", "huber",
        "epsilon_insensitive", a name you have registered, or an object of `apcg.losses`.
    penalty : str, Penalty or None, default="l2"
        "l2", (1/2)|w|^2; "l1", |w|_1; "elasticnet", l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2; an
        object of `apcg.penalties`, which is then g; or a g of your own, for method "afg", as
        `apcg.penalties.base` describes it. None is no penalty.
    alpha : float
        The paper's lambda: 1/(C n) for LinearSVC's C, the alpha of Lasso. 0 is none: see `box`.
    sample_weight : array of shape (n_samples,), default=None
        Non-negative; rescaled to sum to n. Rows of weight zero are left out: x_i = 0.
    l1_ratio : float, default=0.5
        The share of L1 in "elasticnet".
    positive : bool or (lower, upper), default=False
        Keep w >= 0, or within bounds: numbers, or arrays with one for each feature.
    intercept : bool, default=False
        Whether predictions are a_i' w + b, b without penalty; sum_i y_i x_i (or x_i) is then 0.

    Attributes
    ----------
    n, d, n_samples, K : int
        Samples of positive weight, features, all rows of X (the length of x), outputs.
    L, R, mu, condition_number : array and floats
        The L_i of the coordinates that are solved for; max_i sqrt(s_i)|a_i|;
        alpha gamma n/(R^2 + alpha gamma n), the mu of Theorem 2; R^2/(alpha gamma).
    dual_form, separable : bool
        Whether g is strongly convex, so that the dual is solved; whether g is a sum over features.
    box : array
        Features without a penalty are certified on a wide box, |w_j| <= box_j: no point of it is
        better than the answer by more than the gap. `reach` is the size of its predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM
    >>> X = np.array([[1.0, 0.2], [0.8, -0.5], [-1.0, 0.3], [-0.6, -0.4]])
    >>> problem = ERM(X, [1, 1, -1, -1], loss="hinge", alpha=0.1)
    >>> problem.primal(np.zeros(2)), problem.dual(np.zeros(4))
    (1.0, 0.0)
    """

    loss: Any
    g: Regulariser
    penalty: str
    K: int
    dual_form: bool
    intercept: bool
    reach: float

    @answers_other_names
    def __init__(
        self,
        X: Any,
        y: Any = None,
        loss: Any = "smoothed_hinge",
        penalty: Any = "l2",
        alpha: float = 1e-4,
        sample_weight: Any = None,
        l1_ratio: float = 0.5,
        positive: Any = False,
        intercept: bool = False,
    ) -> None:
        if is_own(type(self)):
            refuse_overrides(self, ERM, frozenset(), "Make the problem with ERM(...).")
        self.alpha = check.number(alpha, "alpha", low=0.0)
        self.samples, y = samples_of(X, y)
        self.n_samples, self.d = self.samples.shape
        self.loss, self.y, self.K = with_labels(losses.by_name(loss), y, self.n_samples)
        if self.K > 1:
            memory.check_outputs(self.n_samples, self.d, self.K)
        self.weights, self.n = normalised(sample_weight, self.n_samples)
        self.g = regulariser_of(penalty, l1_ratio, positive, self.d, self.K)
        self.penalty = shown(penalty)
        no_penalty.into_box(self)
        self.dual_form = self.g.strong_convexity > 0
        if not isinstance(intercept, bool | np.bool_):
            raise TypeError(f"intercept must be True or False, got {intercept!r}.")
        self.intercept = bool(intercept)
        self.loss.check_use(self.y, self.weights, self.K, self.intercept)
        if not math.isfinite(self.R):
            raise ValueError("X has rows whose squared norm overflows; scale its features.")
        forms.check_solvable(self)

    @property
    def box(self) -> Vector | None:
        """The box |w_j| <= box_j of features without a penalty, infinite for others; or None."""
        return self.interval.box(self.d) if self.separable else None

    def with_alpha(self, alpha: float) -> ERM:
        """The same problem, sharing all data, with another alpha."""
        alpha = check.number(alpha, "alpha", low=0.0)
        if self.penalty == "none" or alpha == 0:
            return cast(ERM, no_penalty.with_alpha(self, alpha))
        return self.altered(alpha=alpha)

    def with_labels(self, y: Any, sample_weight: Any = None) -> ERM:
        """The same problem, sharing X, with other labels and weights, and as many outputs."""
        weights, n = normalised(sample_weight, self.n_samples)
        labels, _ = self.loss.read_labels(y, self.n_samples, self.K)
        self.loss.check_use(labels, weights, self.K, self.intercept)
        return cast(ERM, no_penalty.fitted(self.altered(y=labels, weights=weights, n=n)))

    def altered(self, **changes: Any) -> ERM:
        """A copy that shares all data, with other attributes."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__getstate__())
        if set(changes) != {"alpha"}:
            for name in ("R", "squared_norms", "spectral_norm"):
                other.__dict__.pop(name, None)
        other.__dict__.update(changes)
        return other

    def bordered(self) -> ERM:
        """What dual methods see of a free intercept: one more feature, c, with a proximal term."""
        size = float(np.mean(self.weights * self.samples.squared_norms()))
        c = free.constant(size, self.strong_convexity * self.loss.gamma * self.n)
        return self._extended(self.samples.bordered(c), self.g.strong_convexity)

    def unpenalised(self) -> ERM:
        """What primal methods see of a free intercept: one more feature, 1, without penalty."""
        return self._extended(self.samples.with_ones, 0.0)

    def _extended(self, samples: Matrix, strength: float) -> ERM:
        g, dual_form = self.g.extended(self.d, strength), strength > 0
        return self.altered(
            samples=samples, d=self.d + 1, g=g, dual_form=dual_form, intercept=False
        )

    @property
    def w_shape(self) -> tuple[int, ...]:
        """The shape of w and v: (d,), or (d, K) if K > 1."""
        return (self.d,) if self.K == 1 else (self.d, self.K)

    @property
    def x_shape(self) -> tuple[int, ...]:
        """The shape of x and of predictions: (n_samples,), or (n_samples, K) if K > 1."""
        return (self.n_samples,) if self.K == 1 else (self.n_samples, self.K)

    # ---- constants --------------------------------------------------------------------------

    @property
    def separable(self) -> bool:
        """Whether g is a sum over features that the kernels know; coordinate methods need it."""
        return self.g.separable

    @property
    def interval(self) -> Interval:
        """g with its parameters a, b, lower, upper; an error if it is not of that kind."""
        if isinstance(self.g, Interval):
            return self.g
        raise ValueError(f"penalty {self.penalty}: {NOT_SEPARABLE}")

    @property
    def strong_convexity(self) -> float:
        """lambda times the strong convexity of g; it takes the place of lambda in the theorems."""
        return self.alpha * self.g.strong_convexity

    @cached_property
    def squared_norms(self) -> Vector:
        """sum_j A_ji^2 (b_min/b_j): the squared norms |A_i|^2 if g is L2."""
        b = self.g.b
        if b.size == 1 or not self.dual_form:
            norms = self.samples.squared_norms()
        else:
            norms = self.samples.squared_norms((b.min() / b).reshape(-1))
        if norms.min() > 1e-100:
            return norms
        # 1/L_i must not overflow: a row next to nothing counts as a row of zeros does
        least = max(NEXT_TO_NOTHING * float(norms.max()), 1e-290)
        return np.where(norms < least, 0.0, norms)

    @cached_property
    def R(self) -> float:
        """max_i sqrt(s_i)|A_i|"""
        if self.weights.size == 1:
            return math.sqrt(float(self.weights[0] * self.squared_norms.max()))
        return math.sqrt(float(np.max(self.weights * self.squared_norms)))

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
        """L_i of the form that is solved: |A_i|^2/(lambda n^2) + gamma/(n s_i) in the dual.

        With K outputs they are those of the blocks x_i.
        """
        if self.K == 1:
            return self.form.L
        if not self.dual_form:
            raise ValueError("L_i are those of the dual, and g is not strongly convex.")
        own = self.loss.gamma / (self.n * divisor(self.weights))
        return np.asarray(self.squared_norms / (self.strong_convexity * self.n**2) + own)

    @cached_property
    def spectral_norm(self) -> float:
        """|A|_2 (with rows times sqrt(s_i)), by Lanczos to 1e-3, enlarged by that."""
        return math.sqrt(largest_singular_value_squared(self.samples, np.sqrt(self.weights)))

    # ---- values -----------------------------------------------------------------------------

    # combine, balance, best_intercept and dual_point check what they are given. v_of, balanced,
    # best_shift and dual_pair are the same without checks, for loops. `samples.times(w)` is X w.
    def check_w(self, w: Any, name: str = "w") -> Vector:
        """A primal point that a user gave, as float64; an error says what is wrong with it."""
        return check.shaped(w, self.w_shape, name, each="column of X")

    def check_x(self, x: Any, name: str = "x") -> Vector:
        """A dual point, or predictions, that a user gave; an error says what is wrong with it."""
        return check.shaped(x, self.x_shape, name, each="row of X")

    def check_b(self, b: Any, name: str = "intercept", **bounds: Any) -> Any:
        """An intercept that a user gave: a number, or K of them (one number stands for K of it)."""
        return free.check_b(b, self.K, name, **bounds)

    def predictions(self, w: Any) -> Vector:
        """a_i' w for every sample."""
        return self.samples.times(self.check_w(w))

    def primal(self, w: Any, intercept: Any = 0.0) -> float:
        """P(w), or P(w, b)"""
        w, b = self.check_w(w), self.check_b(intercept)
        if np.any(b) and not self.intercept:
            cure = "make it ERM(..., intercept=True)"
            raise ValueError(f"this problem has no intercept, got {b}; {cure}.")
        return self.primal_from(w, self.samples.times(w) + b)

    def primal_from(self, w: Vector, z: Vector) -> float:
        """P(w), given the predictions z = X w, or X w + b."""
        check.check_shape(z, self.x_shape, "z")
        return float(self.loss_total(z) / self.n + self.alpha * self.g.value(w))

    def loss_total(self, z: Vector) -> float:
        """sum_i s_i phi_i(z_i)"""
        return float(self.loss.total(z, self.y, self.weights))

    def dual(self, x: Any) -> float:
        """D(x); -inf if x is not dual feasible."""
        x = self.check_x(x)
        if self.intercept and self.imbalance(x) > 1:
            return -math.inf
        return self.dual_from(x, self.v_of(x))

    def imbalance(self, x: Vector) -> float:
        """|sum_i y_i x_i| over what rounding can make of it: above 1, x is not dual feasible."""
        return imbalance(self.signed(x))

    def combine(self, x: Any) -> Vector:
        """v = A x/(lambda n)"""
        return self.v_of(self.check_x(x))

    def v_of(self, x: Vector) -> Vector:
        """v = A x/(lambda n), for loops."""
        if self.K == 1:
            return self.samples.adjoint(self.signed(x)) / (self.alpha * self.n)
        # x is small beside A x, which would be copied to divide it
        return self.samples.adjoint(self.signed(x) / (self.alpha * self.n))

    def signed(self, x: Vector) -> Vector:
        """x times the labels for a loss of margins: the coefficients of the samples in A x."""
        return self.y * x if self.loss.margin else x

    def dual_from(self, x: Vector, v: Vector) -> float:
        """D(x), given v = A x/(lambda n)."""
        check.check_shape(x, self.x_shape, "x")
        total = 0.0 - self.conjugate_total(x)
        return float(total / self.n - self.alpha * self.g.conjugate(v))

    def conjugate_total(self, x: Vector) -> float:
        """sum_i s_i phi_i*(-x_i/s_i); infinite if x is not dual feasible."""
        return float(self.loss.conjugate_total(x, self.y, self.weights))

    def omega(self, x: Any) -> Vector:
        """grad g*(A x/(lambda n)), the primal point of a dual one: (49) of the paper."""
        if not self.dual_form:
            raise ValueError(
                "omega(x) has no meaning for this penalty: g is not strongly convex, so g* has no "
                "gradient. The primal is solved instead; see r.w."
            )
        return self.g.conjugate_gradient(self.combine(x))

    def gap(self, x: Any, w: Any = None, intercept: Any = None) -> float:
        """P(w) - D(x) >= 0, with w = omega(x) unless given, and the b that is best for that w."""
        x = self.check_x(x)
        w = self.omega(x) if w is None else self.check_w(w)
        if intercept is None:
            intercept = self.best_shift(self.samples.times(w)) if self.intercept else 0.0
        return self.primal(w, intercept) - self.dual(x)

    def best_intercept(self, z: Any, guess: Any = 0.0) -> Any:
        """The b that is best with the predictions z + b; the middle if it is an interval.

        With K outputs b has K numbers, which sum to zero for a loss over classes.
        """
        return self.best_shift(self.check_x(z, "z"), self.check_b(guess, "guess"))

    def best_shift(self, z: Vector, guess: Any = 0.0) -> Any:
        """The b that is best with the predictions z + b, for loops."""
        return self.loss.best_shift(z, self.y, self.weights, guess)

    def balance(self, x: Any) -> Vector:
        """A dual feasible point near x with sum_i y_i x_i = 0, which an intercept asks for."""
        return self.balanced(self.check_x(x))

    def balanced(self, x: Vector, z: Vector | None = None) -> Vector:
        """A dual feasible point near x with sum_i y_i x_i = 0, for loops; x may be that of z."""
        return np.asarray(self.loss.balance(x, self.y, self.weights, z))

    def dual_point(self, z: Vector, *, exact: bool = False) -> tuple[Vector, Vector]:
        """A feasible x from predictions z = X w + b, and v = A x/(lambda n).

        x = -s phi'(z), scaled down if g* would be infinite (the bound |v_j| <= a_j of L1). With
        `exact`, v is computed from that x, and x scaled again until it is feasible as it stands.
        """
        return self.dual_pair(self.check_x(z, "z"), exact)

    def dual_pair(self, z: Vector, exact: bool) -> tuple[Vector, Vector]:
        """(x, v) of `dual_point`, for loops."""
        x = self.loss.duals(z, self.y, self.weights)
        x = self.balanced(x, z) if self.intercept else x
        v, slack = self.v_of(x), 1e-15 if exact else 1e-12  # for what rounding may add to v
        while (excess := self.g.excess(v)) > 1:
            if slack > 1:  # a g of the user's may never be content; 0 is feasible
                return np.zeros_like(x), np.zeros_like(v)
            x, v = x / (excess * (1 + slack)), v / (excess * (1 + slack))
            if not exact:
                break
            v, slack = self.v_of(x), 100 * slack
        return x, v

    def into_domain(self, x: Any) -> Vector:
        """The dual feasible point nearest to x, as far as the loss knows."""
        return np.asarray(self.loss.clip(self.check_x(x), self.y, self.weights))

    # ---- primal recovery, section 5.1 ---------------------------------------------------------

    def refine(self, x: Any) -> Vector:
        """T(x), the proximal full gradient step of Theorem 4, with the simple splitting.

        `argmin_T <grad f(x), T> + (|A|^2/(2 lambda n^2))|T - x|^2 + Psi(T)`
        """
        return recovery.full_step(self, self.check_x(x))

    def pdgbound(self, x: Any) -> float:
        """Lemma 4: P(omega(x)) - D(x) <= (1/(2 n gamma)) sum_i s_i (A_i' w - a_i)^2.

        Infinite for a loss that is not smooth.
        """
        return recovery.gap_bound(self, self.check_x(x))

    # ---- the problem as the kernels solve it ----------------------------------------------------

    @cached_property
    def form(self) -> Composite:
        """The dual, or the primal if g is not strongly convex, as f + Psi over coordinates."""
        if self.intercept and self.separable:
            return (self.bordered() if self.dual_form else self.unpenalised()).form
        form = forms.of(self)
        forms.check_constants(form.L, self.alpha)
        return form

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "form"}  # made again when needed

    def __repr__(self) -> str:
        outputs = f"{self.K} outputs, " if self.K > 1 else ""
        return (
            f"ERM({outputs}{self.n} samples, {self.d} features, {self.samples.nnz} stored, loss="
            f"{self.loss!r}, penalty={self.penalty}, alpha={self.alpha:g})"
        )
