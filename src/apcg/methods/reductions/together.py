"""Problems of one output over the same X, side by side: one class against the rest, for each class.

The first sweeps read X once for all K problems. They are plain sweeps over blocks: the columns
share the order of the rows and the visits of each row, and nothing else. They end when the
estimated sum of the gaps is within the tolerance, or when too many plain sweeps are left. Then each
column is certified, and those that are not within the tolerance go on by themselves, with all that
`auto` has for one output.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._base.validation import Matrix, Vector
from ...certify.certificate import Certificate, certify_enough, stated
from ...certify.points import Report, Start
from ...certify.result import Solution, Status, answer
from ...problems.erm import ERM
from ...problems.joint import join
from ...problems.objective import Objective
from ..base import DUAL_BLOCKS, Budget, Target
from ..dual.method import begin
from ..dual.setup_k import SetupK
from ..dual.tuning import MANY
from ..newton.hessian import Hessian
from ..plan.plan import Auto

#: What is asked of the sum of the gaps, in units of what is asked of each.
SHARE = 0.5
#: The problems go their own ways when more than so many sweeps seem to be left: a sweep for all
#: takes a fourth of the time of K sweeps for one (20 newsgroups); of a loss that is not smooth each
#: problem has its own few rows that matter.
PATIENCE, PATIENCE_WITH_KINKS = 32.0, 16.0
#: With many samples for each feature: so many, if the mean of |a_i|^2/(lambda n) is at most this,
#: for smooth losses and for those with kinks. Newton's method then starts from what they found
#: (digits: 0.3 to 0.9 of the time of Newton's method alone up to 84, 0.8 to 1 at 281, 0.8 to 1.1 at
#: 842; hinge 0.6 up to 2.8, 0.9 to 1.2 at 8.4, up to 1.4 at 84).
PATIENCE_TALL, STEEPEST_TALL, STEEPEST_WITH_KINKS = 12.0, 300.0, 3.0
#: Fewer problems than this are solved one by one.
FEWEST = 3


@dataclass
class Together:
    """What the sweeps found: where each problem is, the passes, the seconds.

    Certificates are there if the sweeps came to their end; `interrupted` says that Ctrl-C did not
    let them.
    """

    starts: list[Start]
    found: list[Certificate]
    passes: int
    seconds: float
    interrupted: bool = False

    def solution(self, k: int, tol: float) -> Solution | None:
        """The answer of problem k, if it is within the tolerance."""
        if not self.found or not self.found[k].relative <= tol:
            return None
        found, note = self.found[k], f"{len(self.found)} problems side by side"
        said = Report("dual", "sdca", 1.0, notes=[note])
        status = Status.of("converged", self.passes, found.relative, tol)
        return answer(found, status, said, "auto", self.passes, self.seconds)


def patience(problems: Sequence[ERM]) -> float:
    """How many sweeps may be left; 0 if the problems had better be solved one by one.

    Where each would be solved by dual sweeps, a sweep for all takes less time. With many samples
    for each feature it is Newton's method, and only an easy problem takes few enough sweeps.
    """
    first = problems[0]
    if len(problems) < FEWEST or not (first.separable and first.strong_convexity > 0):
        return 0.0
    method: Any = Auto().first(first, Start())[0]
    if method.name not in ("dual", "newton"):
        return 0.0
    smooth = first.loss.gamma > 0
    allowed = PATIENCE if smooth else PATIENCE_WITH_KINKS
    if method.name == "newton" or "momentum" in method.without:
        q = first.weights * first.squared_norms / (first.strong_convexity * first.n)
        steepest = STEEPEST_TALL if smooth else STEEPEST_WITH_KINKS
        allowed = PATIENCE_TALL if float(np.mean(q)) <= steepest else 0.0
    return allowed if allowed and DUAL_BLOCKS.holds(join(problems)) else 0.0


def first_steps(problems: Sequence[ERM]) -> list[Start] | None:
    """Where Newton's first step leads from w = 0, with one factor for all problems.

    At w = 0 the curvature of a loss of margins does not depend on the labels. None if `auto` does
    not begin with such a step.
    """
    first = problems[0]
    if len(problems) < FEWEST or not first.loss.margin:
        return None
    method: Any = Auto().first(first, Start())[0]
    rows = Objective.of(first)
    if method.name != "newton" or not (hessian := Hessian(rows)).is_whole:
        return None
    made, starts = None, []
    for p in problems:
        own = Objective.of(p)
        at = own.at(np.zeros(own.size), np.zeros(own.n))
        made = made or hessian.factor_of(rows, at.bend)
        w = -made.solve(own.gradient(at))
        starts.append(Start(w=w[: own.d].copy(), b=float(w[-1]) if p.intercept else None))
    return starts


def sweep(
    problems: Sequence[ERM], tol: float, max_passes: int, rng: np.random.Generator
) -> Together:
    """Plain sweeps for all problems at once."""
    began = time.perf_counter()
    joint = join(problems)
    tuning = replace(MANY, patience=patience(problems))
    without, target = ("momentum", "shrinking"), Target(SHARE * tol, max_passes)
    run = begin(joint, Start(), target, rng, without, tuning, impatient=True)
    assert isinstance(run.setup, SetupK)
    interrupted, found = False, []
    try:
        with np.errstate(all="ignore"):
            run.advance(Budget(max_passes, False, None))
            _, b, x = run.answer()
            found = certify(problems, run.setup, x, b) if run.report.estimate is None else []
    except KeyboardInterrupt:
        interrupted = True
    _, b, x = run.answer()
    starts = [Start(x=x_k, b=b_k) for x_k, b_k in zip(_columns(x), b, strict=True)]
    return Together(starts, found, run.passed, time.perf_counter() - began, interrupted)


def certify(problems: Sequence[ERM], setup: SetupK, x: Matrix, b: Vector) -> list[Certificate]:
    """The certificates of the columns of x, exact, with products for all of them at once."""
    joint = setup.problem
    if setup.alone.size:
        w, z = setup.products(x)
        v = w * setup.b
    else:
        v = joint.v_of(x)
        w = joint.g.conjugate_gradient(v)
        z = joint.samples.times(w)
    z = _columns(z)
    w, found = _columns(w), []
    each = _columns(x)
    if joint.intercept:
        b = np.array([p.best_shift(z[k], b[k]) for k, p in enumerate(problems)])
        z = z + b[:, None]
        each = np.array([p.balanced(each[k]) for k, p in enumerate(problems)])
        v = joint.v_of(np.ascontiguousarray(each.T))
    v = _columns(v)
    for k, p in enumerate(problems):
        P, D = p.primal_from(w[k], z[k]), p.dual_from(each[k], v[k])
        made = stated(w[k], each[k], float(b[k]), z[k], P, D)
        found.append(certify_enough(p, made, 0.0))
    return found


def _columns(a: Matrix) -> Matrix:
    """The columns one after the other."""
    return np.ascontiguousarray(a.T)
