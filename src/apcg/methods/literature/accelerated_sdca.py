"""Accelerated SDCA: an accelerated proximal point method in w, each of its problems solved by SDCA.

Shalev-Shwartz and Zhang, "Accelerated proximal stochastic dual coordinate ascent for regularized
loss minimization", ICML 2014; Math. Program. 155 (2016). With R^2 = max_i s_i|a_i|^2 and lambda
the strong convexity of the penalty,

    kappa = R^2/(gamma n) - lambda,   mu = lambda/2,   rho = mu + kappa,   eta = sqrt(mu/rho)
    xi_1 = (1 + 1/eta^2)(P(w_1) - D(x_1)),   y_1 = w_1

    for t = 2, 3, ...
        (w_t, x_t) = SDCA on P_t(w) = P(w) + (kappa/2)|w|^2 - kappa <w, y_{t-1}>, from x_{t-1},
                     until its duality gap is at most eta/(2 (1 + 1/eta^2)) xi_{t-1}
        y_t = w_t + (1 - eta)/(1 + eta) (w_t - w_{t-1})
        xi_t = (1 - eta/2)^(t-1) xi_1

The condition number of P_t is n, so that SDCA needs a few passes for each. Where that of P itself,
R^2/(lambda gamma), is at most 10 n, plain SDCA is taken, as the authors say.

In the dual of P_t the term is a shift of the rows: w = grad G*(A x/n + kappa y) with G the penalty
and its square together. A new y moves the rows by kappa n times its change, without a pass over
the data. The duality gap of P_t is a sum over samples,

    (1/n) sum_i s_i (phi_i(z_i) + phi_i*(-x_i/s_i)) + x_i z_i,

and takes X w: half a pass, which is counted. It is computed after every pass of SDCA.

The pair (w_t, x_t) is certified for P itself. Where P* is far below P(w_1), xi_1 is so large that
one pass is enough for each P_t for a long time, and the error of these w_t is all there is to see.
So the method begins anew from (w_t, x_t) when a look has found a gap whose xi_1 is less than half
the present xi_t. Each part is the method as printed; `restart=False` makes it one.

An intercept without penalty has no place in it: the rate rests on P being strongly convex in all
that is solved for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.paper.sdca import run_plain
from ...certify.certificate import certify
from ...certify.points import Certificate, Point, Start
from ...data import views
from ...problems.erm import ERM
from ..base import (
    COMPILED_LOSS,
    NO_INTERCEPT,
    ONE_OUTPUT,
    SEPARABLE,
    SMOOTH_LOSS,
    STRONGLY_CONVEX,
    Budget,
    Needs,
    Report,
    Run,
    Target,
    Work,
)
from ..paper.coordinate import Coordinates, Sweeping, weighty
from ..paper.sdca import DualAscent

#: Plain SDCA where R^2/(lambda gamma) is at most this many times n: the rule of the authors.
PLAIN_UP_TO = 10.0
#: Begin anew if the xi_1 of a gap that was certified is this part of xi_t. On rcv1 to 1e-6, lambda
#: 1e-6 and 1e-7: 171 and 459 passes; with 0.1, 279 and 1,444; never, 441 and 1,705. On random data
#: it costs up to 25 % of the passes (docs/methods-side-by-side.md).
RESTART_AT = 0.5
#: A gap of P_t that is this part of the sums it is made of is rounding.
ROUNDING = 4 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Constants:
    """kappa, rho/mu = 1/eta^2, eta and beta of a problem, and the first bound xi_1."""

    kappa: float
    ratio: float
    eta: float
    beta: float
    xi: float

    @classmethod
    def of(cls, lam: float, R2: float, gamma: float, n: int, gap: float) -> Constants:
        """As the authors choose them; `gap` is P - D at the start."""
        kappa = R2 / (gamma * n) - lam
        ratio = (lam / 2 + kappa) / (lam / 2)
        eta = 1 / math.sqrt(ratio)
        return cls(kappa, ratio, eta, (1 - eta) / (1 + eta), 0.0).begun(gap)

    def begun(self, gap: float) -> Constants:
        """The same for a start with this gap."""
        return replace(self, xi=(1 + self.ratio) * gap)

    def xi_at(self, t: int) -> float:
        """xi_t"""
        return (1 - self.eta / 2) ** (t - 1) * self.xi

    def precision(self, t: int) -> float:
        """The gap to which P_t is solved, t = 2, 3, ..."""
        return self.eta / (2 * (1 + self.ratio)) * self.xi_at(t - 1)


class AcceleratedSDCA:
    """w_t, y_t, x, and the rows A x + kappa n y of the problem that SDCA is at work on."""

    def __init__(self, problem: ERM, w: Vector, x: Vector, gap: float) -> None:
        p = self.problem = problem
        R2 = float(np.max(p.weights * p.samples.squared_norms()))
        self.constants = Constants.of(p.strong_convexity, R2, p.loss.gamma, p.n, gap)
        g, kappa = p.interval, self.constants.kappa
        self._g = replace(g, b=g.b + kappa / p.alpha)
        form = p.altered(g=self._g).form
        self._form, self._columns, self._model = (
            form,
            form.f.columns.view(views.arrays),
            form.model(),
        )
        self.t = 2
        self.w, self.y, self._x = w.copy(), w.copy(), x.copy()
        self._rows = form.f.rows(x) + kappa * p.n * w

    def epoch(self, order: Index) -> None:
        """A step of SDCA on P_t for each sample of `order`."""
        run_plain(*self._columns, self._model, self._x, self._rows, order)

    @property
    def x(self) -> Vector:
        """The present dual point."""
        return self._form.nearest(self._x.copy())

    @property
    def inner(self) -> Vector:
        """The w of P_t that belongs to x."""
        p = self.problem
        return self._g.conjugate_gradient(self._rows / (p.alpha * p.n))

    @property
    def v(self) -> Vector:
        """A x/(lambda n)"""
        p = self.problem
        return (self._rows - self.constants.kappa * p.n * self.y) / (p.alpha * p.n)

    def gap(self, z: Vector) -> float:
        """The duality gap of P_t, from the predictions of its w; 0 if it is rounding."""
        p = self.problem
        m, x = p.loss.argument(z, p.y), self.x
        total = float(np.sum(p.loss.gap_share(m, x, p.weights)))
        sizes = float(np.sum(np.abs(x * m))) + abs(p.loss_total(z))
        return total / p.n if total > ROUNDING * sizes else 0.0

    @property
    def precision(self) -> float:
        """The gap to which P_t is to be solved."""
        return self.constants.precision(self.t)

    def step(self, w: Vector) -> None:
        """The step of the outer method, to w_t = w."""
        self._place(w + self.constants.beta * (w - self.w))
        self.w = w
        self.t += 1

    def restart(self, w: Vector, gap: float) -> bool:
        """Begin anew from w and x, whose gap was certified, if that shortens the way."""
        begun = self.constants.begun(gap)
        if not begun.xi < RESTART_AT * self.constants.xi_at(self.t - 1):
            return False
        self.constants, self.t = begun, 2
        self.w = w.copy()
        self._place(self.w)
        return True

    def _place(self, y: Vector) -> None:
        self._rows += self.constants.kappa * self.problem.n * (y - self.y)
        self.y = y

    def refresh(self) -> None:
        """Compute the rows anew from x and y."""
        p = self.problem
        self._rows = p.samples.adjoint(p.signed(self._x)) + self.constants.kappa * p.n * self.y


@dataclass(frozen=True)
class AcceleratedDualAscent:
    """Accelerated SDCA; plain SDCA if the condition number is at most `plain_up_to` times n.

    Without `restart` the schedule xi_t is that of the start to the end.
    """

    restart: bool = True
    plain_up_to: float = PLAIN_UP_TO
    name: ClassVar[str] = "accelerated_sdca"
    needs: ClassVar[Needs] = (
        ONE_OUTPUT,
        COMPILED_LOSS,
        SMOOTH_LOSS,
        SEPARABLE,
        STRONGLY_CONVEX,
        NO_INTERCEPT,
    )

    def start(self, problem: ERM, at: Start, target: Target, rng: np.random.Generator) -> Run:
        """Begin at x, with w = omega(x) if none is given."""
        ratio = problem.condition_number / problem.n
        if not ratio > self.plain_up_to:
            run = DualAscent().start(problem, at, target, rng)
            run.notes.append(f"R^2/(lambda gamma) is {ratio:.3g} n: plain SDCA")
            return run
        x = Coordinates(problem, at).take_start()
        found = certify(problem, Point(w=at.w, x=x))
        iterate = AcceleratedSDCA(problem, found.w, found.x, found.gap)
        halves = 0 if at.is_cold else 2  # the gap at the start
        return AcceleratedRun(problem, iterate, self.restart, halves, target, rng)


class AcceleratedRun(Sweeping):
    """Passes of SDCA over the problems P_t, and looks at their gaps."""

    def __init__(
        self,
        problem: ERM,
        iterate: AcceleratedSDCA,
        restart: bool,
        halves: int,
        target: Target,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(problem, iterate, weighty(problem), target.sampling, rng)
        self._restart, self._halves = restart, halves  # half passes that were made and not yet told
        self._swept = False  # whether SDCA has made a pass since the gap was computed
        self._known: Point | None = None  # what it was computed from

    def advance(self, budget: Budget) -> Work:
        """Passes over the P_t until a look is due: after a gap was computed, if it can be."""
        wanted = budget.passes
        if not budget.fixed:
            wanted = min(wanted, self._until_look())
        while self._halves < 2 * wanted and not budget.expired:
            self._halves += self._check() if self._swept else self._sweep_once(budget)
        if self._swept and not budget.fixed and not budget.expired:
            self._halves += self._check()
        passes, self._halves = divmod(self._halves, 2)
        self.passes += passes
        return Work(passes)

    def _sweep_once(self, budget: Budget) -> int:
        """A pass of SDCA on P_t; returns the half passes that it took."""
        self._swept, self._known = True, None
        self._pass(budget)
        return 2

    def _check(self) -> int:
        """Compute the gap of P_t, and take the outer step if it is small enough."""
        it = self.iterate
        w = it.inner
        z = self.problem.samples.times(w)
        self._swept, self._known = False, Point(w=w, x=it.x, z=z, v=it.v)
        if it.gap(z) <= it.precision:
            it.step(w)
        return 1

    def point(self) -> Point:
        """The present answer, with its sums if the gap of P_t was just computed."""
        if self._known is not None:
            return self._known
        return Point(w=self.iterate.inner, x=self.iterate.x, v=self.iterate.v)

    @property
    def report(self) -> Report:
        """How often it began anew."""
        return Report("dual", restarts=self.restarts)

    def seen(self, certificate: Certificate) -> None:
        """Begin anew if the gap is far below xi_t; refresh the rows if they may have drifted."""
        if self._restart and self.iterate.restart(certificate.w, certificate.gap):
            self.restarts += 1
        if certificate.exact:
            self.iterate.refresh()
