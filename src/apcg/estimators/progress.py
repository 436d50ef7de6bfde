"""scikit-learn's callback protocol (`sklearn.callback`), where the installed version has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CallbackSupportMixin", "Task", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's: there are no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Stands in for scikit-learn's: the method as it is."""
        return method


class Task:
    """A task of `fit` and its subtasks, told to the callbacks of the estimator, if it has any.

    The tree is fit > one task for each binary problem (or fold) > one leaf for each pass (or
    alpha). Subtasks are made in one thread, and may run in many.
    """

    def __init__(self, estimator: Any, context: Any, told: dict[str, Any]) -> None:
        self._estimator, self._context, self._told = estimator, context, told
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **told)

    @classmethod
    def root(cls, estimator: Any, subtasks: int, X: Any, y: Any, weights: Any) -> Task:
        """The task that is `fit` itself."""
        if not getattr(estimator, "_skl_callbacks", None):
            return cls(estimator, None, {})
        context = estimator._init_callback_context(max_subtasks=subtasks)
        metadata = None if weights is None else {"sample_weight": weights}
        return cls(estimator, context, {"X": X, "y": y, "metadata": metadata})

    def __bool__(self) -> bool:
        return self._context is not None

    def subtask(self, name: str, subtasks: int = 0) -> Task:
        """A part of it, which begins now."""
        if self._context is None:
            return self
        context = self._context.subcontext(task_name=name, max_subtasks=subtasks)
        return Task(self._estimator, context, self._told)

    def end(self, fitted: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Whether a callback wants to stop; `fitted` makes the attributes to predict with."""
        if self._context is None:
            return False
        return bool(
            self._context.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=fitted, **self._told
            )
        )
