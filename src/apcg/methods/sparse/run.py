"""What all runs of the method share: where it is, the gap, stages, a move along a line."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..._base.validation import Index, Vector
from ..._kernels.data.matrix import inner
from ...certify.certificate import certify_given
from ...certify.points import Certificate, Point, Start
from ...problems import costs
from ...problems.erm import ERM
from ..base import Budget, Report, Run, Target, Work
from .losses_at import Evaluated
from .parts import columns_of, losses_of, penalty_of
from .state import GapLook, Progress, State, Told, placed
from .tuning import SetTuning

#: what `GramModel.solve` takes
Wanted = tuple[float, float, float, float]

#: below this relative gap a run that gets no further is at the end of double precision
STALL = 1e-9
#: a model that is not exact is solved to this part of the violation it began with
FORCING = 0.1
#: what the floor changes by: after a step that was cut, and after a whole one
FLOOR_UP, FLOOR_DOWN = 10.0, 0.1
#: Armijo's constant, and trials of a search along a line
ARMIJO, TRIALS = 0.01, 20
#: slopes by a Gram matrix and by a pass over the data differ by rounding, relative to a_j
NEAR = 1e-10


class SparseRun(Run):
    """The method at work: losses, a penalty and columns. A subclass says what a round is.

    state    the point, its losses and its slopes: a record, replaced as a whole
    losses   the losses and the shape of w, predictions and dual points
    penalty  alpha g, on entries of w or on groups of them
    columns  where sets of columns are from
    theta    a_j is theta times what it is in P; it falls to 1
    floor    the least curvature of a row that a model has, as part of the most
    """

    #: whether no other method is there to go on where this one gets no further
    alone = True
    #: after so many passes another one is predicted to be faster
    most = math.inf
    #: a dual point is scaled to be feasible with so much to spare, for rounding of the slopes
    slack = 1e-14

    def __init__(self, problem: ERM, at: Start, target: Target, tuning: SetTuning) -> None:
        self.problem, self.tuning, self._tol = problem, tuning, target.tol
        self.losses, self.penalty = losses_of(problem), penalty_of(problem)
        self.columns = columns_of(problem, self.losses, tuning)
        self.state = self._start(problem, at)
        self.theta, self.floor = math.inf if at.w is None else 1.0, tuning.floor
        self._steeper: Vector | None = None
        self.cost, self._told = 0.0, Told()
        self._look, self._progress = GapLook(), Progress()
        self.turned = False  # whether it goes on from another alpha, and is nearly right
        self.stuck = False
        #: why another method should go on, if there is a reason
        self.why = ""
        #: the relative gap, when it was last computed
        self.relative = math.inf

    def _start(self, problem: ERM, at: Start) -> State:
        """Where it begins: at.w and at.b, or the point nearest to 0."""
        if at.w is not None and not problem.g.contains(at.w):
            raise ValueError("x0 must be within the bounds of the penalty.")
        w, b = self.losses.start(at.w, at.b)
        return State(self.penalty.start(w) if at.w is None else w, b)

    @property
    def w(self) -> Any:
        """The weights, in the order of the penalty."""
        return self.state.w

    @property
    def b(self) -> Any:
        """The intercept, or one for each output."""
        return self.state.b

    @property
    def descent(self) -> Any:
        """Minus the gradient of the losses by w, at the best b."""
        return self.state.descent

    @property
    def at(self) -> Evaluated:
        """The predictions with their losses."""
        assert self.state.seen is not None
        return self.state.seen

    @property
    def begun(self) -> bool:
        """Whether the losses at its point are known."""
        return self.state.seen is not None

    def now(self, **changes: Any) -> None:
        """The state with some of its fields anew."""
        self.state = self.state.but(**changes)

    def goes_on(self, problem: ERM, w: Vector | None = None) -> bool:
        """Whether it can go on with this problem: the same data and penalty; and is at w."""
        mine, ready = self.problem, self.begun and not self.stuck
        names = ("samples", "y", "g", "weights", "loss", "intercept")
        same = all(getattr(mine, name) is getattr(problem, name) for name in names)
        return ready and same and self.theta == 1 and (w is None or self.is_at(w))

    def value(self) -> float:
        """P at theta."""
        return float(self.at.value + self.penalty.times(self.theta).value(self.w))

    def is_at(self, w: Vector) -> bool:
        """Whether w is where it is."""
        return np.array_equal(w, self.losses.own(self.w))

    def turn(self, problem: ERM, target: Target) -> SparseRun:
        """The run that goes on with another alpha and the same data: this one, or a faster one."""
        self.problem, self._tol = problem, target.tol
        self.losses.problem, self.penalty = problem, penalty_of(problem)
        self.columns.begin()
        self.theta = 1.0
        self.now(pair=None)
        self._look, self._progress = GapLook(), Progress()
        self.cost, self._told, self.stuck, self.turned = 0.0, Told(), False, True
        return self

    def resume(self, problem: ERM, target: Target, w: Vector | None = None) -> SparseRun | None:
        """The run that goes on with another alpha, if this one can; from w, if that is given."""
        return self.turn(problem, target) if self.goes_on(problem, w) else None

    # ---- the protocol ---------------------------------------------------------------------------

    def advance(self, budget: Budget) -> Work:
        """Rounds until the gap is predicted to pass, or the budget is spent."""
        self._told.begin(budget, self.cost)
        if not self.begun:
            self.begin(budget)
        elif self.turned and self.blind and budget.passes > 0:
            # hardly any point is good enough for another alpha, so it is not looked at first
            self.round(math.inf, self.value())
        while True:
            gap, value = self.gap()
            self.relative = gap / abs(value) if self.theta == 1 and value else math.inf
            if self.theta == 1 and gap <= self._tol * abs(value):
                break
            if self.is_over():
                break
            before = self.cost
            if self.cost > self.most:
                self.why = f"it took more than {self.most:.0f} passes"
                return self._give_up(True, budget)
            if self._idles(gap, value) or not self.round(gap, value):
                return self._give_up(gap <= STALL * abs(value), budget)
            self.cost = max(self.cost, before + 0.1)  # so that a budget ends it in any case
        return self._told.more(self.cost)

    def is_over(self, more: float = 0.0) -> bool:
        """Whether the budget is spent, so many passes later."""
        return self._told.is_over(self.cost + more)

    def _give_up(self, rounding: bool, budget: Budget) -> Work:
        """It gets no further, by rounding or else. Without a successor, the budget is spent."""
        if not rounding and self.refine():
            self.begin_again()
            return self._told.more(self.cost)
        self.stuck = rounding or not self.alone
        return self._told.more(self.cost) if self.stuck else Work(max(budget.passes, 1))

    def begin_again(self) -> None:
        """Matrices are float64 now, which get a chance of their own."""
        self._progress, self.floor = Progress(), self.tuning.floor

    def refine(self) -> bool:
        """Whether matrices were float32 so far; then the next are float64."""
        return self.columns.refine()

    def point(self) -> Point | Certificate:
        """w, and a feasible x that goes with it; certified, if the v of x is known."""
        if self._look.paired and self.state.pair is not None:
            return self._look.certificate or self._certify()
        x = self._look.x
        return Point(self.losses.own(self.w), None if x is None else self.losses.rows(x), self.b)

    def _certify(self) -> Certificate:
        assert self.state.pair is not None
        x, v = self.state.pair
        z = self.losses.rows(self.at.z) if self._exact else None
        return certify_given(
            self.problem, Point(self.losses.own(self.w), self.losses.rows(x), self.b, z, v)
        )

    @property
    def _exact(self) -> bool:
        """Whether the predictions are those that a certificate computes."""
        return self.state.fresh and not self.problem.intercept

    @property
    def report(self) -> Report:
        """Whether it is stuck, and why."""
        return Report(stuck=self.stuck, why=self.why, knows_its_gap=True)

    def seen(self, certificate: Certificate) -> None:
        """A look that did not end the run: compute anew what the run keeps."""
        if self.begun:
            self.arrive(self.predict())

    def _idles(self, gap: float, value: float) -> bool:
        """Whether it gets no further: for a while neither the gap nor P has fallen to speak of."""
        if self.theta > 1:
            return False
        self._progress = self._progress.after(gap, value, self.tuning.slow * gap)
        return self._progress.idle > self.tuning.patience

    # ---- where it is ----------------------------------------------------------------------------

    def begin(self, budget: Budget) -> None:
        """At the start: the gradient, and the first theta."""
        zero = not self.w.any()
        self.arrive(self.begin_at() if zero else self.predict())
        if self.theta > 1:
            staged = zero and not self.penalty.bounded
            self.theta = self.fallen(self.penalty.most(self.descent)) if staged else 1.0

    def begin_at(self) -> Vector:
        """The predictions of w = 0."""
        return np.asarray(self.losses.spread(self.b))

    @property
    def blind(self) -> bool:
        """Whether it makes a round for another alpha before it looks: the gap does not steer it."""
        return bool(self.losses.constant)

    @property
    def falls(self) -> float:
        """By how much theta falls from stage to stage."""
        return self.tuning.stage[not self.losses.constant]

    def fallen(self, theta: float) -> float:
        """The theta of the next stage: 1 also where only rounding is above it."""
        if not math.isfinite(theta):
            raise ValueError(
                "the slopes of the loss at w = 0 overflow, or are too large beside the penalty "
                f"(alpha = {self.problem.alpha:g}). Scale X or y (to a standard deviation of 1, "
                "say), or take a larger alpha."
            )
        theta /= self.falls
        return theta if theta > 1 + 1e-9 else 1.0

    def predict(self) -> Vector:
        """X w + b"""
        self.cost += 0.5
        return np.asarray(self.losses.predict(self.w, self.b))

    def arrive(self, z: Vector, near: Vector | None = None) -> None:
        """To predictions z: the losses there, at the best b, and minus their gradient.

        `near` are slopes on the columns of a model that is P itself, as the model has them.
        """
        self.now(seen=self.losses.at(z))
        if self.problem.intercept:
            self.settle()
        self.descend(near)

    def arrive_at(self, W: Index | slice, model: Any, mean: Vector | None, value: float) -> bool:
        """To the minimiser of a model that is P itself: what is kept is computed from w alone.

        False, and nothing has changed, if P is then not below `value`.
        """
        before = self.state
        way_b = 0.0 if mean is None else float(np.dot(mean, model.v - self.w[W]))
        self.now(w=placed(self.w, W, model.v), b=self.b - way_b)
        self.arrive(self.predict(), model.g)
        self.now(fresh=True)
        if self.value() <= value + 1e-14 * abs(value):
            return True
        self.state = before
        return False

    def settle(self) -> None:
        """To the best b."""
        seen, moved = self.losses.settle(self.at)
        self.now(seen=seen, b=self.b + moved)

    def descend(self, near: Vector | None = None) -> None:
        """`descent` anew, by a pass over the data.

        For the last theta it is that of a dual point which is feasible unless what is outside the
        model violates: the pass is then all that a certificate takes. `near` is as for `arrive`.
        """
        self.cost += 0.5
        paired, s = self.plain and self.theta <= 1, 1.0
        if paired and not self.penalty.ridged:
            s = 1 / max(1.0, self.most_inside(near))
        if not paired or s == 0:  # a_j is nothing beside the slopes
            self.now(descent=self.losses.descent(self.at.slope), pair=None)
            return
        x = self.losses.dual_of(self.at.slope)
        x *= s
        v, descent = self.losses.v_of(x, s)
        self.now(descent=descent, pair=(x, v))

    def most_inside(self, near: Vector | None) -> float:
        """The greatest |slope_j|/a_j of what is in the model, and a little for rounding."""
        return 1.0

    @property
    def plain(self) -> bool:
        """Whether the penalty is a_j |w_j| with all a_j > 0 and no bounds, maybe with squares."""
        return not self.penalty.bounded and bool(self.penalty.a.min() > 0)

    # ---- the gap --------------------------------------------------------------------------------

    def gap(self) -> tuple[float, float]:
        """P - D and P at theta; theta falls where that is rough enough, or after some rounds."""
        while True:
            gap, value = self._gap_here()
            self._progress = self._progress.in_stage()
            patient = self._progress.rounds <= self.tuning.rounds
            if self.theta == 1 or (patient and gap > self.tuning.rough * abs(value)):
                return gap, value
            self.theta = self.fallen(self.theta)
            self._progress = replace(self._progress, rounds=0)

    def _gap_here(self) -> tuple[float, float]:
        """With the better of two dual points: scaled to be feasible, or as it is if all b_j > 0."""
        penalty, losses = self.penalty.times(self.theta), self.losses
        alpha, value = self.problem.alpha, self.value()
        if self._is_paired():
            if self._exact:  # all that a certificate is made of
                found = self._certify()
                self._look = GapLook(paired=True, certificate=found)
                return found.gap, found.primal
            over = penalty.conjugate(self.descent) if penalty.ridged else 0.0
            return value - losses.dual_value(self._paired_x) + over, value
        x = losses.dual_of(self.at.slope)
        if penalty.bounded or penalty.a.min() == 0:  # theta is 1
            g, v = self.problem.g, self.descent / alpha
            s = 1 / max(1.0, g.excess(v) * (1 + self.slack))
            self._look = GapLook(s * x)
            return value - losses.dual_value(s * x) + alpha * g.conjugate(s * v), value
        s = 1 / max(1.0, penalty.most(self.descent) * (1 + self.slack))
        over = penalty.conjugate(self.descent) if penalty.ridged else math.inf
        return value - self._best_dual(x, s, over), value

    def _is_paired(self) -> bool:
        """Whether x of the state has its v, and is feasible; the look says so."""
        pair = self.state.pair
        paired = pair is not None and self.theta == 1 and self.problem.g.excess(pair[1]) <= 1
        self._look = GapLook(paired=paired)
        return paired

    @property
    def _paired_x(self) -> Vector:
        assert self.state.pair is not None
        return self.state.pair[0]

    def _best_dual(self, x: Vector, s: float, over: float) -> float:
        """D at the better of s x, which is feasible, and x, where alpha g* is `over`."""
        best, self._look = float(self.losses.dual_value(s * x)), GapLook(s * x)
        if over < math.inf:
            whole = float(self.losses.dual_value(x)) - over
            if whole > best:
                best, self._look = whole, GapLook(x)
        return best

    # ---- a round --------------------------------------------------------------------------------

    def round(self, gap: float, value: float) -> bool:
        """Bring P down at theta; False if nothing moved and nothing else can be tried."""
        raise NotImplementedError

    def wanted(self, descent: Any, w: Any, on: Any, gap: float, value: float) -> Wanted:
        """How well to solve a model: until its violation and the gain to come are at most so much.

        That is a part of what they are now, or enough for the gap that is asked for. A dual point
        that violates by a share s of a_j is scaled by 1 + s, and D loses about s^2 P by that.
        """
        tuning, share = self.tuning, self.tuning.enough * self._tol
        fine, least = (on.least * math.sqrt(share) or math.inf), share * abs(value)
        if self.turned and self.losses.constant:
            return 0.0, 0.0, fine, least
        first = float(on.violations(w, descent).max(initial=0.0))
        if self.losses.constant:
            return tuning.exact * first, max(tuning.inner * gap, least), fine, least
        return FORCING * first, math.inf, fine, least

    def solve(self, model: Any, *wanted: float) -> None:
        """Minimise a model, within the budget; its work counts as passes."""
        each = costs.look(self.problem) * self.losses.outputs
        model.solve(*wanted, lambda work: self.is_over(work / each))
        self.cost += model.work / each

    def lifts(self) -> bool:
        """Nothing moved: whether a floor that is higher is still to be tried."""
        if self.losses.constant or self.floor == 1:
            return False
        self.floor = min(1.0, 100 * self.floor)
        return True

    def bend(self) -> Any:
        """The curvatures of a model: those of the losses, but not below the floor."""
        return self.losses.bend(self.at, self.floor, self._steeper)

    def put(self, W: Index | slice, v: Vector) -> Any:
        """w with v in the places W."""
        return placed(self.w, W, v)

    def move(
        self, W: Index | slice, v: Vector, way: Vector, way_b: Any, penalty: Any = None
    ) -> float:
        """Along the line to w_W = v, as far as P falls by a part of what the model promises.

        `way` is what the predictions change by, with the intercept's part way_b; `penalty` is that
        on W, if it is known. Gives the share that was taken, 0 if none was.
        """
        seen, losses, w = self.at, self.losses, self.w[W]
        if penalty is None:
            penalty = self.penalty.times(self.theta)
            penalty = penalty if isinstance(W, slice) else penalty.on(W)
        before = penalty.value(w)
        promised = inner(seen.slope, way) + penalty.value(v) - before
        slack = 1e-14 * abs(seen.value)
        t, new_w = 1.0, v
        for _ in range(TRIALS):
            new = losses.along(seen.z, way, t)
            change = new.value + penalty.value(new_w) - seen.value - before
            if change <= ARMIJO * t * min(promised, 0.0) + slack:  # not if that overflows
                break
            if t == 1:
                steeper = losses.secant(seen, new, way)
            t *= 0.5
            new_w = w + t * (v - w)
        else:
            self._steeper = steeper
            return 0.0
        self._steeper = None if t == 1 else steeper
        self.floor *= FLOOR_UP if t < 1 else FLOOR_DOWN
        self.floor = min(1.0, max(self.floor, self.tuning.least_floor))
        self.now(w=self.put(W, new_w), b=self.b + t * way_b, seen=new, fresh=False)
        if self.problem.intercept and not losses.constant:
            self.settle()
        return t
