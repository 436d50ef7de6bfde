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

from .._validation import Vector

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
