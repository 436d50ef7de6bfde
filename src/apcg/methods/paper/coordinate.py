"""An ERM problem as coordinate methods see it, and their inner loop.

`Coordinates` has the form f + Psi that is solved (the dual, or the primal if g is not strongly
convex), where to start, which coordinates to sample, and what the iterate x says about the problem:
a `Point`. `CoordinateRun` sweeps over them until a look can pay.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from ..._base import validation as validate
from ..._base.validation import Index, Vector
from ..._kernels.paper.sdca import run_plain
from ...certify.points import Certificate, Point, Start
from ...data import views
from ...problems import costs
from ...problems.composite import settle_zero_blocks
from ...problems.erm import ERM
from ..base import REFRESH, Budget, Report, Run, Target, Work
from .proximal_intercept import ProximalIntercept
from .sampling import Sampler, Sweep

#: A kernel call does about this many multiply-adds, so that Ctrl-C and time limits are heard.
CHUNK = 20_000_000


class Iterate(Protocol):
    """The state of a coordinate method."""

    @property
    def x(self) -> Vector:
        """The present answer."""

    def epoch(self, order: Index) -> None:
        """One step on each coordinate of `order`."""

    def rows(self, scale: float = 1.0) -> Vector:
        """scale (A x less the shift of h), as accumulated."""

    def refresh(self) -> None:
        """Compute what is accumulated anew."""

    def shift(self, change: float) -> None:
        """Add `change` to the last row, at every x."""


class Coordinates:
    """The form of an ERM problem, where to start, and which coordinates to sample."""

    def __init__(self, problem: ERM, at: Start) -> None:
        self.problem = problem
        dual = problem.dual_form
        length = problem.n_samples if dual else problem.d
        start = np.zeros(length) if dual else problem.g.clip(np.zeros(length))
        given = at.x if dual else at.w
        if given is not None:
            start = validate.vector(given, length, "x0").copy()
        self.intercept: ProximalIntercept | None = None
        if problem.intercept and dual:
            self.intercept = ProximalIntercept(problem, _first_b(problem, start, at))
        elif problem.intercept:
            start = np.append(start, _first_b(problem, start, at))
        self.form = self.intercept.form if self.intercept else problem.form
        left_out = _left_out(problem)
        self._check_start(start, left_out)
        sampled, start = settle_zero_blocks(self.form, start)
        start[left_out] = 0.0
        self.sampled = np.setdiff1d(sampled, left_out) if left_out.size else sampled
        self._start: Vector | None = start

    def take_start(self) -> Vector:
        """Where to start. It is given away once: the iterate has its own copy."""
        assert self._start is not None
        start, self._start = self._start, None
        return start

    @property
    def side(self) -> str:
        """Whose coordinates these are: "dual" or "primal"."""
        return "dual" if self.problem.dual_form else "primal"

    @property
    def mu(self) -> float:
        """The mu of the theorem."""
        if self.intercept:
            return self.intercept.mu
        return self.problem.mu if self.problem.dual_form else self.form.mu

    def point(self, iterate: Iterate) -> Point:
        """The point of the problem that the iterate stands for, with the sums it keeps."""
        p, x = self.problem, self.form.nearest(iterate.x)
        if p.dual_form:
            v = iterate.rows(1 / (p.alpha * p.n))
            if self.intercept is None:
                return Point(x=x, v=v)
            return Point(x=x, v=v[:-1], b=self.intercept.b(iterate))
        rows = iterate.rows()
        z = rows if p.loss.margin else rows + p.y
        if p.intercept:
            return Point(w=x[:-1], b=float(x[-1]), z=z)
        return Point(w=x, z=z)

    def _check_start(self, start: Vector, left_out: Index) -> None:
        p = self.problem
        if math.isfinite(self.form.psi_value(start)) and not np.any(start[left_out]):
            return
        if not p.dual_form:
            raise ValueError(
                f"x0 must be within the bounds of the penalty {p.penalty} (and w >= 0 if it is "
                "positive), and is not; its entries are those of w."
            )
        raise ValueError(
            "x0 must be dual feasible: phi* is infinite at it. Dual variables of loss "
            f"{p.loss.name!r} are in {p.loss.domain}, times their weights."
        )


def _first_b(problem: ERM, start: Vector, at: Start) -> float:
    """The intercept to start from: one that is known, or the best for the start."""
    if at.b is not None:
        return float(at.b)
    w = problem.omega(start) if problem.dual_form else start
    return float(problem.best_shift(problem.samples.times(w)))


def _left_out(problem: ERM) -> Index:
    """Coordinates of the dual that are rows of weight zero."""
    if not problem.dual_form or problem.weights.size == 1:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(problem.weights == 0)


def weighty(problem: ERM) -> Index:
    """The samples of positive weight."""
    return np.flatnonzero(np.broadcast_to(problem.weights > 0, problem.n_samples))


class Sweeping(Run):
    """Passes of an iterate over some of the coordinates, or samples, with a look every few."""

    #: Whether it uses looks between those of the user.
    steers = False
    #: The iterate computes its sums anew after so many passes; 0: never.
    refresh = 0

    def __init__(
        self, problem: ERM, iterate: Any, kept: Index, sampling: str, rng: np.random.Generator
    ) -> None:
        self.problem, self.iterate, self._rng = problem, iterate, rng
        self._sampler, self._sweep = Sampler(rng, sampling), Sweep(kept)
        self._pieces = max(1, problem.samples.nnz // CHUNK)
        self.passes = self.restarts = 0
        self.notes: list[str] = []

    def advance(self, budget: Budget) -> Work:
        """Sweeps until the next look is due."""
        wanted = budget.passes
        if self.steers or not budget.fixed:
            wanted = min(wanted, self._until_look())
        for done in range(1, wanted + 1):
            finished = self._pass(budget)
            self.passes += 1
            if self.refresh and self.passes % self.refresh == 0:
                self.iterate.refresh()
            if not finished:
                return Work(done)
        return Work(wanted)

    def sweep(self) -> Sweep:
        """What the next pass samples."""
        return self._sweep

    def _pass(self, budget: Budget) -> bool:
        """One pass over the data, in pieces; returns whether there was time for all of it."""
        order = self._sampler.draw(self.sweep())
        for piece in np.array_split(order, self._pieces) if self._pieces > 1 else (order,):
            self.iterate.epoch(piece)
            if budget.expired:
                return False
        return True

    def _until_look(self) -> int:
        return costs.until_look(self.problem, self.passes)


class CoordinateRun(Sweeping):
    """Sweeps of an iterate over the coordinates of a problem."""

    refresh = REFRESH

    def __init__(
        self,
        coordinates: Coordinates,
        iterate: Iterate,
        mu: float,
        target: Target,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(coordinates.problem, iterate, coordinates.sampled, target.sampling, rng)
        self.coordinates, self.target, self._mu = coordinates, target, mu

    @property
    def report(self) -> Report:
        """The mu that momentum goes by."""
        return Report(self.coordinates.side, mu=self._mu, notes=self.notes)

    def point(self) -> Point | Certificate:
        """The present answer."""
        return self.coordinates.point(self.iterate)

    def seen(self, certificate: Certificate) -> None:
        """Let the proximal intercept follow, and refresh the sums if they have drifted."""
        if certificate.exact:
            self.iterate.refresh()
        elif self.coordinates.intercept:
            self.coordinates.intercept.follow(self.iterate, certificate)

    def finish(self, certificate: Certificate, converged: bool) -> Point | None:
        """In the primal, one pass of plain coordinate descent.

        The w of an accelerated method is an average, with tiny numbers where L1 wants zeros. The
        prox of a plain step puts them to zero.
        """
        return None if self.problem.dual_form else with_zeros(self.problem, certificate, self._rng)


def with_zeros(problem: ERM, found: Certificate, rng: np.random.Generator) -> Point:
    """w with zeros where its prox step has them, after one pass of coordinate descent.

    The pass alone moves what is small by a little, and puts to zero what is next to it.
    """
    form = problem.form
    x = form.with_zeros(np.append(found.w, found.b) if problem.intercept else found.w)
    order = rng.permutation(np.flatnonzero(form.L > 0))
    run_plain(*form.f.columns.view(views.arrays), form.model(), x, form.f.rows(x), order)
    return Point(w=x[: problem.d])
