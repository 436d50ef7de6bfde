"""Algorithms 1, 2 and 3 and the unaccelerated method as printed; Algorithm 2 with uneven sampling.

Dense NumPy, full vectors at every step: for reading beside the paper and for testing the efficient
forms, and for an f or Psi that only Python knows. `problem` is anything with

    n, L, block(i), partial_gradient(i, x), prox(i, v, step)

`indices` yields i_0, i_1, ...; after step k each algorithm yields (x^(k+1), y^(k), z^(k+1)).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import sqrt
from typing import Any

import numpy as np

from ..._base.validation import Vector

Iterates = Iterator[tuple[Vector, Vector, Vector]]


def prox_step(problem: Any, i: int, centre: Vector, y: Vector, weight: float) -> Any:
    """argmin_{x_i} (weight L_i/2)|x_i - centre_i|^2 + <grad_i f(y), x_i> + psi_i(x_i)."""
    step = 1 / (weight * problem.L[i])
    gradient = problem.partial_gradient(i, y)
    return problem.prox(i, centre[problem.block(i)] - step * gradient, step)


def algorithm_1(
    problem: Any, x0: Vector, mu: float, gamma0: float, indices: Iterable[int], n: int | None = None
) -> Iterates:
    """The APCG method: mu >= 0, gamma_0 in [mu, 1] (or a little more: see `sequences`)."""
    n = problem.n if n is None else n  # fewer than problem.n if some blocks are not sampled
    x, z, gamma = x0.copy(), x0.copy(), gamma0
    for i in indices:
        # (alphak): n^2 alpha^2 = (1 - alpha) gamma_k + alpha mu
        alpha = (mu - gamma + sqrt((gamma - mu) ** 2 + 4 * n**2 * gamma)) / (2 * n**2)
        gamma_next = (1 - alpha) * gamma + alpha * mu
        beta = alpha * mu / gamma_next
        y = (alpha * gamma * z + gamma_next * x) / (alpha * gamma + gamma_next)
        z_next = (1 - beta) * z + beta * y
        z_next[problem.block(i)] = prox_step(problem, i, z_next, y, n * alpha)
        x = y + n * alpha * (z_next - z) + mu / n * (z - y)
        z, gamma = z_next, gamma_next
        yield x, y, z


def algorithm_2(problem: Any, x0: Vector, mu: float, indices: Iterable[int]) -> Iterates:
    """APCG with gamma_0 = mu > 0."""
    n = problem.n
    alpha = sqrt(mu) / n
    x, z = x0.copy(), x0.copy()
    for i in indices:
        y = (x + alpha * z) / (1 + alpha)
        z_next = (1 - alpha) * z + alpha * y
        z_next[problem.block(i)] = prox_step(problem, i, z_next, y, n * alpha)
        x = y + n * alpha * (z_next - z) + n * alpha**2 * (z - y)
        z = z_next
        yield x, y, z


def uneven(problem: Any, x0: Vector, mu: float, visits: Vector, indices: Iterable[int]) -> Iterates:
    """Algorithm 2 with block i in visits_i of sum(visits) steps: see `methods/sweep.py`."""
    total = float(np.sum(visits))
    alpha = sqrt(mu) / total
    x, z = x0.copy(), x0.copy()
    for i in indices:
        p = visits[i] / total
        y = (x + alpha * z) / (1 + alpha)
        centre = (1 - alpha) * z + alpha * y
        z = centre.copy()
        z[problem.block(i)] = prox_step(problem, i, centre, y, alpha / p)
        x = y + alpha / p * (z - centre)
        yield x, y, z


def algorithm_3(problem: Any, x0: Vector, alpha_minus_1: float, indices: Iterable[int]) -> Iterates:
    """APCG with mu = 0, from alpha_{-1} in (0, 1/sqrt(n^2 - n)]."""
    n = problem.n
    alpha = alpha_minus_1
    x, z = x0.copy(), x0.copy()
    for i in indices:
        alpha = (sqrt(alpha**4 + 4 * alpha**2) - alpha**2) / 2
        y = (1 - alpha) * x + alpha * z
        z_next = z.copy()
        z_next[problem.block(i)] = prox_step(problem, i, z, y, n * alpha)
        x = y + n * alpha * (z_next - z)
        z = z_next
        yield x, y, z


def rpcg(problem: Any, x0: Vector, indices: Iterable[int]) -> Iterates:
    """The randomised proximal coordinate gradient method, (rpcg-prox) and (rpcg-update)."""
    x = x0.copy()
    for i in indices:
        y = x
        x = x.copy()
        x[problem.block(i)] = prox_step(problem, i, y, y, 1.0)
        yield x, y, x


def take(iterates: Iterates, k: int) -> list[tuple[Vector, Vector, Vector]]:
    """The first k of them."""
    return [next(iterates) for _ in range(k)]


def stack(iterates: Iterates, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x^(1..k), y^(0..k-1) and z^(1..k) as rows of three arrays."""
    x, y, z = zip(*take(iterates, k), strict=True)
    return np.array(x), np.array(y), np.array(z)


# ---- other methods for (1/n) sum_i f_i(w) + lambda g(w), as their authors print them -------------
#
# `problem` has n, value(i, w) and gradient(i, w) of f_i, mu (the L2 weight) and prox(v, step) of
# lambda g. After step k each yields w^(k+1) (and what else is said).


def searched(problem: Any, i: int, w: Vector, gradient: Vector, L: float, most: float) -> float:
    """L, doubled until f_i(w - f_i'(w)/L) <= f_i(w) - |f_i'(w)|^2/(2 L), at the largest `most`."""
    square, value = float(gradient @ gradient), problem.value(i, w)
    while most > L and not problem.value(i, w - gradient / L) <= value - square / (2 * L):
        L = min(2 * L, most)
    return L


def _tested(problem: Any, i: int, w: Vector, gradient: Vector, L: float) -> bool:
    """Whether a step tests L: not where the decrease to be seen is lost in the value."""
    return bool(gradient @ gradient > 2e-8 * L * problem.value(i, w))


def sag(
    problem: Any, w0: Vector, L: float, indices: Iterable[int], most: float = 0.0
) -> Iterator[tuple[Vector, float]]:
    """SAG for L2 (Schmidt, Le Roux and Bach, Algorithm 1): yields (w, L).

    With `most` > L the line search of their section 4 is made, up to that constant.
    """
    w, d = w0.copy(), np.zeros_like(w0)
    y: dict[int, Vector] = {}  # the gradients, of the samples seen so far
    for i in indices:
        gradient, at = problem.gradient(i, w), L
        if most and _tested(problem, i, w, gradient, L):
            at = searched(problem, i, w, gradient, L, most)
            L = max(at * 2 ** (-1 / problem.n), problem.mu)
        d = d - y.get(i, 0.0) + gradient
        y[i] = gradient
        alpha = 1 / (at + problem.mu)
        w = (1 - alpha * problem.mu) * w - alpha / len(y) * d
        yield w, L


def saga(
    problem: Any, w0: Vector, L: float, indices: Iterable[int], most: float = 0.0
) -> Iterator[tuple[Vector, float]]:
    """SAGA (Defazio, Bach and Lacoste-Julien) from a table of zeros, with SAG's search for L."""
    w, y = w0.copy(), np.zeros((problem.n, w0.size))
    for i in indices:
        gradient, at = problem.gradient(i, w), L
        if most and _tested(problem, i, w, gradient, L):
            at = searched(problem, i, w, gradient, L, most)
            L = max(at * 2 ** (-1 / problem.n), problem.mu)
        alpha = 1 / (3 * at)
        w = problem.prox(w - alpha * (gradient - y[i] + y.mean(axis=0)), alpha)
        y[i] = gradient
        yield w, L


def svrg(problem: Any, w0: Vector, eta: float, stages: Iterable[Iterable[int]]) -> Iterator[Vector]:
    """Prox-SVRG (Xiao and Zhang), each stage from the last w of the one before."""
    w = w0.copy()
    for stage in stages:
        snapshot = w
        mean = sum(problem.gradient(i, snapshot) for i in range(problem.n)) / problem.n
        for i in stage:
            v = problem.gradient(i, w) - problem.gradient(i, snapshot) + mean
            w = problem.prox(w - eta * v, eta)
            yield w


def accelerated_sdca(
    problem: Any, w0: Vector, x0: Vector, kappa: float, gap: float, sweeps: Iterable[Iterable[int]]
) -> Iterator[tuple[Vector, Vector, int]]:
    """Accelerated Prox-SDCA (Shalev-Shwartz and Zhang): yields (w, x, t) after each step of SDCA.

    `gap` is P - D at the start. The duality gap of P_t is computed after each of the sweeps. Here
    `problem` also has A, a matrix with the samples as columns; grad_conjugate(v, kappa) of G =
    lambda g + (kappa/2)|w|^2; ascend(i, x, m, q), the maximiser over h of
    -f_i*(-(x + h)) - m h - (q/2) h^2; and gaps(m, x), f_i(m_i) + f_i*(-x_i) + m_i x_i for all i.
    """
    A, n, lam = problem.A, problem.n, problem.mu
    mu = lam / 2
    rho = mu + kappa
    eta = sqrt(mu / rho)
    beta = (1 - eta) / (1 + eta)
    xi = first = (1 + eta**-2) * gap
    w, y, x, t = w0.copy(), w0.copy(), x0.copy(), 2
    for sweep in sweeps:
        for i in sweep:
            inner = problem.grad_conjugate(A @ x / n + kappa * y, kappa)
            q = A[:, i] @ A[:, i] / ((lam + kappa) * n)
            x[i] += problem.ascend(i, x[i], A[:, i] @ inner, q)
            yield problem.grad_conjugate(A @ x / n + kappa * y, kappa), x, t
        inner = problem.grad_conjugate(A @ x / n + kappa * y, kappa)
        if np.sum(problem.gaps(A.T @ inner, x)) / n <= eta / (2 * (1 + eta**-2)) * xi:
            w, y = inner, inner + beta * (inner - w)
            xi = (1 - eta / 2) ** (t - 1) * first
            t += 1
