"""The losses by name, and the register of their names.

Each class says what phi is, as a function of m = y a'w with labels y = -1 or 1, or of r = a'w - y.
`loss.Loss` has what all of them can do. `loss_outputs` has those of K predictions at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .._base import validation as validate
from .._base.checks import Report, loss_report, quick_loss_report
from .._base.checks_outputs import outputs_report
from .._base.own import is_own, refuse_overrides
from .._base.validation import Vector
from .base import Loss, flat
from .outputs import ClassLoss, Columns, MulticlassHinge, Multinomial, OutputsLoss

__all__ = [
    "Columns",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "OutputsLoss",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "StronglyConvex",
    "by_name",
    "check",
    "names",
    "names_of_classes",
    "register",
]


_REGISTERED: dict[str, type[Loss] | type[OutputsLoss]] = {}

L = TypeVar("L", bound=type[Loss] | type[OutputsLoss])


def register(cls: L) -> L:
    """Make a class of losses known by its `name`: to `ERM`, to the estimators, to `names`.

    Also a decorator. The class must be makeable without arguments: the name alone gives no others.
    """
    if not (isinstance(cls, type) and issubclass(cls, Loss | OutputsLoss)):
        raise TypeError(
            "register takes a subclass of apcg.losses.Loss or apcg.losses.OutputsLoss, got "
            f"{cls!r}."
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
    """
    known = _REGISTERED.items()
    return tuple(name for name, cls in known if margin is None or cls.margin == margin)


def names_of_classes() -> tuple[str, ...]:
    """The names of the losses over K classes, with labels 0..K-1."""
    return tuple(name for name, cls in _REGISTERED.items() if issubclass(cls, OutputsLoss))


@register
class Hinge(Loss):
    """max(0, 1 - m)"""

    name = "hinge"


@register
class SmoothedHinge(Loss):
    """0 if m >= 1; 1 - m - gamma/2 if m <= 1 - gamma; (1 - m)^2/(2 gamma) between (the paper's)."""

    name = "smoothed_hinge"

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = validate.number(gamma, "gamma", low=0.0, open_low=True)


@register
class SquaredHinge(Loss):
    """max(0, 1 - m)^2"""

    name = "squared_hinge"
    gamma = 0.5
    domain = (0.0, math.inf)


@register
class Logistic(Loss):
    """log(1 + exp(-m))"""

    name = "logistic"
    kernel = "logistic"
    gamma = 4.0

    kinks = np.empty(0)
    conjugate_kink = False
    _resting_values = ()  # phi' tends to its bounds, and never is there

    @property
    def theta(self) -> tuple[float, ...]:
        return (0.0,)

    def nearest_conjugate_slope(self, x: Vector, m: Vector) -> Vector:
        """log((1 - x)/x); infinite at 0 and 1, where phi* has no subgradient."""
        with np.errstate(divide="ignore"):
            return np.log1p(-x) - np.log(x)


@register
class Squared(Loss):
    """r^2/2"""

    name = "squared"
    margin = False
    gamma = eta = 1.0
    domain = (-math.inf, math.inf)


@register
class Huber(Loss):
    """r^2/2 if |r| <= delta, else delta |r| - delta^2/2"""

    name = "huber"
    margin = False
    gamma = 1.0

    def __init__(self, delta: float = 1.35) -> None:
        self.delta = validate.number(delta, "delta", low=0.0, open_low=True)

    @property
    def domain(self) -> tuple[float, float]:  # type: ignore[override]
        return -self.delta, self.delta


@register
class EpsilonInsensitive(Loss):
    """max(0, |r| - epsilon)"""

    name = "epsilon_insensitive"
    margin = False
    domain = (-1.0, 1.0)

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = validate.number(epsilon, "epsilon", low=0.0)

    @property
    def theta(self) -> tuple[float, ...]:
        return 0.0, self.epsilon, 0.0, *self.domain


class StronglyConvex(Loss):
    """phi(t) + t^2/(2 eta), the small strongly convex term after Corollary 1 of the paper.

    t is the margin or the residual. phi must be smooth. The result is 1/eta-strongly convex and
    (1/gamma + 1/eta)-smooth, so that Theorem 3 holds for the problem, slightly changed.
    """

    kernel = "perturbed"
    domain = (-math.inf, math.inf)
    conjugate_kink = False
    _resting_values = ()  # phi' increases everywhere

    def __init__(self, loss: Any, eta: float) -> None:
        loss = by_name(loss)
        if isinstance(loss, OutputsLoss):
            raise TypeError(f"loss must be one of a single prediction, got {loss!r}.")
        if loss.gamma == 0 or math.isfinite(loss.eta):
            raise ValueError(f"loss must be smooth and not strongly convex already, got {loss!r}.")
        self.loss: Loss = loss
        self.eta = validate.number(eta, "eta", low=0.0, open_low=True)
        self.name = f"{loss.name} + t^2/(2 eta)"
        self.margin = loss.margin
        self.gamma = 1 / (1 / loss.gamma + 1 / self.eta)

    @property
    def kinks(self) -> Vector:
        """Those of phi."""
        return self.loss.kinks

    def __repr__(self) -> str:
        return f"StronglyConvex({self.loss!r}, eta={self.eta!r})"

    @property
    def theta(self) -> tuple[float, ...]:
        is_logistic = float(self.loss.kernel == "logistic")
        return self.eta, self.gamma, self.loss.gamma, is_logistic, *self.loss.theta

    def nearest_conjugate_slope(self, x: Vector, m: Vector) -> Vector:
        """The one slope: the root a of phi'(a) + a/eta = -x, by the conjugate's inner minimiser."""
        k = self.eta + self.loss.gamma
        x1 = self.loss.arrays.dual_prox(flat(self.eta * x / k), np.full(x.size, 1 / k))
        return np.asarray(self.eta * (x1 - x))


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
    "modified_huber": "It is 4 times the smoothed hinge with gamma=2: take that, and alpha/4.",
}


def by_name(loss: Any) -> Any:
    """The loss of that name with its default parameters, or the loss object itself."""
    if isinstance(loss, OutputsLoss):
        _check_outputs(loss)
        return loss
    if isinstance(loss, Loss):
        _check_agreement(loss)
        return loss
    made = _REGISTERED[validate.choice(loss, "loss", names(), ELSEWHERE)]
    return by_name(made()) if is_own(made) else made()


def check(loss: Any, value: Callable[..., Any] | None = None, labels: Any = None) -> Report:
    """Compare the parts of a loss with one another, by brute force; print what it gives back.

    Value against derivative, -derivative against the domain, the conjugate against numerical
    maximisation, its prox against brute force, gamma and eta against second differences.

    Parameters
    ----------
    loss : an object of `apcg.losses`, or of a subclass of your own.
    value : phi as you would write it, a function of an array of margins m, or of residuals r; for a
        loss of K predictions of z, (n, K), and the labels. The numbers of a loss always belong to
        some phi; this tells whether it is yours.
    labels : of a loss of K predictions: some that it takes, if they are not classes.

    Returns
    -------
    Report
        True if all is well; `str` has a line for each comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import losses
    >>> bool(losses.check(losses.Hinge(), lambda m: np.maximum(0, 1 - m)))
    True
    """
    loss = by_name(loss)
    if not isinstance(loss, OutputsLoss):
        return loss_report(loss, value)
    return outputs_report(loss, *_labels(loss, labels), value)


def _labels(loss: OutputsLoss, given: Any) -> tuple[Any, int]:
    """Labels to check a loss of K predictions with, and K."""
    if given is not None:
        return loss.check_labels(given, len(given))
    if isinstance(loss, Columns):
        y = np.random.default_rng(2).standard_normal((12, 3))
        return (np.where(y > 0, 1.0, -1.0) if loss.loss.margin else y), 3
    K = getattr(loss, "n_classes", None) or 4
    return loss.check_labels(np.arange(3 * K) % K, 3 * K)


#: What a loss of the user's may say; the compiled code reads nothing else.
_SAYS = frozenset(
    ("name", "margin", "gamma", "eta", "domain", "theta", "kernel", "check_labels", "delta",
     "epsilon")
)  # fmt: skip
_CURE = (
    "Say what the loss is by its numbers: domain and gamma, or theta; losses.check(loss, "
    "value=your_phi) tells whether they are those of your phi. A phi that has none is for "
    "`minimize`, with functions.Custom."
)
_QUICK_CHECKED: set[tuple[object, ...]] = set()


register(Multinomial)
register(MulticlassHinge)


#: What a class of the user's that derives from a loss of K predictions may say.
_SAYS_OF_OUTPUTS = frozenset(("name", "n_classes", "check_labels"))
_CURE_OF_OUTPUTS = (
    "Derive from losses.OutputsLoss instead, and write value, derivative and conjugate, all three: "
    "they are then called."
)


def _check_outputs(loss: OutputsLoss) -> None:
    """The same of a loss of K predictions; `Outputs` compares the parts of an own one."""
    if isinstance(loss, Columns):
        _check_agreement(loss.loss)
    known = next(c for c in type(loss).__mro__ if not is_own(c))
    called = type(loss).__name__
    if not isinstance(getattr(loss, "name", None), str):
        raise TypeError(f"{called} must have a name, a string.")
    if known is ClassLoss:
        raise TypeError(f"{called}: ClassLoss is not open. {_CURE_OF_OUTPUTS}")
    if known is not OutputsLoss:
        refuse_overrides(loss, OutputsLoss, _SAYS_OF_OUTPUTS, _CURE_OF_OUTPUTS)
        validate.number(loss.gamma, f"gamma of {called}", low=0.0)
        if known is Multinomial and loss.gamma != Multinomial.gamma:
            raise ValueError(f"the softmax has gamma = {Multinomial.gamma}, got {loss.gamma}.")
        kind = getattr(known, "kind", None)
        if known is not Columns and loss.kind != kind:
            raise ValueError(f"kind of {called} must be {kind}, got {loss.kind!r}.")
        return
    validate.number(loss.gamma, f"gamma of {called}", low=0.0)
    if loss.kind is not None or loss.margin is not None:
        raise TypeError(
            f"kind and margin of {called} must be None: the compiled code would not call what you "
            "wrote."
        )


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
