"""What the estimators share: parameters, the solves, what is known afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils.validation import _check_sample_weight

from .. import losses
from .._base import validation as check
from .._base.validation import Vector
from ..certify.points import Start
from ..certify.result import Solution
from ..data import threads
from ..methods.base import SEPARABLE, SMOOTH_FORM
from ..methods.reductions import together
from ..problems.erm import ERM
from ..run.small import is_small
from ..run.solve import solve
from .interrupted import solved, unsolved
from .progress import UNWATCHED, CallbackSupportMixin, Task

_TAKE_AUTO = 'Take method="auto", which chooses by predicted time. Or: '
FLOATS = (np.float64, np.float32)


#: What to write for a loss that is not one of the estimator's own.
_OF_CLASSES = "That is a loss of classes: take APCGClassifier."
_OF_NUMBERS = "That is a loss of real targets: take APCGRegressor."
_OF_MANY = {
    "multinomial": "That is loss='logistic', with multi_class='multinomial' or the default.",
    "multiclass_hinge": "That is loss='hinge' with multi_class='crammer_singer'.",
}


def _elsewhere(margin: bool) -> dict[str, str]:
    """Names that other libraries, or other estimators, have, and what to write here."""
    known = dict.fromkeys(losses.names(margin=not margin), _OF_NUMBERS if margin else _OF_CLASSES)
    known |= _OF_MANY if margin else dict.fromkeys(_OF_MANY, _OF_CLASSES)
    return known | {theirs: known.get(ours, ours) for theirs, ours in losses.ELSEWHERE.items()}


def find_loss(loss: Any, known: Sequence[str], **parameters: float) -> Any:
    """The loss of that name with its own parameters, or the loss object itself."""
    wanted = losses.by_name(known[0]).margin
    if isinstance(loss, losses.Loss | losses.OwnLoss):
        if loss.margin != wanted:
            kind = "margins (a classification loss)" if wanted else "residuals (a regression loss)"
            raise ValueError(f"loss must be of {kind}, got {loss!r}.")
        return loss
    name = check.choice(loss, "loss", known, _elsewhere(wanted))
    made: dict[str, Callable[[], losses.Loss]] = {
        "smoothed_hinge": lambda: losses.SmoothedHinge(parameters["gamma"]),
        "huber": lambda: losses.Huber(parameters["delta"]),
        "epsilon_insensitive": lambda: losses.EpsilonInsensitive(parameters["epsilon"]),
        "squared_epsilon_insensitive": lambda: losses.SquaredEpsilonInsensitive(
            parameters["epsilon"]
        ),
    }
    return made[name]() if name in made else losses.by_name(name)


@dataclass
class Plan:
    """The problems of one fit, what they are called, and what their answers are as attributes.

    `describe` takes answers, or checks of a solve that goes on: what has w, x and intercept.
    """

    problems: list[ERM]
    names: list[str]
    describe: Callable[[Sequence[Any]], dict[str, Any]]
    offset: Any = 0.0  # what was taken from the labels
    alike: bool = True  # whether the problems differ in nothing but their labels

    def share(self, method: Any) -> None:
        """Make the copy of X by features, if the method needs it, before threads do so each."""
        first, many = self.problems[0], len(self.problems) > 1
        takes = SEPARABLE.holds(first) and SMOOTH_FORM.holds(first)  # else these refuse it
        if many and takes and method in ("apcg", "sdca", "adaptive") and not first.dual_form:
            _ = first.form


class Linear(SparseCoefMixin, CallbackSupportMixin, BaseEstimator):
    """The parameters and attributes that all have."""

    def _problem(
        self,
        X: Any,
        y: Any,
        weights: Vector | None,
        loss: losses.Loss | losses.OutputsLoss,
        alpha: float,
        base: ERM | None = None,
    ) -> ERM:
        """The problem; with a `base` that has the same X and parameters, from that."""
        if base is not None:
            return base.with_labels(y, weights).with_alpha(alpha)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}.")
        return ERM(
            X,
            y,
            loss,
            self.penalty,
            alpha,
            sample_weight=weights,
            l1_ratio=self.l1_ratio,
            positive=self.positive,
            intercept=bool(self.fit_intercept),
        )

    def _options(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "tol": check.number(self.tol, "tol", low=0.0),
            "max_epochs": check.integer(self.max_epochs, "max_epochs", low=1),
        }

    def _solve_all(self, plan: Plan, starts: Sequence[Any], task: Task) -> list[Solution]:
        """One solution for each problem, in threads if n_jobs says so."""
        threads.count(self.n_jobs)
        options = self._options() | {"verbose": self.verbose}
        rng = check.generator(self.random_state)
        return solve_all(plan, starts, options, rng, task, self.n_jobs)

    def _finish(self, plan: Plan, starts: Sequence[Any], task: Task) -> None:
        """Solve, set the attributes, and warn of what did not converge."""
        solutions = self._solve_all(plan, starts, task)
        try:
            task.end(lambda: plan.describe(solutions))
            self._keep(plan, solutions)
        except KeyboardInterrupt:  # heard on the way: the attributes are set all the same
            self._keep(plan, solutions)
            raise
        self._warn(solutions, plan.names, self.tol)

    def _keep(self, plan: Plan, solutions: Sequence[Solution]) -> None:
        """The attributes after `fit`: as they are for one problem, lists for more."""
        interface = "estimator" if hasattr(self, "warm_start") else "search"
        made = {**plan.describe(solutions), **certificates(solutions, interface)}
        self.__dict__.update(made, n_iter_=max(1, *(r.epochs for r in solutions)))
        if any(r.status.code == "interrupted" for r in solutions):
            raise KeyboardInterrupt  # the attributes are those of the best points so far

    def _warn(self, solutions: Sequence[Solution], names: Sequence[str], tol: float) -> None:
        """Say which did not reach tol, by how much, and what to do."""
        missed = [
            (abs(r.gap / r.primal) if r.primal else np.inf, r.epochs, r.status.code, name)
            for r, name in zip(solutions, names, strict=True)
            if not r.converged and r.status.code != "callback"
        ]
        if not missed:
            return
        gap, epochs, code, name = max(missed)
        where = f" for {name}" if len(solutions) > 1 else ""
        count = f" ({len(missed)} of {len(solutions)} problems)" if len(solutions) > 1 else ""
        cures = {
            "precision": "That is as far as double precision goes: raise tol.",
            "no_minimum": "There is no minimum: w separates the classes, and without a penalty the "
            "loss falls on as w grows. Take a penalty and alpha > 0.",
        }
        cure = cures.get(
            code,
            f"{_TAKE_AUTO if self.method != 'auto' else ''}Raise max_epochs, tol or alpha, or "
            "scale the features (StandardScaler, with_mean=False if sparse).",
        )
        warnings.warn(
            f"{type(self).__name__} did not reach tol={tol:g}{count}: the relative duality "
            f"gap is {gap:.2e} after {epochs} passes{where}. {cure}",
            ConvergenceWarning,
            stacklevel=6,
        )

    def _starts(self, plan: Plan) -> list[Start | None]:
        """Where warm starts begin, if the last fit had as many features and problems."""
        last = getattr(self, "coef_", None) if self.warm_start else None
        first = plan.problems[0]
        shape = (first.K if first.K > 1 else len(plan.problems), first.d)
        if last is None or np.atleast_2d(_dense(last)).shape != shape:
            return [None] * len(plan.problems)
        coef, intercept = np.atleast_2d(_dense(last)), np.atleast_1d(self.intercept_)
        if first.K > 1:
            w = np.ascontiguousarray(coef.T, dtype=np.float64)
            return [start_at(first, w, intercept - plan.offset, self.dual_coef_.T)]
        return [
            start_at(p, w.astype(np.float64), float(b) - plan.offset, x)
            for p, w, b, x in zip(
                plan.problems, coef, intercept, np.atleast_2d(self.dual_coef_), strict=True
            )
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def solve_all(
    plan: Plan,
    starts: Sequence[Any],
    options: dict[str, Any],
    rng: np.random.Generator | int,
    task: Task = UNWATCHED,
    n_jobs: int | None = None,
) -> list[Solution]:
    """One solution for each problem of a plan; `options` are those of `solve`, method included."""
    method = options["method"]
    plan.share(method)
    tasks = [task.subtask(name, options["max_epochs"]) for name in plan.names]
    if len(plan.problems) == 1:
        with threads.using(n_jobs):
            return [_solve(plan.problems[0], starts[0], rng, tasks[0], plan.describe, options)]
    rng = check.generator(rng)
    seeds = map(int, rng.integers(2**31, size=len(plan.problems)))
    solve_each, problems = _solve, plan.problems
    shared: together.Together | None = None

    def spare(k: int) -> Solution:
        if shared is None:
            return unsolved(problems[k], starts[k], options)
        done = shared.solution(k, options["tol"])
        return done or unsolved(problems[k], shared.starts[k], options, shared.passes)

    cold = all(start is None for start in starts)
    if method == "auto" and plan.alike and cold and not task and not is_small(problems[0]):
        # nobody watches each: the first steps may be for all problems at once
        try:
            if together.patience(problems) > 0:
                shared = together.sweep(problems, options["tol"], options["max_epochs"], rng)
            else:
                starts = together.first_steps(problems) or starts
        except KeyboardInterrupt:  # before there was anything
            return [spare(k) for k in range(len(problems))]
    if shared is not None:
        if shared.interrupted:
            return [spare(k) for k in range(len(problems))]
        solve_each, starts = partial(_go_on, shared), range(len(problems))
    calls = [
        partial(solve_each, p, start, seed, t, None, options)
        for p, start, seed, t in zip(problems, starts, seeds, tasks, strict=True)
    ]
    return solved(calls, spare, n_jobs)


def certificates(solutions: Sequence[Solution], interface: str) -> dict[str, Any]:
    """What `fit` says of its answers, as attributes: as they are for one problem, lists for more.

    `interface` chooses the words of the status, as `Status.told_to` does.
    """
    told = [r.status.told_to(interface) for r in solutions]
    if len(solutions) == 1:
        (r,) = solutions
        return {"duality_gap_": float(r.gap), "status_": told[0], "trace_": r.trace}
    gaps = np.array([r.gap for r in solutions])
    return {"duality_gap_": gaps, "status_": told, "trace_": [r.trace for r in solutions]}


def start_at(problem: ERM, w: Vector, b: Any, x: Vector | None = None) -> Start:
    """A point to go on from: x, or if it is of other samples or none, the x of w and b."""
    if x is None or x.shape[0] != problem.n_samples:
        x = problem.loss.duals(problem.samples.times(w) + b, problem.y, problem.weights)
    return Start(problem.into_domain(x), w, b if problem.intercept else 0.0)


def _go_on(
    together: together.Together,
    problem: ERM,
    k: int,
    seed: Any,
    task: Task,
    describe: Any,
    options: Any,
) -> Solution:
    """The answer that was found together with the others, or one from there."""
    done = together.solution(k, options["tol"])
    if done is not None:
        return done
    left = options | {"max_epochs": max(options["max_epochs"] - together.passes, 0)}
    answer = _solve(problem, together.starts[k], seed, task, describe, left)
    answer.epochs += together.passes
    return answer


def checked_weights(sample_weight: Any, X: Any) -> Vector | None:
    """The weights of the samples of X, or an error."""
    if sample_weight is None:
        return None
    dtype = np.asarray(sample_weight).dtype
    if dtype.kind != "O":
        check.check_real(dtype, "sample_weight")
    made: Vector = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return made


def _dense(coef: Any) -> Any:
    return coef.toarray() if check.is_sparse(coef) else coef


def _solve(
    problem: ERM, start: Start | None, seed: Any, task: Task, describe: Any, options: Any
) -> Solution:
    """One solve; if there are callbacks to tell, each pass is a subtask, and looked at."""
    if not task:
        return solve(problem, x0=start, random_state=seed, **options)

    def tell(found: Any) -> bool:
        if found.epoch == 0:
            return False
        return task.subtask("pass").end(None if describe is None else lambda: describe([found]))

    answer = solve(problem, x0=start, random_state=seed, callback=tell, check_every=1, **options)
    task.end()
    return answer
