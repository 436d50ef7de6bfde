"""A method at work on an ERM problem: looks at its answers, and knows when to change or give up."""

from __future__ import annotations

import math

import numpy as np

from . import certificate
from ._validation import Index, Vector
from .certificate import Certificate
from .erm import ERM
from .loop import Check
from .methods import shrinking
from .methods.afg import AFG
from .methods.apcg import APCG
from .methods.auto import Auto
from .methods.centred import Centred
from .methods.choice import Choice
from .methods.newton_steps import Newton
from .methods.sdca import SDCA
from .methods.shrinking import Shrinking
from .methods.sweep import Sweep

#: A gap below this many roundings of the sums it is a difference of is nothing but rounding.
_FLOOR = 16 * np.finfo(float).eps
#: Below this relative gap, a gap that no longer falls is taken for rounding.
_STALL = 1e-9

Method = APCG | Auto | SDCA | AFG | Newton | Centred


class Monitor:
    """A method and what is known of its answers: looks at it, and knows when to give up."""

    def __init__(
        self,
        problem: ERM,
        method: Method,
        mu: float,
        sampled: Index,
        tol: float,
        choice: Choice | None,
        start: Certificate | None,
    ) -> None:
        self.problem, self.tol = problem, tol
        self._pair = choice is not None and problem.dual_form and problem.g.is_quadratic
        self._best_pair: Certificate | None = start
        self.passes = 0.0
        self._kept, self.sweep = sampled, Sweep(sampled)
        self._choice = choice
        self._shrinking = Shrinking(problem, sampled) if shrinking.applies(problem) else None
        self._take(method, mu)

    def _take(self, method: Method, mu: float) -> None:
        """Go on with this method, whose mu is that (Auto says its own)."""
        self.method, self._mu = method, mu
        self._full = isinstance(method, AFG | Newton)
        self.side = "primal" if self._full or not self.problem.dual_form else "dual"
        self._best, self._best_at, self._looks, self._refreshed = math.inf, 0, 0, False
        self._last, self._rises = math.inf, 0

    def epoch(self, order: Index) -> int:
        """An epoch of the method; gives the passes over the data that it takes."""
        passes = self.method.epoch(order)
        self.passes += passes * order.size / max(self.sweep.steps, 1)
        return passes

    def renew(self) -> None:
        """Before an epoch: who comes back, and who has moved much."""
        if isinstance(self._inner, Auto):
            if self._shrinking and self._shrinking.expired(self.passes):
                self._kept = self._shrinking.all
            self.sweep = self._inner.sample(self._kept)

    @property
    def mu(self) -> float:
        """The mu of the method, or its mu-hat."""
        return self._inner.mu if isinstance(self._inner, Auto) else self._mu

    @property
    def _inner(self) -> Method:
        """The method, without what moves its centre."""
        return self.method.method if isinstance(self.method, Centred) else self.method

    def examine(self) -> Check:
        """The certificate of the present answer, from p and q; if it would do, from x alone."""
        found = self._certificate(trust=True)
        trusted = found.primal
        if found.gap <= self.tol * abs(found.primal) or found.gap <= 0:
            found = self._certificate(trust=False)
            if found.gap > self.tol * abs(found.primal):
                self._refresh()  # p and q have drifted
        if isinstance(self.method, Centred):
            self.method.follow(trusted)
        exhausted = self._exhausted(found)
        if self._shrinking and isinstance(self._inner, Auto):
            self._kept = self._shrinking.after_look(self._inner, found, self.passes)
        if self._pair:
            found = self._with_the_best(found)
        columns = {
            "primal": found.primal,
            "dual": found.dual,
            "gap": found.gap,
            "mu": self.mu,
            "restarts": self._inner.restarts if isinstance(self._inner, Auto) else 0,
        }
        check = Check(
            found.x,
            found.relative,
            found.gap if math.isfinite(found.gap) else math.inf,
            columns,
            w=found.w,
            intercept=found.intercept,
            side=self.side,
            exhausted=exhausted,
        )
        self._choose(found)
        return check

    def _with_the_best(self, found: Certificate) -> Certificate:
        """The best w and the best x so far, which need not be of one look."""
        if self._best_pair is not None and self._best_pair.finite and found.finite:
            found = certificate.combine(self.problem, self._best_pair, found)
            if found.gap <= self.tol * abs(found.primal):
                found = certificate.of_pair(self.problem, found.w, found.x, found.intercept)
        self._best_pair = found
        return found

    def _choose(self, found: Certificate) -> None:
        """Leave the dual for the primal if that is cheaper."""
        if (
            self._choice
            and isinstance(self._inner, Auto)
            and self._choice.leave(self.passes, found.relative)
        ):
            self._choice = None
            b = [found.intercept] if self.problem.intercept else []
            self._take(Newton(self.problem, np.append(found.w, b)), 1.0)  # no momentum, like SDCA

    def of_best(self, best: Check, exact: bool) -> Certificate:
        """The certificate to give back: from x and w alone, whatever ended the loop."""
        assert best.w is not None
        if exact or self._pair:
            return certificate.of_pair(self.problem, best.w, best.x, best.intercept)
        if self.problem.intercept and best.side == "dual":
            return certificate.with_intercept(
                self.problem, best.w, best.x, best.intercept, best=True
            )
        if self.problem.intercept:
            return certificate.of_primal(self.problem, best.w, b=best.intercept)
        if best.side == "primal":
            return certificate.of_primal(self.problem, best.w)
        return certificate.of_dual(self.problem, best.x)

    def _refresh(self) -> None:
        if not isinstance(self.method, AFG | Newton):
            self.method.refresh()

    def _certificate(self, *, trust: bool) -> Certificate:
        p = self.problem
        if isinstance(self.method, AFG | Newton):
            point = self.method.point
            return self._of_primal(point.w, point.z if trust else None)
        if isinstance(self.method, Centred):
            x = self.method.centre.form.nearest(self.method.x)
            w = p.g.conjugate_gradient(self.method.rows(1 / (p.alpha * p.n)))
            return certificate.with_intercept(p, w, x, self.method.intercept, best=not trust)
        x = p.form.nearest(self.method.x)
        if self.side == "dual":
            v = self.method.rows(1 / (p.alpha * p.n)) if trust else None
            return certificate.of_dual(p, x, v)
        rows = self.method.rows()
        z = rows if p.loss.margin else rows + p.y
        return self._of_primal(x, z if trust else None)

    def _of_primal(self, w: Vector, z: Vector | None) -> Certificate:
        if not self.problem.intercept:
            return certificate.of_primal(self.problem, w, z)
        w, b = w[:-1], float(w[-1])  # and z is X w + b
        return certificate.of_primal(self.problem, w, None if z is None else z - b, b)

    def _exhausted(self, found: Certificate) -> bool:
        """Whether the gap is rounding error: tiny, or small and not falling any more."""
        self._looks += 1
        self._rises += found.gap > self._last
        self._last = found.gap
        if found.gap < 0.9 * self._best:
            self._best, self._best_at, self._rises = found.gap, self._looks, 0
        scale = abs(found.primal) + abs(found.dual)
        since = self._looks - self._best_at
        stuck = since > max(20, self._looks // 2)
        # rounding goes up as often as down; what is only slow goes down
        stalled = stuck and self._rises > since // 4
        if stuck and not self._refreshed:  # is it the drift of p and q?
            self._refresh()
            self._refreshed, self._best_at, self._rises = True, self._looks, 0
            return False
        return bool(found.gap <= _FLOOR * scale or (stalled and found.gap <= _STALL * scale))

    @property
    def work(self) -> int:
        """The multiply-adds of an epoch, if it may be run in pieces."""
        return 0 if self._full else self.problem.samples.nnz

    @property
    def needs_looks(self) -> bool:
        """Shrinking and the choice of side go by them."""
        return isinstance(self._inner, Auto)

    @property
    def check_every(self) -> int:
        """A check costs so many multiply-adds, a pass so many: under 20 % for checks (measured).

        At first it is more often, so that what is soon solved ends soon.
        """
        p = self.problem
        if isinstance(self.method, Newton):
            return 1  # it needs the same gradient
        if isinstance(self.method, AFG):
            return 1 if p.samples.nnz > 1_000_000 else 5
        check = 2 * p.samples.nnz + 10 * p.n_samples + 8 * p.d + 50_000
        a_pass = 4 * p.samples.nnz + 20 * p.n_samples
        return int(min(20, max(1, self.passes // 2), max(1, math.ceil(5 * check / a_pass))))
