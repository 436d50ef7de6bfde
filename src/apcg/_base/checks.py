"""Checks of what users write: `losses.check`, `penalties.check`, `functions.check`.

Each compares the parts with one another by brute force, at points spread over many scales, and
gives a `Report`. A report that is fine proves nothing; one that is not names the point.
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
class Report:
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


# ---- losses -------------------------------------------------------------------------------------


def loss_report(loss: Any, value: Callable[[Vector], Any] | None = None) -> Report:
    """Everything that can be compared of a loss; see `losses.check`."""
    report = Report(f"loss {loss!r}")
    m = _spread(loss.kinks)
    _slopes(report, loss, m)
    _constants(report, loss, m)
    _conjugate(report, loss)
    _prox_of_conjugate(report, loss)
    if value is not None:
        with np.errstate(all="ignore"):
            mine = np.asarray(value(m), dtype=float)
        report.add("value as you wrote it", _differ(loss.value(m), mine, m, "m"))
    return report


def quick_loss_report(loss: Any) -> Report:
    """The cheap part, at few points."""
    report = Report(f"loss {loss!r}")
    m = np.array([-30.0, -2.0, -0.4, 0.1, 0.7, 1.3, 30.0])
    _slopes(report, loss, m)
    _constants(report, loss, m)
    return report


def _spread(kinks: Vector) -> Vector:
    sizes = np.logspace(-3, 3, 25)
    around = (kinks[:, None] + np.array([-1e-2, -1e-4, 1e-4, 1e-2])).ravel()
    return np.unique(np.concatenate([-sizes, [0.0], sizes, around]))


def _slopes(report: Report, loss: Any, m: Vector) -> None:
    """phi is convex with the derivative phi', whose values are -x for x in the domain."""
    h = 1e-6 * (1 + np.abs(m))
    left, right = loss.derivative(m - h), loss.derivative(m + h)
    mean = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    room = CLOSE * (1 + np.abs(left) + np.abs(right)) + 1e-9 * np.abs(loss.value(m)) / h
    report.add(
        "derivative against differences of value",
        _first(~((left - room <= mean) & (mean <= right + room)), m, "m", mean, right),
    )
    slopes = loss.derivative(m)
    falls = np.append(np.diff(slopes) < -1e-9 * (1 + np.abs(slopes[1:])), False)
    report.add("value is convex", _first(falls, m, "m"))
    lower, upper = loss.domain
    outside = ~((lower - 1e-12 <= -slopes) & (-slopes <= upper + 1e-12))
    report.add("-derivative is in the domain", _first(outside, m, "m", -slopes))


def _constants(report: Report, loss: Any, m: Vector) -> None:
    """phi' is 1/gamma-Lipschitz and increases by at least 1/eta."""
    h = 1e-4 * (1 + np.abs(m))
    bend = (loss.derivative(m + h) - loss.derivative(m - h)) / (2 * h)
    room = 1e-6 + 1e-10 * np.abs(loss.derivative(m)) / h
    if loss.gamma > 0:
        most = (1 + CLOSE) / loss.gamma
        report.add("phi'' <= 1/gamma", _first(bend > most + room, m, "m", bend))
    if math.isfinite(loss.eta):
        least = (1 - CLOSE) / loss.eta
        report.add("phi'' >= 1/eta", _first(bend < least - room, m, "m", bend))


def _inside(loss: Any) -> Vector:
    """Points between the bounds of the domain."""
    lower, upper = (min(max(b, -50.0), 50.0) for b in loss.domain)
    return np.array([lower + (upper - lower) * t for t in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)])


def _conjugate(report: Report, loss: Any) -> None:
    x = _inside(loss)

    def minus(u: float) -> Callable[[float], float]:
        return lambda m: float(loss.value(m)) - u * m

    found = np.array([-minus(-t)(_argmin(minus(-t))) for t in x])
    report.add("conjugate against numerical maximisation", _differ(loss.conjugate(-x), found, x))
    lower, upper = loss.domain
    beyond = np.array([b + s for b, s in ((lower, -0.1), (upper, 0.1)) if math.isfinite(b)])
    finite = np.isfinite(loss.conjugate(-beyond)) if beyond.size else np.empty(0, bool)
    report.add("conjugate is infinite outside the domain", _first(finite, beyond, "x"))


def _prox_of_conjugate(report: Report, loss: Any) -> None:
    x = _inside(loss)
    low, high = -float(x.max()) * 1.03 - 1e-6, -float(x.min()) * 1.03 + 1e-6
    wrong = ""
    for step in (0.1, 1.0, 10.0):
        for v in (-1.5, -0.3, 0.0, 0.4, 2.0):

            def goal(u: float, v: float = v, step: float = step) -> float:
                return float(loss.conjugate(u)) + (u - v) ** 2 / (2 * step)

            given = float(loss.prox_conjugate(v, step))
            best = _argmin(goal, max(min(low, given - 1), -60.0), min(max(high, given + 1), 60.0))
            if not goal(given) <= goal(best) + CLOSE * (1 + abs(goal(best))):
                wrong = wrong or f"at v = {v:g}, step = {step:g}: got {given:g}, {best:g} is less"
    report.add("prox of the conjugate against brute force", wrong)


# ---- smooth functions ---------------------------------------------------------------------------


def function_report(problem: Any, around: Vector) -> Report:
    """Everything that can be compared of an f; `problem` is a Composite of it, see `functions`."""
    report = Report(f"f {problem.shown}")
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


def _strongly(report: Report, problem: Any, points: list[Vector], rng: np.random.Generator) -> None:
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
    return float(np.sum(np.asarray(a) * np.asarray(b)))


def _norm(a: Any) -> float:
    return math.sqrt(inner(a, a))


# ---- tools --------------------------------------------------------------------------------------


def _argmin(goal: Callable[[float], float], low: float = -1e6, high: float = 1e6) -> float:
    """The minimiser of a convex function of one variable, by thirds; it may be infinite."""
    for _ in range(220):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        at_a, at_b = goal(a), goal(b)
        if at_a == at_b == math.inf:
            a, b = 0.5 * (low + high), 0.5 * (low + high)
        low, high = (a, high) if at_a > at_b else (low, b)
    return 0.5 * (low + high)


def _first(bad: Any, at: Vector, name: str, *shown: Vector) -> str:
    """Where the first fault is, or nothing."""
    if not np.any(bad):
        return ""
    k = int(np.flatnonzero(bad)[0])
    got = ", ".join(f"{float(s[k]):g}" for s in shown)
    return f"at {name} = {at[k]:g}" + (f", got {got}" if got else "")


def _differ(a: Any, b: Any, at: Vector, name: str = "x") -> str:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.shape != b.shape:
        return f"got shape {b.shape}, expected {a.shape}"
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= CLOSE * (1 + np.abs(a) + np.abs(b))
        bad = ~((a == b) | (near & np.isfinite(a) & np.isfinite(b)))
    return _first(bad, at, name, a, b)
