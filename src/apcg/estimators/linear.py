"""What the estimators share: parameters, the solves, what is known afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils.parallel import Parallel, delayed

from .. import _validation as check
from .. import losses
from .._validation import Vector
from ..erm import ERM
from ..result import Solution, Status, Trace
from ..solve import solve
from .progress import CallbackSupportMixin, Task

FLOATS = (np.float64, np.float32)


def find_loss(loss: Any, known: Sequence[str], **parameters: float) -> losses.Loss:
    """The loss of that name with its own parameters, or the loss object itself."""
    if isinstance(loss, losses.Loss):
        wanted = losses.by_name(known[0]).margin
        if loss.margin != wanted:
            kind = "margins (a classification loss)" if wanted else "residuals (a regression loss)"
            raise ValueError(f"loss must be of {kind}, got {loss!r}.")
        return loss
    name = check.choice(loss, "loss", known)
    made = {
        "smoothed_hinge": lambda: losses.SmoothedHinge(parameters["gamma"]),
        "huber": lambda: losses.Huber(parameters["delta"]),
        "epsilon_insensitive": lambda: losses.EpsilonInsensitive(parameters["epsilon"]),
    }
    return made[name]() if name in made else losses.by_name(name)


class Linear(SparseCoefMixin, CallbackSupportMixin, BaseEstimator):
    """The parameters and attributes that all have."""

    def _problem(
        self, X: Any, y: Vector, weights: Vector | None, loss: losses.Loss, alpha: float
    ) -> ERM:
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
            intercept=self.fit_intercept,
        )

    def _options(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "tol": self.tol,
            "max_epochs": check.integer(self.max_epochs, "max_epochs", low=1),
        }

    def _solve_all(
        self, problems: Sequence[ERM], starts: Sequence[Any], names: Sequence[str], task: Task
    ) -> list[Solution]:
        """One solution for each problem, in threads if n_jobs says so: the same in any case."""
        seeds = check.generator(self.random_state).integers(2**31, size=len(problems))
        options = self._options() | {"verbose": self.verbose}
        tasks = [task.subtask(name, options["max_epochs"]) for name in names]
        fitted = self._attributes if len(problems) == 1 else None
        run = Parallel(n_jobs=getattr(self, "n_jobs", None), require="sharedmem")
        return list(
            run(
                delayed(_solve)(p, start, int(seed), t, fitted, options)
                for p, start, seed, t in zip(problems, starts, seeds, tasks, strict=True)
            )
        )

    def _keep(self, solutions: Sequence[Solution], names: Sequence[str]) -> None:
        """The attributes that say how it went: as they are for one problem, lists for more."""
        one = len(solutions) == 1
        gaps = np.array([r.gap for r in solutions])
        self.duality_gap_ = float(gaps[0]) if one else gaps
        self.n_iter_ = max(r.epochs for r in solutions)
        self.status_ = solutions[0].status if one else [r.status for r in solutions]
        self.trace_ = solutions[0].trace if one else [r.trace for r in solutions]
        if any(r.status.code == "interrupted" for r in solutions):
            raise KeyboardInterrupt  # the attributes are those of the best points so far
        self._warn(solutions, names)

    def _warn(self, solutions: Sequence[Solution], names: Sequence[str]) -> None:
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
        cure = (
            "That is as far as double precision goes: raise tol."
            if code == "precision"
            else "Raise max_epochs, tol or alpha, or scale the features (StandardScaler, "
            "with_mean=False if sparse)."
        )
        warnings.warn(
            f"{type(self).__name__} did not reach tol={self.tol:g}{count}: the relative duality "
            f"gap is {gap:.2e} after {epochs} passes{where}. {cure}",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _attributes(self, w: Vector, b: float) -> dict[str, Any]:
        """What an estimator needs to predict with w and b."""
        raise NotImplementedError

    def _start(self, problem: ERM, row: int, rows: int, offset: float = 0.0) -> Solution | None:
        """Where a warm start begins: the last dual point or, for other samples, the last w.

        None if there is no last fit with as many features and rows of coef_. `offset` is what was
        taken from the labels.
        """
        last = getattr(self, "coef_", None) if self.warm_start else None
        if last is None or last.shape not in ((rows, problem.d), (problem.d,)[: 2 - rows]):
            return None
        w = _dense_row(last, row)
        b = float(np.atleast_1d(self.intercept_)[row]) - offset if problem.intercept else 0.0
        x = np.atleast_2d(self.dual_coef_)[row]
        loss, s = problem.loss, problem.weights
        if x.size != problem.n_samples:  # the x of w
            z = problem.predictions(w) + b
            x = -s * loss.arrays.derivative(loss.argument(z, problem.y))
        with np.errstate(invalid="ignore"):  # 0 times infinity
            x = np.where(s > 0, np.clip(x, s * loss.domain[0], s * loss.domain[1]), 0.0)
        return start_at(w, x, b)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def start_at(w: Vector, x: Vector, b: float) -> Solution:
    """A point to go on from, as `solve` takes it."""
    nothing = float("nan")
    status = Status("start", "a point to start from")
    return Solution(
        w, x, nothing, nothing, status, 0, 0.0, Trace("epoch"), "", "dual", nothing, b
    )


def _dense_row(coef: Any, row: int) -> Vector:
    dense = coef.toarray() if check.is_sparse(coef) else coef
    return np.array(np.atleast_2d(dense)[row], dtype=np.float64)


def _solve(
    problem: ERM, start: Solution | None, seed: int, task: Task, fitted: Any, options: Any
) -> Solution:
    """One solve; if there are callbacks to tell, each pass is a subtask, and looked at."""
    if not task:
        return solve(problem, x0=start, random_state=seed, **options)

    def tell(found: Any) -> bool:
        if found.epoch == 0:
            return False
        w, b = found.w, found.intercept
        return task.subtask("pass").end(None if fitted is None else lambda: fitted(w, b))

    answer = solve(problem, x0=start, random_state=seed, callback=tell, check_every=1, **options)
    task.end()
    return answer
