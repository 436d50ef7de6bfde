"""Checks of what users write: the report, its tools, and the check of functions.

`losses.check`, `penalties.check` and `functions.check` compare the parts with one another by brute
force, at points spread over many scales, and give a `CheckReport`. One that is fine proves
nothing; one that is not names the point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .validation import Vector

#: How well numbers must agree, relative to their sizes.
CLOSE = 1e-5


@dataclass
class CheckReport:
    """What was compared, and how it went. It is true if all of it agrees."""

    subject: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not any(fault for _, fault in self.lines)

    @property
    def faults(self) -> list[str]:
        """What does not agree, a sentence each."""
        return [f"{what}: {fault}" for what, fault in self.lines if fault]

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        rows = (f"  {'WRONG' if fault else 'ok':<6}{what}{': ' if fault else ''}{fault}"
                for what, fault in self.lines)  # fmt: skip
        return "\n".join([self.subject, *rows])

    def add(self, what: str, fault: str | None) -> None:
        """One comparison; `fault` is empty or None if it went well."""
        self.lines.append((what, fault or ""))

    def raise_if_wrong(self) -> None:
        """Raise a ValueError that has all that is wrong."""
        if not self.ok:
            raise ValueError(f"{self.subject}: {'; '.join(self.faults)}")


# ---- smooth functions ---------------------------------------------------------------------------


def function_report(problem: Any, around: Vector) -> CheckReport:
    """Everything that can be compared of an f; `problem` is a Composite of it, see `functions`."""
    report = CheckReport(f"f {problem.shown}")
    rng = np.random.default_rng(0)
    scale = 1 + np.abs(around)
    points = [around + s * scale * rng.standard_normal(around.size) for s in (0.0, 0.1, 1.0, 10.0)]
    blocks = sorted(rng.permutation(problem.n)[:20].tolist())
    gradient = long = concave = ""
    for x in points:
        for i in blocks:
            b = problem.block(i)
            g = problem.partial_gradient(i, x)
            for size in (1e-4, 1.0):
                d = np.zeros(x.size)
                d[b] = size * scale[b] * np.sign(rng.standard_normal(np.shape(b)))
                up, down = problem.f_value(x + d), problem.f_value(x - d)
                after = problem.partial_gradient(i, x + d)
                turned, length = _norm(after - g), _norm(d)
                noise = 1e-8 * (1 + _norm(g) + _norm(after)) + 1e-14 * abs(up) / length
                if size < 1e-3 and abs((up - down) / 2 - inner(g, d[b])) > (
                    CLOSE * (abs(up - down) + _norm(g) * length)
                    + 1e-12 * (1 + abs(up)) + problem.L[i] * length**2
                ):  # fmt: skip
                    slope = (up - down) / 2 / length
                    gradient = gradient or f"block {i}: got {g}, and value changes by {slope:g}"
                if turned > problem.L[i] * length * (1 + CLOSE) + noise:
                    long = long or f"block {i}: L = {problem.L[i]:g}, seen {turned / length:g}"
                if inner(after - g, d[b]) < -noise * length:
                    concave = concave or f"along block {i}"
    report.add("partial gradients against differences of value", gradient)
    report.add("L against partial gradients", long)
    report.add("f is convex along its blocks", concave)
    _strongly(report, problem, points, rng)
    return report


def _strongly(
    report: CheckReport, problem: Any, points: list[Vector], rng: np.random.Generator
) -> None:
    """f(y) >= f(x) + <grad f(x), y - x> + (mu/2)|y - x|_L^2"""
    mu, L = problem.mu, problem.per_coordinate(problem.L)
    wrong = ""
    for x in points:
        g, at = problem.gradient(x), problem.f_value(x)
        for s in (0.1, 1.0):
            d = s * rng.standard_normal(x.size)
            least = at + inner(g, d) + 0.5 * mu * inner(L * d, d)
            if problem.f_value(x + d) < least - 1e-9 * (1 + abs(at) + abs(least)):
                wrong = wrong or f"mu = {mu:g} is too large, or f is not convex, at x = {x[:4]}..."
    report.add(f"f is convex, with mu = {mu:g}", wrong)


def inner(a: Any, b: Any) -> float:
    """<a, b>"""
    return float(np.sum(np.asarray(a) * np.asarray(b)))


def _norm(a: Any) -> float:
    return math.sqrt(inner(a, a))


# ---- tools --------------------------------------------------------------------------------------


def argmin(goal: Callable[[float], float], low: float = -1e6, high: float = 1e6) -> float:
    """The minimiser of a convex function of one variable, by thirds; it may be infinite."""
    for _ in range(220):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        at_a, at_b = goal(a), goal(b)
        if at_a == at_b == math.inf:
            a, b = 0.5 * (low + high), 0.5 * (low + high)
        low, high = (a, high) if at_a > at_b else (low, b)
    return 0.5 * (low + high)


def first(bad: Any, at: Vector, name: str, *shown: Vector) -> str:
    """Where the first fault is, or nothing."""
    if not np.any(bad):
        return ""
    k = int(np.flatnonzero(bad)[0])
    got = ", ".join(f"{float(s[k]):g}" for s in shown)
    return f"at {name} = {at[k]:g}" + (f", got {got}" if got else "")


def differ(a: Any, b: Any, at: Vector, name: str = "x") -> str:
    """Where two arrays are not close, or nothing."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape:
        return f"got shape {b.shape}, expected {a.shape}"
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= CLOSE * (1 + np.abs(a) + np.abs(b))
        bad = ~((a == b) | (near & np.isfinite(a) & np.isfinite(b)))
    return first(bad, at, name, a, b)
