"""What SAG and prox-SVRG share: the problem as their kernel sees it, and the inner loop.

    minimize (1/n) sum_i f_i(w) + lambda g(w),   f_i(w) = s_i phi_i(a_i' w + b)

Both keep one number for each sample, the derivative of s_i phi_i at an earlier prediction, and the
sum G of the samples times these. `_kernels/paper/stochastic.pyx` has the step, in which features
are brought up to date when a sample that has them is drawn: it costs as much as the sample's
nonzeros.
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.paper.stochastic import Memory, Rule, run_stochastic
from ...certify.points import Certificate, Point, Start
from ...data import views
from ...problems.erm import ERM
from ..base import Need, Report
from ..paper.coordinate import Sweeping, weighty

ELASTIC_NET = Need(
    'penalty "l2" or "elasticnet", with one L2 weight for all features and without bounds',
    lambda p: p.separable and p.dual_form and p.interval.is_unbounded and not np.ptp(p.g.b),
    lambda p: f"penalty {p.penalty} is not of that kind",
)


def first_point(problem: ERM, at: Start) -> tuple[Vector, float]:
    """(w, b) to start from: those given, those of a dual point, or zero and the best b for it."""
    w = np.zeros(problem.d)
    if at.w is not None:
        w = problem.check_w(at.w).copy()
    elif at.x is not None:
        w = problem.omega(at.x)
    if not problem.intercept:
        return w, 0.0
    z = problem.samples.times(w) if w.any() else np.zeros(problem.n_samples)
    return w, float(problem.best_shift(z) if at.b is None else at.b)


class Stochastic:
    """The state of the kernel: w, b, the table and G.

    `biased` is SAG's step (SAGA's and SVRG's otherwise), `learns` whether a step writes the table,
    `share` the step size times L, and `search` whether L is searched for. The intercept is a
    feature c without penalty, as large as the mean sample, so that L at most doubles.
    """

    def __init__(
        self,
        problem: ERM,
        w: Vector,
        b: float,
        *,
        share: float,
        biased: bool = False,
        learns: bool = True,
        search: bool = False,
    ) -> None:
        p = self.problem = problem
        squared, g = p.samples.squared_norms(), p.interval
        mean = float(np.mean(p.weights * squared)) if p.intercept else 0.0
        self._c = (math.sqrt(mean) or 1.0) if p.intercept else 0.0
        norms = squared + self._c**2
        #: the largest Lipschitz constant of a grad f_i
        self.most = float(np.max(p.weights * norms)) / p.loss.gamma
        mu = p.strong_convexity
        self._rule = Rule(
            p.loss.kernel, p.loss.theta, p.y, p.weights, norms, margin=p.loss.margin, n=p.n, mu=mu,
            most=self.most, border=self._c, share=share, biased=biased, learns=learns,
            search=search,
        )  # fmt: skip
        self._cells = np.zeros((p.d, 4))
        self._cells[:, 0] = w
        self._cells[:, 3] = p.n * p.alpha * g.a
        self._table = np.full(p.n_samples, np.nan if biased else 0.0)
        room = 2 + max(2 * p.n, p.d) if g.a.any() else 0
        # With L below mu the scale of w would fall by half in a step, for nothing.
        self._memory = Memory(
            self._cells,
            self._table,
            np.empty(room),
            L=max(self.most, mu),
            least=mu,
            b=b / self._c if self._c else 0.0,
        )

    def epoch(self, order: Index) -> None:
        """One step on each sample of `order`."""
        run_stochastic(*self.problem.samples.view(views.arrays), self._rule, self._memory, order)

    @property
    def w(self) -> Vector:
        """The present w."""
        self._memory.fold()
        return self._cells[:, 0].copy()

    @property
    def b(self) -> float:
        """The present intercept."""
        return self._c * self._memory.b

    @property
    def L(self) -> float:
        """The constant that the step size is divided by."""
        return self._memory.L

    @property
    def folds(self) -> int:
        """How often all of w was brought up to date."""
        return self._memory.folds

    @property
    def dual(self) -> tuple[Vector, Vector] | None:
        """x of the table, and A x; None as long as some samples were not seen."""
        p = self.problem
        if self._memory.seen < p.n:
            return None
        return -p.signed(np.nan_to_num(self._table)), -self._cells[:, 2]

    def take_losses(self) -> float:
        """The sum of s_i phi_i over the steps since this was last asked, each at its own w."""
        total, self._memory.losses = self._memory.losses, 0.0
        return total

    def snapshot(self) -> tuple[Vector, Vector, Vector]:
        """Write the table and G at the present w, one pass; returns z = X w + b, x and A x."""
        p = self.problem
        z = p.samples.times(self.w) + self.b
        x = p.loss.duals(z, p.y, p.weights)
        self._table[:] = -p.signed(x)
        self._memory.seen = p.n
        self.refresh()
        return z, x, -self._cells[:, 2]

    def refresh(self) -> None:
        """Compute G anew from the table."""
        self._memory.fold()
        known = np.nan_to_num(self._table)
        self._cells[:, 2] = self.problem.samples.adjoint(known)
        self._memory.b_slope = self._c * float(np.sum(known))

    def back_to(self, w: Vector, b: float, least: float) -> None:
        """Begin anew at w and b with an empty table, and with an L of at least `least`."""
        self._memory.fold()
        self._cells[:, :3] = 0.0
        self._cells[:, 0] = w
        self._table[:] = np.nan
        memory = self._memory
        memory.seen, memory.b_slope, memory.losses = 0, 0.0, 0.0
        memory.b = b / self._c if self._c else 0.0
        memory.L = memory.least = max(least, memory.least)


class StochasticRun(Sweeping):
    """Passes of such a method, with a look after every few."""

    def __init__(
        self, problem: ERM, iterate: Stochastic, sampling: str, rng: np.random.Generator
    ) -> None:
        super().__init__(problem, iterate, weighty(problem), sampling, rng)

    def point(self) -> Point:
        """The present answer."""
        return Point(w=self.iterate.w, b=self.iterate.b)

    @property
    def report(self) -> Report:
        """How often it began anew, and why."""
        return Report(restarts=self.restarts, notes=self.notes)

    def seen(self, certificate: Certificate) -> None:
        """Compute G anew if it may have drifted."""
        if certificate.exact:
            self.iterate.refresh()
