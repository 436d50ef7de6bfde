"""From a plan of problems to the fitted attributes: what all these classes do alike.

`tol` and `max_iter` are scikit-learn's parameters. They are translated here, and nowhere else.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._base.validation import Vector, is_sparse
from ..certify.certificate import certify, stated
from ..certify.points import Point, Report, Start
from ..certify.result import Solution, Status, Trace, answer
from ..estimators.linear import Plan, certificates, solve_all
from ..problems.erm import ERM
from ..run.path import path
from .passes import Passes


@dataclass(frozen=True)
class Gap:
    """What tol means: the relative gap to stop at.

    A coefficient is as good as the root of the gap, which is therefore a square of tol.

    usual  for tol=1e-4, which most of scikit-learn's classes have
    least  below this it is dear, or rounding is all there is
    """

    usual: float = 1e-6
    least: float = 1e-15
    most: float = 1e-4

    def of(self, tol: float) -> float:
        """For this tol."""
        return min(max(self.usual * (tol / 1e-4) ** 2, self.least), self.most)


GAP = Gap()
#: With so few coefficients Newton's method is at work, and its last digits cost a step or two.
FINE, FEW = Gap(usual=1e-10), 500


def gap_for(problem: ERM) -> Gap:
    """What tol means for a classifier, or for a regression with a loss of LIBLINEAR."""
    return FINE if problem.d * problem.K <= FEW else GAP


#: max_iter=None
PASSES = 1000
#: A sparse X with at most so many numbers and zeros is made dense: the last digits cost less there.
TINY = 2**13


#: How the warning begins, by the solver that was asked for: in scikit-learn's words, which programs
#: filter by.
WORDS = {
    "": "Objective did not converge. You might want to increase the number of iterations, check "
    "the scale of the features or consider increasing regularisation.",
    "lbfgs": "lbfgs failed to converge after {n} iteration(s).",
    "newton-cg": "newton-cg failed to converge at loss = {P:g}. Increase the number of iterations.",
    "newton-cholesky": "Newton solver did not converge after {n} iterations.",
    "liblinear": "Liblinear failed to converge, increase the number of iterations.",
    "sag": "The max_iter was reached which means the coef_ did not converge",
    "saga": "The max_iter was reached which means the coef_ did not converge",
}


def dense_if_tiny(X: Any) -> Any:
    """X, as an array if it is a sparse matrix of next to nothing."""
    return X.toarray() if is_sparse(X) and X.shape[0] * X.shape[1] <= TINY else X


class Answers:
    """The answers of one `fit`, as they are found, and what they are as attributes.

    solver  the name of the solver that was asked for, if the class has several
    """

    def __init__(self, solver: str = "") -> None:
        self.solver = solver
        self.solutions: list[Solution] = []
        self.theirs: str | None = None

    def not_ours(self, reason: str) -> None:
        """Note that scikit-learn's solver took a problem, and why."""
        self.theirs = reason

    def solve(
        self,
        plan: Plan,
        tol: float,
        max_iter: int | None,
        random_state: Any = None,
        starts: Sequence[Start | None] | None = None,
        gap: Gap = GAP,
        watch: Passes | None = None,
    ) -> list[Solution]:
        """Solve all problems of the plan; warn of those that did not reach the tolerance."""
        options = options_of(tol, max_iter, gap)
        starts = [None] * len(plan.problems) if starts is None else starts
        if max_iter == 0:
            found = [unsolved(*each) for each in zip(plan.problems, starts, strict=True)]
        else:
            look = {} if watch is None else {"callback": watch, "check_every": 1}
            found = solve_all(plan, starts, options | look, seed_of(random_state))
        if watch is not None:
            watch.end(found[0])
        self.take(plan.problems, found, options["tol"])
        return found

    def path(
        self, problem: ERM, alphas: Vector, tol: float, max_iter: int | None, random_state: Any,
        gap: Gap = GAP,
    ) -> list[Solution]:  # fmt: skip
        """Solve for many alphas."""
        problems = [problem.with_alpha(float(alpha)) for alpha in alphas]
        options = options_of(tol, max_iter, gap)
        if max_iter == 0:
            found = [unsolved(p, None) for p in problems]
        else:
            found = path(problem, alphas, random_state=seed_of(random_state), **options)
        self.take(problems, found, options["tol"])
        return found

    def take(self, problems: Sequence[ERM], found: Sequence[Solution], tol: float) -> None:
        """Keep these answers, and warn of those that did not reach tol.

        What rounding does not allow is no fault, nor is a gap that is small relative to P(0), nor
        that there is no minimum, where scikit-learn stops at a small gradient.
        """
        self.solutions += found
        if any(r.status.code == "interrupted" for r in found):
            raise KeyboardInterrupt
        codes = ("converged", "callback", "precision", "no_minimum")
        missed = [
            r
            for p, r in zip(problems, found, strict=True)
            if r.status.code not in codes and r.gap > tol * p.primal(np.zeros_like(r.w))
        ]
        if missed:
            r = max(missed, key=lambda r: r.gap)
            warnings.warn(
                f"{WORDS[self.solver].format(n=r.epochs, P=r.primal)} Duality gap: {r.gap:.3e}, "
                f"tolerance: {tol * abs(r.primal):.3e}, after {r.epochs} passes over the data. "
                "Increase the number of iterations (max_iter), scale the data, or raise tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def keep(self, model: Any) -> None:
        """Set `duality_gap_`, `status_` and `trace_` of a fitted model."""
        if self.theirs is not None:
            model.duality_gap_ = math.nan
            text = f"solved by scikit-learn, without a certificate: {self.theirs}"
            model.status_, model.trace_ = Status("scikit-learn", text), _no_trace()
            return
        if not self.solutions:
            return
        interface = "estimator" if hasattr(model, "warm_start") else "search"
        known = certificates(self.solutions, interface)
        told = known["status_"]
        known["status_"] = _told(told) if isinstance(told, Status) else [_told(s) for s in told]
        for name, value in known.items():
            setattr(model, name, value)


def _told(status: Status) -> Status:
    """The status in the words of these classes."""
    return Status(status.code, str(status).replace("max_epochs", "max_iter"))


def options_of(tol: float, max_iter: int | None, gap: Gap = GAP) -> dict[str, Any]:
    """scikit-learn's tol and max_iter as options of `solve`."""
    return {
        "method": "auto",
        "tol": gap.of(tol),
        "max_epochs": PASSES if max_iter is None else int(max_iter),
    }


def seed_of(random_state: Any) -> int:
    """The order of coordinates; None is the same every time, as scikit-learn's solvers are.

    A generator is not made of it here: that takes longer than a tiny problem, which needs none.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def unsolved(problem: ERM, start: Start | None) -> Solution:
    """The answer of no pass at all, max_iter=0: the start, or zero."""
    columns = (problem.K,) if problem.K > 1 else ()
    w: Vector = np.zeros((problem.d, *columns))
    b: Any = np.zeros(columns)[()]
    if start is not None and start.w is not None:
        w, b = start.w, start.b
    z = problem.samples.times(w) + b
    x = np.zeros_like(z)
    found = stated(w, x, b, z, problem.primal_from(w, z), problem.dual(x))
    status = Status.of("max_epochs", 0, found.relative, 0.0)
    return answer(found, status, Report(side="primal", at_work="none"), "auto", 0, 0.0)


def direct(problem: ERM, w: Vector, b: Any, tol: float) -> Solution:
    """The answer that a decomposition gives, certified; a larger gap than tol is rounding."""
    found = certify(problem, Point(w, None, b if problem.intercept else 0.0))
    status = Status.of(
        "converged" if found.relative <= tol else "precision", 1, found.relative, tol
    )
    return answer(found, status, Report("primal", at_work="direct"), "auto", 1, 0.0)


def _no_trace() -> Trace:
    return Trace("epoch", "seconds", "primal", "dual", "gap", "mu", "restarts", "method")


def iterations(found: Sequence[Solution], max_iter: int | None) -> list[int]:
    """`n_iter_` of each: the passes, at least one and, as scikit-learn says, at most max_iter."""
    most = PASSES if max_iter is None else max_iter
    return [min(max(r.epochs, 1), most) for r in found]


class Certified:
    """What is ours in every class; before scikit-learn's class in the list of bases."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = False  # NumPy arrays and SciPy matrices
        return tags
