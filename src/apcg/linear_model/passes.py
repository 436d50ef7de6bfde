"""scikit-learn's callbacks in LogisticRegression: a task for each pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: The attributes of a fitted model, from a check of a run or from its answer
Describe = Callable[[Any], dict[str, Any]]


class Passes:
    """Tells the callbacks of each pass, as scikit-learn does of each iteration.

    There are as many tasks as `n_iter_`, at least one, and then one that is empty. A pass after
    which the method did not look has the point of the next look.
    """

    def __init__(
        self, context: Any, estimator: Any, told: dict[str, Any], describe: Describe, most: int
    ) -> None:
        self._context, self._estimator, self._told = context, estimator, told
        self._describe, self._most = describe, most
        self._done, self._task = 0, self._begin()

    def _begin(self) -> Any:
        task = self._context.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=self._estimator, **self._told)
        return task

    def __call__(self, found: Any, passes: int | None = None) -> bool:
        """After a look; true if a callback wants to stop."""
        stop = False
        while self._done < min(found.epoch if passes is None else passes, self._most):
            attributes = self._describe(found)
            stop |= bool(
                self._task.call_on_fit_task_end(
                    estimator=self._estimator, reconstruction_attributes=attributes, **self._told
                )
            )
            self._done, self._task = self._done + 1, self._begin()
        return stop

    def end(self, answer: Any) -> None:
        """Tell of the passes after the last look, and of the end."""
        self(answer, max(answer.epochs, 1))
        self._task.call_on_fit_task_end(estimator=self._estimator)
