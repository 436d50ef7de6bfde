"""The scalar sequences of Algorithms 1 to 3: alpha_k, beta_k, gamma_k, lambda_k, theta^(k)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._base.validation import Vector, number
from ._kernels.common.sequence import coefficients


def largest_gamma0(n: int, mu: float) -> float:
    """The gamma_0 with alpha_0 = 1/n, (n - mu)/(n - 1); with one block there is none: 1.

    The paper asks for gamma_0 <= 1. What its proofs use is alpha_0 <= 1/n, and that is this bound;
    for mu = 0 it gives APPROX. (The paper prints alpha_{-1} = 1/sqrt(n^2 - 1) for APPROX; by
    alpha_0^2 = (1 - alpha_0) alpha_{-1}^2 it is 1/sqrt(n^2 - n) that gives alpha_0 = 1/n.)

    Examples
    --------
    >>> from apcg.theory import largest_gamma0
    >>> largest_gamma0(10, 0.1)
    1.1
    """
    return (n - mu) / (n - 1) if n > 1 else 1.0


@dataclass(frozen=True)
class Sequence:
    """alpha_k and gamma_k by (7) and (8), from gamma_0, for n blocks and convexity parameter mu.

    gamma_0 = mu > 0 is Algorithm 2 (all constant), mu = 0 is Algorithm 3 with
    gamma_0 = n^2 alpha_{-1}^2, anything else is Algorithm 1.

    Examples
    --------
    >>> from apcg.theory import Sequence
    >>> Sequence(n=10, mu=0.01, gamma0=0.01).arrays(3)[0]
    array([0.01, 0.01, 0.01])
    """

    n: int
    mu: float
    gamma0: float

    @classmethod
    def choose(cls, n: int, mu: float, gamma0: float | None) -> Sequence:
        """Check mu and gamma0. The default is gamma_0 = mu if mu > 0, else alpha_0 = 1/n."""
        mu = number(mu, "mu", low=0.0, high=1.0)
        top = largest_gamma0(n, mu)
        if gamma0 is None:
            return cls(n, mu, mu if mu > 0 else top)
        gamma0 = number(gamma0, "gamma0")
        if gamma0 <= 0 or not mu <= gamma0 <= top * (1 + 1e-12):
            raise ValueError(
                f"gamma0 must be positive and in [mu, (n - mu)/(n - 1)] = [{mu:g}, {top:g}] for "
                f"n = {n} sampled blocks and mu = {mu:g}, got {gamma0:g}; leave it out for the "
                "default."
            )
        return cls(n, mu, gamma0)

    def arrays(self, k: int) -> tuple[Vector, Vector, Vector]:
        """alpha_0..alpha_{k-1}, gamma_0..gamma_k and lambda_0..lambda_k (Lemma 1)."""
        alpha, gamma = np.empty(k), np.empty(k + 1)
        gamma[0] = self.gamma0
        for i in range(k):
            alpha[i], _, _, gamma[i + 1] = coefficients(self.n, self.mu, gamma[i])
        lam = np.concatenate([[1.0], np.cumprod(1 - alpha)])
        return alpha, gamma, lam

    def theta(self, k: int) -> Vector:
        """The coefficients of Lemma 2: x^(k) = sum_l theta_l z^(l), l = 0..k."""
        alpha, gamma, _ = self.arrays(k)
        n, mu = self.n, self.mu
        theta = np.zeros(k + 1)
        theta[0] = 1.0
        for j in range(k):  # from theta^(j) to theta^(j+1), equation (combine-coeff)
            if j == 0:
                theta[:2] = 1 - n * alpha[0], n * alpha[0]
                continue
            below = alpha[j] * gamma[j] + gamma[j + 1]
            theta[:j] *= (1 - mu / n) * gamma[j + 1] / below
            theta[j] = (1 - mu / n) * (
                alpha[j] * gamma[j] + n * alpha[j - 1] * gamma[j + 1]
            ) / below - (1 - alpha[j]) * gamma[j] / (n * alpha[j])
            theta[j + 1] = n * alpha[j]
        return theta
