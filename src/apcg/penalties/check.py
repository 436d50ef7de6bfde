"""`penalties.check`: value, prox and strong convexity of a psi, compared by brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._base.checks import CLOSE, CheckReport, inner
from .._base.validation import Vector
from .psi import OwnPenalty, Penalty, refuse_ignored


def check(psi: Penalty | OwnPenalty, size: int | None = None, i: int = 0) -> CheckReport:
    """Compare value, prox and strong convexity of a penalty with one another, by brute force.

    Parameters
    ----------
    psi : Penalty
        An object of `apcg.penalties`, or one of your own.
    size : int, default=None
        The length of block i; None if blocks are coordinates, which are passed as numbers.
    i : int, default=0
        Which psi_i to look at.

    Returns
    -------
    CheckReport
        True if all is well; `str` has a line for each comparison.

    Examples
    --------
    >>> from apcg import penalties
    >>> bool(penalties.check(penalties.L1(0.5))), bool(penalties.check(penalties.GroupL2(1.0), 3))
    (True, True)
    """
    if isinstance(psi, Penalty):
        refuse_ignored(psi)
        size = 1 if psi.is_block and size is None else size
    missing = [name for name in ("value", "prox") if not callable(getattr(psi, name, None))]
    if missing:
        raise TypeError(
            f"psi must have value(x_i, i) and prox(v, step, i); {psi!r} has no "
            f"{' and no '.join(missing)}."
        )
    return penalty_report(psi, size, i)


def penalty_report(psi: Any, size: int | None, i: int) -> CheckReport:
    """Everything that can be compared of a penalty; see `penalties.check`."""
    report = CheckReport(f"penalty {psi!r}")
    rng = np.random.default_rng(0)
    points = [_block(rng.standard_normal(size or 1) * s, size) for s in (0.01, 0.3, 1.0, 5.0, 100)]
    steps = (0.01, 0.5, 1.0, 10.0)
    mu = np.asarray(getattr(psi, "strong_convexity", 0.0), dtype=float)
    mu_i = float(mu if mu.ndim == 0 else mu[i])
    tried = [(v, s, psi.prox(v, s, i)) for v in points for s in steps]
    shape = next(
        (f"prox({v}, {s:g}) is {p!r}" for v, s, p in tried if np.shape(p) != np.shape(v)), ""
    )
    report.add("prox has the shape of v", shape)
    if shape:
        return report
    _prox(report, psi, i, tried, rng)
    nearer = ""
    for k, (v, s, p) in enumerate(tried):
        for u, t, q in tried[:k]:
            apart = inner(p - q, p - q)
            if s == t and apart > inner(p - q, v - u) + CLOSE * (1 + apart):
                nearer = nearer or f"prox at {v} and {u}, step {s:g}, are too far apart"
    report.add("prox is firmly non-expansive", nearer)
    bent = ""
    found = [p for _, _, p in tried if math.isfinite(psi.value(p, i))]
    for p in found:
        for q in found:
            middle = psi.value(0.5 * (p + q), i) + mu_i / 8 * inner(p - q, p - q)
            ends = 0.5 * (psi.value(p, i) + psi.value(q, i))
            if middle > ends + CLOSE * (1 + abs(ends)):
                bent = bent or f"between {p} and {q}"
    what = f"value is convex, strongly so with {mu_i:g}" if mu_i else "value is convex"
    report.add(what, bent)
    return report


def _prox(
    report: CheckReport, psi: Any, i: int, tried: list[Any], rng: np.random.Generator
) -> None:
    wrong, infinite = "", ""
    for v, step, p in tried:
        at = float(psi.value(p, i))
        if not math.isfinite(at):
            infinite = infinite or f"value is {at} at prox({v}, {step:g}) = {p}"
            continue
        goal = at + inner(p - v, p - v) / (2 * step)
        for scale in np.logspace(-4, 1, 11):
            for _ in range(4):
                d = rng.standard_normal(np.shape(v)) * scale * (1 + np.max(np.abs(p)))
                for q in (p + d, p - d, 0 * p, p + (v - p) * min(scale, 1.0)):
                    other = float(psi.value(q, i)) + inner(q - v, q - v) / (2 * step)
                    if other < goal - 1e-9 * (1 + abs(goal)):
                        wrong = wrong or f"at v = {v}, step = {step:g}: got {p}, {q} is less"
    report.add("value is finite where prox is", infinite)
    report.add("prox against brute force", wrong)


def _block(v: Vector, size: int | None) -> Any:
    return float(v[0]) if size is None else v
