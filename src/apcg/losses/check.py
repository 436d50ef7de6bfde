"""Checks of losses: their parts are compared with one another by brute force.

`loss_report` is of a loss that is given by numbers, `outputs_report` of one that is a function of
(n, K) arrays. `registry.check` chooses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.checks import CLOSE, CheckReport, argmin, differ, first
from .._base.own import locked
from .._base.validation import Matrix, Vector


def loss_report(loss: Any, value: Callable[[Vector], Any] | None = None) -> CheckReport:
    """Everything that can be compared of a loss; see `losses.check`."""
    report = CheckReport(f"loss {loss!r}")
    m = _spread(loss.kinks)
    _slopes(report, loss, m)
    _constants(report, loss, m)
    _conjugate(report, loss)
    _prox_of_conjugate(report, loss)
    if value is not None:
        with np.errstate(all="ignore"):
            mine = np.asarray(value(m), dtype=float)
        report.add("value as you wrote it", differ(loss.value(m), mine, m, "m"))
    return report


def quick_loss_report(loss: Any) -> CheckReport:
    """The cheap part, at few points."""
    report = CheckReport(f"loss {loss!r}")
    m = np.array([-30.0, -2.0, -0.4, 0.1, 0.7, 1.3, 30.0])
    _slopes(report, loss, m)
    _constants(report, loss, m)
    return report


def _spread(kinks: Vector) -> Vector:
    sizes = np.logspace(-3, 3, 25)
    around = (kinks[:, None] + np.array([-1e-2, -1e-4, 1e-4, 1e-2])).ravel()
    return np.unique(np.concatenate([-sizes, [0.0], sizes, around]))


def _slopes(report: CheckReport, loss: Any, m: Vector) -> None:
    """phi is convex with the derivative phi', whose values are -x for x in the domain."""
    h = 1e-6 * (1 + np.abs(m))
    left, right = loss.derivative(m - h), loss.derivative(m + h)
    mean = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    room = CLOSE * (1 + np.abs(left) + np.abs(right)) + 1e-9 * np.abs(loss.value(m)) / h
    report.add(
        "derivative against differences of value",
        first(~((left - room <= mean) & (mean <= right + room)), m, "m", mean, right),
    )
    slopes = loss.derivative(m)
    falls = np.append(np.diff(slopes) < -1e-9 * (1 + np.abs(slopes[1:])), False)
    report.add("value is convex", first(falls, m, "m"))
    lower, upper = loss.domain
    outside = ~((lower - 1e-12 <= -slopes) & (-slopes <= upper + 1e-12))
    report.add("-derivative is in the domain", first(outside, m, "m", -slopes))


def _constants(report: CheckReport, loss: Any, m: Vector) -> None:
    """phi' is 1/gamma-Lipschitz and increases by at least 1/eta."""
    h = 1e-4 * (1 + np.abs(m))
    bend = (loss.derivative(m + h) - loss.derivative(m - h)) / (2 * h)
    room = 1e-6 + 1e-10 * np.abs(loss.derivative(m)) / h
    if loss.gamma > 0:
        most = (1 + CLOSE) / loss.gamma
        report.add("phi'' <= 1/gamma", first(bend > most + room, m, "m", bend))
    if math.isfinite(loss.eta):
        least = (1 - CLOSE) / loss.eta
        report.add("phi'' >= 1/eta", first(bend < least - room, m, "m", bend))


def _inside(loss: Any) -> Vector:
    """Points between the bounds of the domain."""
    lower, upper = (min(max(b, -50.0), 50.0) for b in loss.domain)
    return np.array([lower + (upper - lower) * t for t in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)])


def _conjugate(report: CheckReport, loss: Any) -> None:
    x = _inside(loss)

    def minus(u: float) -> Callable[[float], float]:
        return lambda m: float(loss.value(m)) - u * m

    found = np.array([-minus(-t)(argmin(minus(-t))) for t in x])
    report.add("conjugate against numerical maximisation", differ(loss.conjugate(-x), found, x))
    lower, upper = loss.domain
    beyond = np.array([b + s for b, s in ((lower, -0.1), (upper, 0.1)) if math.isfinite(b)])
    finite = np.isfinite(loss.conjugate(-beyond)) if beyond.size else np.empty(0, bool)
    report.add("conjugate is infinite outside the domain", first(finite, beyond, "x"))


def _prox_of_conjugate(report: CheckReport, loss: Any) -> None:
    x = _inside(loss)
    low, high = -float(x.max()) * 1.03 - 1e-6, -float(x.min()) * 1.03 + 1e-6
    wrong = ""
    for step in (0.1, 1.0, 10.0):
        for v in (-1.5, -0.3, 0.0, 0.4, 2.0):

            def goal(u: float, v: float = v, step: float = step) -> float:
                return float(loss.conjugate(u)) + (u - v) ** 2 / (2 * step)

            given = float(loss.prox_conjugate(v, step))
            best = argmin(goal, max(min(low, given - 1), -60.0), min(max(high, given + 1), 60.0))
            if not goal(given) <= goal(best) + CLOSE * (1 + abs(goal(best))):
                wrong = wrong or f"at v = {v:g}, step = {step:g}: got {given:g}, {best:g} is less"
    report.add("prox of the conjugate against brute force", wrong)


# ---- of K predictions ----------------------------------------------------------------------------


def outputs_report(
    loss: Any, y: Any, K: int, value: Callable[[Matrix, Any], Any] | None = None
) -> CheckReport:
    """Everything that can be compared of a loss with K outputs, for labels y of a few rows."""
    report = CheckReport(f"loss {loss!r}")
    z = _spread_of_rows(np.random.default_rng(0), len(y), K)
    if not _shapes_of_rows(report, loss, z[0], y):
        return report
    for name, compare in (
        ("derivative against differences of value", _slopes_of_rows),
        ("value is convex", _convex_of_rows),
        ("the gradient changes by at most 1/gamma", _bend_of_rows),
        ("conjugate at gradients: phi + phi* = <u, z>", _equality_of_rows),
        ("conjugate is no less than <u, z> - phi(z)", _inequality_of_rows),
        ("conjugate against numerical maximisation", _maximum_of_rows),
        ("conjugate is infinite where the maximum is", _outside_of_rows),
    ):
        report.add(name, compare(loss, z, y))
    if hasattr(getattr(loss, "loss", loss), "prox_conjugate"):  # an own loss need not have it
        report.add("prox of the conjugate against brute force", _prox_of_rows(loss, z, y))
    if value is not None:
        mine = [np.asarray(value(t, y), dtype=float) for t in z]
        report.add("value as you wrote it", _differ_of_rows([loss.value(t, y) for t in z], mine))
    return report


def quick_outputs_report(loss: Any, y: Any, K: int) -> CheckReport:
    """The cheap part, at few points."""
    report = CheckReport(f"loss {loss!r}")
    z = _spread_of_rows(np.random.default_rng(0), len(y), K)[::3]
    if _shapes_of_rows(report, loss, z[0], y):
        report.add("derivative against differences of value", _slopes_of_rows(loss, z, y))
        report.add("conjugate at gradients: phi + phi* = <u, z>", _equality_of_rows(loss, z, y))
        report.add("conjugate is no less than <u, z> - phi(z)", _inequality_of_rows(loss, z, y))
    return report


def _spread_of_rows(rng: np.random.Generator, n: int, K: int) -> list[Matrix]:
    sizes = (0.01, 0.3, 1.0, 1.0, 3.0, 3.0, 30.0)
    return [locked(size * rng.standard_normal((n, K))) for size in sizes]


def _shapes_of_rows(report: CheckReport, loss: Any, z: Matrix, y: Any) -> bool:
    n, K = z.shape
    u = loss.derivative(z, y)
    parts = {
        "value": (loss.value(z, y), (n,)),
        "derivative": (u, (n, K)),
        "conjugate": (loss.conjugate(u, y) if np.shape(u) == (n, K) else None, (n,)),
    }
    wrong = [
        f"{name} gives {np.shape(got)}, expected {shape}"
        for name, (got, shape) in parts.items()
        if np.shape(got) != shape
    ]
    report.add("shapes", "; ".join(wrong))
    return not wrong


def _slopes_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    rng = np.random.default_rng(1)
    for t in z:
        d = rng.standard_normal(t.shape)
        h = 1e-6 * (1 + np.abs(t).max(axis=1))
        step = h[:, None] * d
        rise = (loss.value(t + step, y) - loss.value(t - step, y)) / (2 * h)
        ends = [np.sum(loss.derivative(t + s * step, y) * d, axis=1) for s in (-1, 1)]
        size = np.abs(loss.value(t, y))
        room = CLOSE * (1 + np.abs(ends[0]) + np.abs(ends[1])) + 1e-9 * size / h
        bad = ~((np.minimum(*ends) - room <= rise) & (rise <= np.maximum(*ends) + room))
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            return f"at z = {t[k]}: got {ends[1][k]:g} along {d[k]}, value changes by {rise[k]:g}"
    return ""


def _pairs(z: list[Matrix]) -> list[tuple[Matrix, Matrix]]:
    return [(a, b) for k, a in enumerate(z) for b in z[:k]]


def _convex_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    for a, b in _pairs(z):
        ends = 0.5 * (loss.value(a, y) + loss.value(b, y))
        bad = loss.value(0.5 * (a + b), y) > ends + 1e-9 * (1 + np.abs(ends))
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            return f"between {a[k]} and {b[k]}"
    return ""


def _bend_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    if not loss.gamma > 0:
        return ""
    near = [(t, t + 1e-3 * d) for t, d in _pairs(z)]
    for a, b in [*_pairs(z), *near]:
        turned = np.linalg.norm(loss.derivative(a, y) - loss.derivative(b, y), axis=1)
        most = np.linalg.norm(a - b, axis=1) / loss.gamma
        bad = turned > most * (1 + CLOSE) + 1e-9
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            return (
                f"gamma = {loss.gamma:g} is too large: between {a[k]} and {b[k]} it changes by "
                f"{turned[k]:g}, and may by {most[k]:g}"
            )
    return ""


def _equality_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    for t in z:
        u = loss.derivative(t, y)
        inner, at = np.sum(u * t, axis=1), loss.value(t, y)
        star = np.asarray(loss.conjugate(u, y))
        size = 1 + np.abs(at) + np.sum(np.abs(u * t), axis=1)
        bad = ~(np.abs(at + star - inner) <= 1e-9 * size)
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            return f"at z = {t[k]}, u = {u[k]}: phi* is {star[k]:g}, expected {inner[k] - at[k]:g}"
    return ""


def _mixtures(loss: Any, z: list[Matrix], y: Any) -> list[Matrix]:
    """Means of gradients, which are where phi* is finite."""
    u = [loss.derivative(t, y) for t in z]
    return [0.5 * (a + b) for a, b in itertools.pairwise(u)]


def _inequality_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    """phi(z) + phi*(u) >= <u, z>: a phi* that is too small would make a gap too small."""
    for u in _mixtures(loss, z, y):
        star = np.asarray(loss.conjugate(u, y))
        for t in z:
            least = np.sum(u * t, axis=1) - loss.value(t, y)
            bad = ~(star >= least - 1e-9 * (1 + np.abs(least)))
            if bad.any():
                k = int(np.flatnonzero(bad)[0])
                return f"at u = {u[k]}: phi* is {star[k]:g}, expected {least[k]:g} at least"
    return ""


def _maximum_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    """By gradient steps of length gamma, which a smooth loss is sure to gain by."""
    if not loss.gamma > 0:
        return ""
    for u in _mixtures(loss, z, y):
        t, fast, theta = np.zeros_like(u), np.zeros_like(u), 1.0
        for _ in range(500):
            new = fast + loss.gamma * (u - loss.derivative(fast, y))
            later = 0.5 * (1 + np.sqrt(1 + 4 * theta**2))
            fast, t, theta = new + (theta - 1) / later * (new - t), new, later
        most = np.sum(u * t, axis=1) - loss.value(t, y)
        left = np.linalg.norm(u - loss.derivative(t, y), axis=1) * (1 + np.linalg.norm(t, axis=1))
        star = np.asarray(loss.conjugate(u, y))
        bad = ~(np.abs(star - most) <= 1e-6 * (1 + np.abs(most)) + left)
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            return f"at u = {u[k]}: phi* is {star[k]:g}, expected {most[k]:g}"
    return ""


def _outside_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    """A loss that does not change along a direction by more than a line has a phi* of infinity
    off that line: where <u, z> - phi(z) grows without end.
    """
    for u in _mixtures(loss, z, y)[:3]:
        for off in (
            0.1 * np.ones_like(u),
            *(0.6 * s * _unit(u, k) for k in range(min(u.shape[1], 2)) for s in (-1, 1)),
        ):
            far = [np.sum((u + off) * t, axis=1) - loss.value(t, y)
                   for t in (1e3 * off, 1e6 * off)]  # fmt: skip
            endless = far[1] > 500 * np.maximum(far[0], 1.0)
            bad = endless & np.isfinite(np.asarray(loss.conjugate(u + off, y)))
            if bad.any():
                k = int(np.flatnonzero(bad)[0])
                return f"at u = {(u + off)[k]} it is finite"
    return ""


def _unit(u: Matrix, k: int) -> Matrix:
    out = np.zeros_like(u)
    out[:, k] = 1.0
    return out


def _prox_of_rows(loss: Any, z: list[Matrix], y: Any) -> str:
    others = [loss.derivative(t, y) for t in z]
    for step in (0.1, 1.0, 10.0):
        for v in z[1:4]:
            u = np.asarray(loss.prox_conjugate(v, step, y))

            def goal(u: Matrix, v: Matrix = v, step: float = step) -> Vector:
                far = np.sum((u - v) ** 2, axis=1) / (2 * step)
                return np.asarray(loss.conjugate(u, y) + far)

            at = goal(u)
            for q in others:
                for share in (1.0, 0.1, 1e-3):
                    bad = ~(at <= goal(u + share * (q - u)) + 1e-9 * (1 + np.abs(at)))
                    if bad.any():
                        k = int(np.flatnonzero(bad)[0])
                        return f"at v = {v[k]}, step = {step:g}: got {u[k]}, another is less"
    return ""


def _differ_of_rows(mine: list[Any], other: list[Any]) -> str:
    for a, b in zip(mine, other, strict=True):
        if np.shape(a) != np.shape(b):
            return f"got shape {np.shape(b)}, expected {np.shape(a)}"
        bad = ~(np.abs(a - b) <= CLOSE * (1 + np.abs(a) + np.abs(b)))
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            return f"row {k}: got {b[k]:g}, expected {a[k]:g}"
    return ""
