"""scikit-learn's callback protocol (`sklearn.callback`), where the installed version has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from .._base.types import MatrixLike, Stored
from .._base.validation import Vector

__all__ = ["UNWATCHED", "CallbackSupportMixin", "Task", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # before scikit-learn 1.9
    _with_callbacks = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's: there are no callbacks."""


Method = TypeVar("Method", bound=Callable[..., object])


def with_callbacks(method: Method) -> Method:
    """`fit` as scikit-learn's callbacks want it; as it is, if there are none."""
    if _with_callbacks is None:
        return method
    wrapped: Method = _with_callbacks(method)
    return wrapped


class Context(Protocol):
    """A task as scikit-learn's callbacks know it."""

    def call_on_fit_task_begin(self, *, estimator: object, **told: object) -> object:
        """Tell them that it begins."""

    def call_on_fit_task_end(
        self,
        *,
        estimator: object,
        reconstruction_attributes: Callable[[], dict[str, object]] | None,
        **told: object,
    ) -> object:
        """Tell them that it ends; true if one wants to stop."""

    def subcontext(self, *, task_name: str, max_subtasks: int) -> Context:
        """A part of it."""


class Watched(Protocol):
    """An estimator that may have callbacks."""

    def _init_callback_context(self, *, max_subtasks: int) -> Context: ...


class Task:
    """A task of `fit` and its subtasks, told to the callbacks of the estimator, if it has any.

    The tree is fit > one task for each binary problem (or fold) > one leaf for each pass (or
    alpha). Subtasks are made in one thread, and may run in many.
    """

    def __init__(
        self, estimator: Watched | None, context: Context | None, told: dict[str, object]
    ) -> None:
        self._estimator, self._context, self._told = estimator, context, told
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **told)

    @classmethod
    def root(
        cls,
        estimator: Watched,
        subtasks: int,
        X: Stored,
        y: MatrixLike,
        weights: Vector | None,
    ) -> Task:
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

    def end(self, fitted: Callable[[], dict[str, object]] | None = None) -> bool:
        """Whether a callback wants to stop; `fitted` makes the attributes to predict with."""
        if self._context is None:
            return False
        return bool(
            self._context.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=fitted, **self._told
            )
        )


#: A task of an estimator without callbacks.
UNWATCHED = Task(None, None, {})
