"""The bounds of the paper as functions: of numbers, and in section 5 of what an ERM says of itself.

In all of them n is the number of blocks, mu the convexity parameter of f relative to |.|_L,
`gap0` is F(x0) - F*, and `R0` is the distance |x0 - x*|_L of equation (R0).
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ._base.validation import choice, number
from .sequences import Sequence, largest_gamma0

__all__ = [
    "Sequence",
    "accelerated_sdca_steps",
    "apcg_bound",
    "apcg_constant",
    "apcg_steps",
    "convexity_parameter",
    "dual_bound",
    "erm_constant",
    "gap_coefficient",
    "lambda_bound",
    "largest_gamma0",
    "moved_convexity",
    "promised_passes",
    "refined_gap_coefficient",
    "rpcg_bound",
    "rpcg_steps",
    "sag_steps",
    "svrg_steps",
]


def lambda_bound(n: int, mu: float, gamma0: float, k: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Both terms of the minimum in Lemma 1 (v) and Theorem 1, at step k.

    Examples
    --------
    >>> from apcg.theory import lambda_bound
    >>> [float(term) for term in lambda_bound(10, 0.01, 0.01, 0)]
    [1.0, 1.0]
    """
    k = np.asarray(k, dtype=float)
    linear = (1.0 - math.sqrt(mu) / n) ** k
    sublinear = (2 * n / (2 * n + k * math.sqrt(gamma0))) ** 2
    return linear, sublinear


def apcg_constant(gap0: float, R0: float, gamma0: float) -> float:
    """F(x0) - F* + (gamma_0/2) R0^2, what Theorem 1 multiplies.

    Examples
    --------
    >>> from apcg.theory import apcg_constant
    >>> apcg_constant(gap0=1.0, R0=2.0, gamma0=0.5)
    2.0
    """
    return gap0 + 0.5 * gamma0 * R0**2


def apcg_bound(
    n: int, mu: float, gamma0: float, k: ArrayLike, *, gap0: float, R0: float
) -> np.ndarray:
    """Theorem 1: E F(x^(k)) - F* is at most this.

    For mu = 0 put gamma0 = n^2 alpha_{-1}^2. The display after Algorithm 3 in the paper has
    n alpha_0 in the place of sqrt(gamma_0) and of gamma_0, which is not the same number.

    Examples
    --------
    >>> from apcg.theory import apcg_bound
    >>> apcg_bound(10, 0.01, 0.01, [0, 1000], gap0=1.0, R0=1.0)
    array([1.00500000e+00, 4.33871036e-05])
    """
    linear, sublinear = lambda_bound(n, mu, gamma0, k)
    least: np.ndarray = np.minimum(linear, sublinear)
    return least * apcg_constant(gap0, R0, gamma0)


def apcg_steps(
    n: int, mu: float, gamma0: float, epsilon: float, *, gap0: float, R0: float
) -> float:
    """The number of steps after which Theorem 1 promises E F(x^(k)) - F* <= epsilon.

    Examples
    --------
    >>> from apcg.theory import apcg_steps
    >>> round(apcg_steps(10, 0.01, 0.01, 1e-6, gap0=1.0, R0=1.0))
    1376
    """
    ratio = apcg_constant(gap0, R0, gamma0) / epsilon
    sublinear = 2 * n / math.sqrt(gamma0) * (math.sqrt(max(ratio, 1.0)) - 1)
    return math.ceil(min(_linear_steps(math.sqrt(mu) / n, ratio), sublinear))


def rpcg_bound(n: int, mu: float, k: ArrayLike, *, gap0: float, R0: float) -> np.ndarray:
    """The unaccelerated rate: min{(1 - mu/n)^k, n/(n + k)} (F(x0) - F* + R0^2/2).

    Examples
    --------
    >>> from apcg.theory import rpcg_bound
    >>> rpcg_bound(10, 0.1, [0, 1000], gap0=1.0, R0=1.0).round(6)
    array([1.5e+00, 6.5e-05])
    """
    k = np.asarray(k, dtype=float)
    return np.minimum((1 - mu / n) ** k, n / (n + k)) * (gap0 + 0.5 * R0**2)


def rpcg_steps(n: int, mu: float, epsilon: float, *, gap0: float, R0: float) -> float:
    """The number of steps after which `rpcg_bound` is at most epsilon.

    Examples
    --------
    >>> from apcg.theory import rpcg_steps
    >>> round(rpcg_steps(10, 0.1, 1e-6, gap0=1.0, R0=1.0))
    1415
    """
    ratio = (gap0 + 0.5 * R0**2) / epsilon
    return math.ceil(min(_linear_steps(mu / n, ratio), n * (max(ratio, 1.0) - 1)))


def _linear_steps(decrease: float, ratio: float) -> float:
    """The least k with (1 - decrease)^k ratio <= 1."""
    if ratio <= 1:
        return 0.0
    if decrease <= 0:
        return math.inf
    return math.log(ratio) / -math.log1p(-decrease) if decrease < 1 else 1.0


def moved_convexity(L: ArrayLike, mu_psi: ArrayLike, mu_f: float = 0.0) -> float:
    """Equation (mu) of section 2.2: (mu_f + mu_Psi)/max_i(L_i + mu_Psi).

    mu_psi may be one number for each block; then it is the least of the blocks' ratios, which is
    the same thing when they are equal.

    Examples
    --------
    >>> from apcg.theory import moved_convexity
    >>> moved_convexity([1.0, 3.0], mu_psi=1.0)
    0.25
    """
    L, mu_psi = np.asarray(L, dtype=float), np.asarray(mu_psi, dtype=float)
    return float(np.min((mu_f + mu_psi) / (L + mu_psi)))


def convexity_parameter(hessian: ArrayLike, L: ArrayLike) -> float:
    """The mu of a quadratic f relative to |.|_L: the least eigenvalue of L^-1/2 H L^-1/2.

    L has one entry for each coordinate (repeat a block's constant over its coordinates).

    Examples
    --------
    >>> import numpy as np
    >>> from apcg.theory import convexity_parameter
    >>> round(convexity_parameter(np.diag([1.0, 4.0]), [2.0, 4.0]), 6)
    0.5
    """
    d = 1 / np.sqrt(np.asarray(L, dtype=float))
    H = np.asarray(hessian, dtype=float) * d * d[:, None]
    return float(min(max(np.linalg.eigvalsh(H)[0], 0.0), 1.0))


# ---- section 5, ERM ---------------------------------------------------------------------------


class LossConstants(Protocol):
    """The constants of a loss: it is 1/gamma-smooth and 1/eta-strongly convex."""

    @property
    def gamma(self) -> float:
        """0 if it is not smooth."""

    @property
    def eta(self) -> float:
        """Infinite if it is not strongly convex."""


class Problem(Protocol):
    """What the bounds ask of an ERM problem."""

    @property
    def n(self) -> int:
        """Samples of positive weight."""

    @property
    def n_samples(self) -> int:
        """The length of x."""

    @property
    def K(self) -> int:
        """The number of outputs."""

    @property
    def loss(self) -> LossConstants:
        """phi"""

    @property
    def R(self) -> float:
        """max_i |A_i|"""

    @property
    def mu(self) -> float:
        """The convexity parameter of Theorem 2."""

    @property
    def strong_convexity(self) -> float:
        """lambda, if g is (1/2)|w|^2."""

    @property
    def spectral_norm(self) -> float:
        """|A|_2"""

    def gap(self, x: ArrayLike, /) -> float:
        """P(omega(x)) - D(x)"""


def erm_constant(problem: Problem, x0: ArrayLike | None = None) -> float:
    """An upper bound of the C of equation (C-def), from the duality gap at x0 (zero by default).

    D* - D(x0) <= gap(x0), and D is (gamma/n)-strongly concave, so the other term of C is at most
    D* - D(x0) as well: C <= 2 gap(x0).

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, theory
    >>> problem = ERM(np.eye(4), [1, 1, -1, -1], alpha=0.1)
    >>> theory.erm_constant(problem)
    1.0
    """
    K = getattr(problem, "K", 1)
    zero = np.zeros((problem.n_samples, K)[: 1 + (K > 1)])
    x = zero if x0 is None else x0
    return 2 * float(problem.gap(x))


def dual_bound(problem: Problem, passes: ArrayLike, C: float | None = None) -> np.ndarray:
    """The proof of Theorem 2: E[D* - D(x)] <= (1 - sqrt(mu)/n)^k C after k = n passes steps.

    C is by default the bound `erm_constant`.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, theory
    >>> problem = ERM(np.eye(4), [1, 1, -1, -1], alpha=0.1)
    >>> theory.dual_bound(problem, [0, 10]).round(6)
    array([1.      , 0.003222])
    """
    n, C = problem.n, erm_constant(problem) if C is None else C
    return C * (1 - math.sqrt(problem.mu) / n) ** (n * np.asarray(passes, dtype=float))


def gap_coefficient(problem: Problem) -> float:
    """Theorem 3: P(omega(x)) - D(x) <= this (D* - D(x)), if the loss is 1/eta-strongly convex.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, theory
    >>> round(theory.gap_coefficient(ERM(np.eye(4), np.ones(4), "squared", alpha=0.1)), 3)
    3.502
    """
    lam, n, loss = problem.strong_convexity, problem.n, problem.loss
    if loss.gamma == 0 or math.isinf(loss.eta):
        return math.inf
    return (lam * loss.eta * n + problem.spectral_norm**2) / (lam * loss.gamma * n)


def refined_gap_coefficient(problem: Problem) -> float:
    """Theorem 4: P(omega(T(x))) - D(T(x)) <= this (D* - D(x)), T the step `problem.refine`.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, theory
    >>> problem = ERM(np.eye(4), [1, 1, -1, -1], alpha=0.1)
    >>> round(theory.refined_gap_coefficient(problem), 3)
    10.01
    """
    lam, n, gamma = problem.strong_convexity, problem.n, problem.loss.gamma
    return 4 * problem.spectral_norm**2 / (lam * gamma * n) if gamma > 0 else math.inf


def promised_passes(
    problem: Problem,
    epsilon: float,
    method: str = "apcg",
    measure: str = "dual",
    C: float | None = None,
) -> float:
    """Passes over the data after which the expected error is at most epsilon, by theory.

    method  measure    what is promised, with kappa = R^2/(lambda gamma)
    "apcg"  "dual"     D* - D(x): Theorem 2, (n + sqrt(n kappa)) log(C/epsilon) steps
    "apcg"  "gap"      P(omega(x)) - D(x): Corollary 1, for strongly convex losses
    "apcg"  "refined"  the gap after a last full step T: Corollary 2
    "sdca"  "dual"     (n + kappa) log(C/epsilon) steps
    "sdca"  "gap"      the same with (n + kappa) C/epsilon under the logarithm
    "afg"   any        sqrt(|A|^2/(lambda gamma n)) log(C/epsilon) passes

    Of "afg" the paper gives the order only, and the constant here is 1. "sag", "svrg" and
    "accelerated_sdca" are as in `sag_steps`, `svrg_steps`, `accelerated_sdca_steps`. C is that of
    Theorem 2, by default the bound `erm_constant`. Infinite where nothing is promised.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, theory
    >>> problem = ERM(np.eye(4), [1, 1, -1, -1], alpha=0.1)
    >>> round(theory.promised_passes(problem, 1e-6), 1)
    35.7
    """
    choice(method, "method", (*_PROMISED, *_ELSEWHERE))
    choice(measure, "measure", ("dual", "gap", "refined"))
    epsilon = number(epsilon, "epsilon", low=0.0, open_low=True)
    lam, n, gamma = problem.strong_convexity, problem.n, problem.loss.gamma
    if gamma == 0 or lam == 0:
        return math.inf
    C = erm_constant(problem) if C is None else C
    kappa = problem.R**2 / (lam * gamma)
    if method in _ELSEWHERE:
        steps = _ELSEWHERE[method](n, kappa, epsilon, 0.5 * C)
        return steps / n if getattr(problem, "K", 1) == 1 else math.inf  # they take one output only
    steps, factor = {
        "apcg": lambda: (n + math.sqrt(n * kappa), _certify_factor(problem, measure)),
        "sdca": lambda: (n + kappa, n + kappa if measure == "gap" else 1.0),
        "afg": lambda: (n * math.sqrt(problem.spectral_norm**2 / (lam * gamma * n)), 1.0),
    }[method]()
    if factor * C <= epsilon:
        return 0.0
    return steps * math.log(factor * C / epsilon) / n if factor < math.inf else math.inf


_PROMISED = ("apcg", "sdca", "afg")


# The other methods that section 5 names, by their own papers. kappa is R^2/(lambda gamma), and
# `gap0` is P(0) - D(0), which bounds P(0) - P*.


def sag_steps(n: int, kappa: float, epsilon: float, gap0: float) -> float:
    """Steps of SAG, of 1/(16 L), after which E P(w) - P* <= epsilon; L = R^2/gamma + lambda.

    Theorem 1 of Schmidt, Le Roux and Bach: the error is at most (1 - min{lambda/(16 L), 1/(8 n)})^k
    times `3/2 (P(0) - P*) + (4 L/n)|w*|^2`, where `|w*|^2 <= 2 (P(0) - P*)/lambda`. The constants
    are theirs, for a table that begins with the gradients at 0. In practice they take steps of size
    1/L, as is done here; no theorem covers these.

    Examples
    --------
    >>> from apcg.theory import sag_steps
    >>> round(sag_steps(1000, kappa=1e4, epsilon=1e-6, gap0=1.0))
    2914877
    """
    C = (1.5 + 8 * (kappa + 1) / n) * gap0
    return math.ceil(_linear_steps(min(1 / (16 * (kappa + 1)), 1 / (8 * n)), C / epsilon))


def svrg_steps(n: int, kappa: float, epsilon: float, gap0: float) -> float:
    """Steps of prox-SVRG, with n for a snapshot, after which E P(w) - P* <= epsilon.

    Theorem 3.1 of Xiao and Zhang with their choice of eta = 0.1/L and m = 100 kappa steps to a
    snapshot: the error falls by 5/6 a stage. With m = 2 n, which they take in their experiments and
    which is taken here, the theorem says something only if kappa < n/25.

    Examples
    --------
    >>> from apcg.theory import svrg_steps
    >>> round(svrg_steps(1000, kappa=1e4, epsilon=1e-6, gap0=1.0))
    76076000
    """
    return (n + 100 * kappa) * math.ceil(_linear_steps(1 / 6, gap0 / epsilon))


def accelerated_sdca_steps(n: int, kappa: float, epsilon: float, gap0: float) -> float:
    """Steps of accelerated SDCA after which E P(w) - P* <= epsilon.

    Shalev-Shwartz and Zhang: 1 + (2/eta) log(xi_1/epsilon) problems, which is their constant, of
    O(n log(kappa/n)) steps each. Of that they give the order only: it is taken as 2 n log(kappa/n),
    for SDCA on a problem with a condition number of n. With kappa <= 10 n it is plain SDCA.

    Examples
    --------
    >>> from apcg.theory import accelerated_sdca_steps
    >>> round(accelerated_sdca_steps(1000, kappa=1e6, epsilon=1e-6, gap0=1.0))
    26471392
    """
    if kappa <= 10 * n:
        return (n + kappa) * math.log(max(2 * (n + kappa) * gap0 / epsilon, 1.0))
    eta = math.sqrt(0.5 / (kappa / n - 0.5))
    outer = 1 + 2 / eta * math.log(max((1 + eta**-2) * gap0 / epsilon, 1.0))
    return outer * 2 * n * math.log(kappa / n)


_ELSEWHERE = {
    "sag": sag_steps,
    "svrg": svrg_steps,
    "accelerated_sdca": accelerated_sdca_steps,
}


def _certify_factor(problem: Problem, measure: str) -> float:
    if measure == "dual":
        return 1.0
    return gap_coefficient(problem) if measure == "gap" else refined_gap_coefficient(problem)
