"""The losses by name, and what a loss of a user's may say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .._base import validation as validate
from .._base.checks import CheckReport
from .._base.own import is_own, refuse_overrides
from .base import BaseLoss, ScalarLoss
from .check import loss_report, outputs_report, quick_loss_report
from .classes import ClassLoss, MulticlassHinge, Multinomial
from .interval import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Loss,
    Pinball,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from .logistic import Logistic, StronglyConvex
from .own import OutputsLoss, OwnLoss, check_there
from .per_output import Columns

_REGISTERED: dict[str, type[BaseLoss]] = {}

L = TypeVar("L", bound=type[BaseLoss])


def register(cls: L) -> L:
    """Make a class of losses known by its `name`: to `ERM`, to the estimators, to `names`.

    Also a decorator. The class must be makeable without arguments: the name alone gives no others.

    Examples
    --------
    >>> from apcg import losses
    >>> class Steep(losses.Huber):
    ...     name = "steep_huber"
    ...     def __init__(self):
    ...         super().__init__(delta=5.0)
    >>> losses.register(Steep).name in losses.names()
    True
    """
    if not (isinstance(cls, type) and issubclass(cls, Loss | OwnLoss | OutputsLoss)):
        raise TypeError(
            f"register takes a subclass of apcg.losses.Loss, OwnLoss or OutputsLoss, got {cls!r}."
        )
    name = getattr(cls, "name", None)
    if not (isinstance(name, str) and name):
        raise TypeError(f"{cls.__name__} must have a class attribute `name`, got {name!r}.")
    known = _REGISTERED.get(name)
    if known is not None and _path(known) != _path(cls):  # a notebook may run a cell twice
        raise ValueError(f"there is a loss {name!r} already, {known.__name__}; take another name.")
    try:
        made = cls()
        _ = made.arrays if isinstance(made, Loss) else made.gamma
    except TypeError as error:
        raise TypeError(
            f"{cls.__name__}() must work without arguments, so that {name!r} can stand for it; "
            f"give its parameters defaults. Got: {error}"
        ) from error
    _REGISTERED[name] = cls
    return cls


def _path(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def names(margin: bool | None = None) -> tuple[str, ...]:
    """The names of all registered losses; those of margins or of residuals only, if `margin` says.

    Losses of margins are for two classes, losses of residuals for real labels. `names_of_classes`
    has those of many classes.

    Examples
    --------
    >>> from apcg import losses
    >>> losses.names(margin=True)
    ('hinge', 'smoothed_hinge', 'squared_hinge', 'logistic')
    """
    known = _REGISTERED.items()
    return tuple(name for name, cls in known if margin is None or cls.margin == margin)


def names_of_classes() -> tuple[str, ...]:
    """The names of the losses over K classes, with labels 0..K-1.

    Examples
    --------
    >>> from apcg import losses
    >>> losses.names_of_classes()
    ('multinomial', 'multiclass_hinge')
    """
    return tuple(name for name, cls in _REGISTERED.items() if issubclass(cls, OutputsLoss))


for _known in (
    Hinge,
    SmoothedHinge,
    SquaredHinge,
    Logistic,
    Squared,
    Huber,
    EpsilonInsensitive,
    SquaredEpsilonInsensitive,
    Pinball,
    Multinomial,
    MulticlassHinge,
):
    register(_known)


#: What other libraries call these losses, or a sentence on how to say it here.
ELSEWHERE = {
    "log_loss": "logistic",
    "log": "logistic",
    "binary_crossentropy": "logistic",
    "softmax": "multinomial",
    "cross_entropy": "multinomial",
    "crossentropy": "multinomial",
    "multinomial_logistic": "multinomial",
    "crammer_singer": "multiclass_hinge",
    "mse": "squared",
    "squared_error": "squared",
    "squared_loss": "squared",
    "least_squares": "squared",
    "svm": "hinge",
    "quantile": "pinball",
    "modified_huber": "It is 4 times the smoothed hinge with gamma=2: take that, and alpha/4.",
}


def by_name(loss: Any) -> Any:
    """The loss of that name with its default parameters, or the loss object itself.

    Examples
    --------
    >>> from apcg import losses
    >>> losses.by_name("logistic").name
    'logistic'
    """
    if isinstance(loss, Loss):
        _check_agreement(loss)
        return loss
    if isinstance(loss, BaseLoss):
        _check_functions(loss)
        return loss
    known = isinstance(loss, str) and loss in _REGISTERED
    made = _REGISTERED[loss if known else validate.choice(loss, "loss", names(), ELSEWHERE)]
    return by_name(made()) if is_own(made) else made()


def check(loss: Any, value: Callable[..., Any] | None = None, labels: Any = None) -> CheckReport:
    """Compare the parts of a loss with one another, by brute force; print what it gives back.

    Value against derivative, -derivative against the domain, the conjugate against numerical
    maximisation, its prox against brute force, gamma and eta against second differences.

    Parameters
    ----------
    loss : Loss
        An object of `apcg.losses`, or of a subclass of your own.
    value : callable, default=None
        phi as you would write it, a function of an array of margins m, or of residuals r; for a
        loss of K predictions of z, (n, K), and the labels. The numbers of a loss always belong to
        some phi; this tells whether it is yours.
    labels : array, default=None
        Of a loss of K predictions: some that it takes, if they are not classes.

    Returns
    -------
    CheckReport
        True if all is well; `str` has a line for each comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import losses
    >>> bool(losses.check(losses.Hinge(), lambda m: np.maximum(0, 1 - m)))
    True
    """
    loss = by_name(loss)
    if isinstance(loss, Loss):
        return loss_report(loss, value)
    if isinstance(loss, OwnLoss):
        check_there(loss)
        loss = Columns(loss)
    return outputs_report(loss, *_labels(loss, labels), value)


def _labels(loss: BaseLoss, given: Any) -> tuple[Any, int]:
    """Labels to check a loss with that is a function of (n, K) arrays, and K."""
    if given is not None:
        given = np.asarray(given)
        one = isinstance(loss, Columns) and given.ndim == 1
        return loss.read_labels(given[:, None] if one else given, len(given))
    if isinstance(loss, Columns):
        y = np.random.default_rng(2).standard_normal((12, 3))
        return (np.where(y > 0, 1.0, -1.0) if loss.margin else y), 3
    K = getattr(loss, "n_classes", None) or 4
    return loss.read_labels(np.arange(3 * K) % K, 3 * K)


#: What a loss of the user's may say; the compiled code reads nothing else.
_SAYS = frozenset(
    ("name", "margin", "gamma", "eta", "domain", "theta", "kernel", "check_labels", "delta",
     "epsilon")
)  # fmt: skip
_CURE = (
    "Say what the loss is by its numbers: domain and gamma, or theta; losses.check(loss, "
    "value=your_phi) tells whether they are those of your phi. Or derive from losses.OwnLoss, and "
    "write value, derivative and conjugate, all three: they are then called."
)
_QUICK_CHECKED: set[tuple[object, ...]] = set()


#: What a class of the user's that derives from a loss of K predictions may say.
_SAYS_OF_OUTPUTS = frozenset(("name", "n_classes", "check_labels"))
_CURE_OF_OUTPUTS = (
    "Derive from losses.OutputsLoss instead (losses.OwnLoss for one prediction), and write value, "
    "derivative and conjugate, all three: they are then called."
)


def _check_functions(loss: BaseLoss) -> None:
    """The same of a loss that is called; `check_use` compares the parts of an own one."""
    if isinstance(loss, Columns) and isinstance(loss.loss, Loss):
        _check_agreement(loss.loss)
    known = next(c for c in type(loss).__mro__ if not is_own(c))
    called = type(loss).__name__
    if not isinstance(getattr(loss, "name", None), str):
        raise TypeError(f"{called} must have a name, a string.")
    if known in (ClassLoss, BaseLoss, ScalarLoss):
        raise TypeError(f"{called}: {known.__name__} is not open. {_CURE_OF_OUTPUTS}")
    gamma = validate.number(loss.gamma, f"gamma of {called}", low=0.0)
    if known in (OwnLoss, OutputsLoss):
        if loss.kind is not None or loss.compiled or (known is OutputsLoss and loss.margin):
            raise TypeError(
                f"kind and margin of {called} must be None: the compiled code would not call what "
                "you wrote."
            )
        return
    refuse_overrides(loss, BaseLoss, _SAYS_OF_OUTPUTS, _CURE_OF_OUTPUTS)
    if known is Multinomial and gamma != Multinomial.gamma:
        raise ValueError(f"the softmax has gamma = {Multinomial.gamma}, got {loss.gamma}.")
    kind = getattr(known, "kind", None)
    if known is not Columns and loss.kind != kind:
        raise ValueError(f"kind of {called} must be {kind}, got {loss.kind!r}.")


def _check_agreement(loss: Loss) -> None:
    """What a loss of the user's says is used, or it is refused."""
    refuse_overrides(loss, Loss, _SAYS, _CURE)
    if is_own(type(loss)):
        _check_own(loss)
    _check_kernel(loss)
    if is_own(type(loss)):
        key = (loss.kernel, loss.theta, loss.gamma, loss.eta)
        if key not in _QUICK_CHECKED:  # the first time it is used
            quick_loss_report(loss).raise_if_wrong()
            _QUICK_CHECKED.add(key)


def _check_own(loss: Loss) -> None:
    nearest = next(c for c in type(loss).__mro__ if not is_own(c))
    said = {name for c in type(loss).__mro__ if is_own(c) for name in vars(c)} | set(vars(loss))
    if nearest is Loss and not said & {"domain", "theta"}:
        raise TypeError(
            f"{type(loss).__name__} says neither its domain nor theta, so that it would be the "
            "hinge loss. Give it domain = (lower, upper), the interval of x = -phi'."
        )
    if isinstance(loss.domain, str) or np.size(loss.domain) != 2:
        raise TypeError(f"domain of loss {loss!r} must be (lower, upper), got {loss.domain!r}.")
    validate.number(loss.eta, f"eta of {loss!r}", low=0.0, infinite=True)


def _check_kernel(loss: Loss) -> None:
    """What is said twice must be the same: methods read both."""
    if loss.kernel not in ("interval", "logistic", "perturbed"):
        raise ValueError(
            f"kernel of loss {loss!r} must be 'interval', 'logistic' or 'perturbed', got "
            f"{loss.kernel!r}."
        )
    _ = loss.arrays  # theta by itself is sound
    known = {"logistic": Logistic, "perturbed": StronglyConvex}.get(loss.kernel)
    if known is not None and not isinstance(loss, known):
        raise TypeError(
            f"kernel {loss.kernel!r} is that of losses.{known.__name__}; derive from it."
        )
    if loss.kernel == "logistic" and (loss.gamma, loss.eta, *loss.domain) != (4, math.inf, 0, 1):
        raise ValueError(
            f"the logistic loss has gamma = 4, eta = inf and domain = (0, 1); {loss!r} says "
            f"{loss.gamma}, {loss.eta} and {loss.domain}."
        )
    if loss.kernel == "interval" and (loss.gamma, *loss.domain) != tuple(loss.theta[2:]):
        raise ValueError(
            f"loss {loss!r} has gamma = {loss.gamma} and domain = {loss.domain}, but the last "
            f"three of its theta are {tuple(loss.theta[2:])}; they must be the same."
        )
