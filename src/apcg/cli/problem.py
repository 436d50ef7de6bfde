"""The problem that the options describe: loss, penalty, intercept, weights of classes."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from .. import losses, model
from .._base.types import Array
from ..datasets import DataError, Dataset
from ..penalties.base import NAMES as PENALTIES
from ..problems.erm import ERM
from .common import POSITIVE, label

LOSSES = losses.names(margin=True) + losses.names_of_classes() + losses.names(margin=False)

#: Whole numbers of more kinds than this are amounts, and not the names of classes.
MOST_CLASSES = 100
#: What the losses with a number are made from, and what the option is called.
_MADE: dict[str, tuple[str, Callable[[float], Any]]] = {
    "smoothed_hinge": ("gamma", losses.SmoothedHinge),
    "multiclass_hinge": ("gamma", losses.MulticlassHinge),
    "huber": ("delta", losses.Huber),
    "epsilon_insensitive": ("epsilon", losses.EpsilonInsensitive),
    "squared_epsilon_insensitive": ("epsilon", losses.SquaredEpsilonInsensitive),
    "pinball": ("quantile", losses.Pinball),
}

Command = TypeVar("Command", bound=Callable[..., object])


class KnownName(click.Choice[str]):
    """One of the names; those of a plugin are known once it is loaded."""

    def __init__(self, known: Callable[[], tuple[str, ...]]) -> None:
        super().__init__(tuple(dict.fromkeys(known())))
        self.known = known

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "NAME"  # the help has the names, in lines of its own width

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        self.choices = tuple(dict.fromkeys(self.known()))
        return super().convert(value, param, ctx)


class LossName(KnownName):
    """A loss by name; the error says what other libraries' names are here."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        same = losses.ELSEWHERE.get(str(value).casefold())
        if same is not None and value not in self.known():
            hint = same if " " in same else f"Did you mean {same!r}?"
            self.fail(f"{value!r} is not one of them. {hint}", param, ctx)
        return super().convert(value, param, ctx)


def _no_c(ctx: click.Context, param: click.Parameter, value: float | None) -> None:
    if value is not None:
        alpha = f"1/({value:g} n)" if value > 0 else "1/(C n)"
        raise click.UsageError(
            f"there is no {param.opts[0]} here. --alpha {alpha} means the same, with n the number "
            "of samples."
        )


def _load_plugins(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> None:
    """Import modules that register losses and methods; a file is taken by its path."""
    for name in names:
        try:
            if not name.endswith(".py"):
                sys.path.insert(0, str(Path.cwd()))
                importlib.import_module(name)
                continue
            spec = importlib.util.spec_from_file_location(Path(name).stem, name)
            assert spec is not None
            assert spec.loader is not None
            made = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = made
            spec.loader.exec_module(made)
        except Exception as error:
            raise click.UsageError(
                f"the plugin {name} could not be loaded: {type(error).__name__}: {error}"
            ) from error


plugin = click.option("--plugin", "plugins", multiple=True, metavar="MODULE", is_eager=True,
                      expose_value=False, callback=_load_plugins,
                      help="A Python module or file of yours that registers losses or "
                      "methods. May be given more than once.")  # fmt: skip


@dataclass(frozen=True)
class ProblemOptions:
    """What the options say; None where they say nothing."""

    loss: str | None
    penalty: str
    l1_ratio: float | None
    positive: bool
    gamma: float | None
    delta: float | None
    epsilon: float | None
    quantile: float | None
    class_weight: str | None
    intercept: bool

    def name(self, data: Dataset) -> str:
        """The loss that was given, or one that suits the labels."""
        return find_loss(data, self.loss)

    def loss_of(self, name: str) -> Any:
        """The loss of that name, with the number that was given for it."""
        option, make = _MADE.get(name, ("", losses.by_name))
        for other in ("gamma", "delta", "epsilon", "quantile"):
            if other != option and getattr(self, other) is not None:
                whose = " and ".join(n for n, (o, _) in _MADE.items() if o == other)
                raise click.UsageError(f"--{other} is for the loss {whose}, and it is {name}.")
        value = getattr(self, option) if option else None
        return losses.by_name(name) if value is None else make(value)

    def ratio(self) -> float:
        """The share of L1, which is for the elastic net only."""
        if self.l1_ratio is not None and self.penalty != "elasticnet":
            raise click.UsageError(
                f"--l1-ratio is for --penalty elasticnet, and it is {self.penalty}."
            )
        return 0.5 if self.l1_ratio is None else self.l1_ratio

    def make(self, data: Dataset, alpha: float) -> tuple[ERM, Array | None]:
        """(problem, classes): labels become -1 and 1, or 0..K-1, if the loss wants classes."""
        name, classes = self.name(data), None
        loss = self.loss_of(name)
        y: Array
        if name in losses.names_of_classes():
            y, classes = model.encode_classes(data.y)
        elif loss.margin:
            y, classes = model.encode_labels(data.y)
        else:
            y = model.targets(data.y)
        weights = None
        if self.class_weight is not None:
            each = self.weights_of(data.y, classes)
            assert classes is not None
            assert data.y is not None
            weights = np.array(list(each.values()))[np.searchsorted(classes, data.y)]
        problem = ERM(
            data.X, y, loss, self.penalty, alpha, sample_weight=weights, l1_ratio=self.ratio(),
            positive=self.positive, intercept=self.intercept,
        )  # fmt: skip
        return problem, classes

    def weights_of(self, y: Array | None, classes: Array | None) -> dict[Any, float]:
        """The weight of each class, in order: as it was given, 1 where it was not."""
        if classes is None or y is None:
            raise click.UsageError("--class-weight is for classes, and the labels are numbers.")
        assert self.class_weight is not None
        if self.class_weight == "balanced":
            counts = np.unique(y, return_counts=True)[1]
            return dict(zip(classes.tolist(), (y.size / (counts.size * counts)).tolist(),
                            strict=True))  # fmt: skip
        given = _pairs(self.class_weight)
        names = {label(c): c for c in classes.tolist()}
        for word in given:
            if word not in names:
                raise DataError(
                    f"--class-weight names the class {word!r}; the classes are {', '.join(names)}."
                )
        return {c: given.get(name, 1.0) for name, c in names.items()}

    def words(self, loss: str) -> str:
        """The problem in words."""
        extra = [f"intercept{'' if self.intercept else ': none'}"]
        extra += ["w >= 0"] * self.positive
        if self.class_weight:
            extra.append(f"class weights {self.class_weight}")
        option = _MADE.get(loss, ("", None))[0]
        if option and getattr(self, option) is not None:
            loss = f"{loss} ({option} = {getattr(self, option):g})"
        return f"{loss} loss, {self.penalty} penalty, {', '.join(extra)}"


def _pairs(text: str) -> dict[str, float]:
    """{"spam": 2.0} of spam:2."""
    try:
        parts = [part.rpartition(":") for part in text.split(",")]
        given = {name.strip(): float(weight) for name, _, weight in parts}
    except ValueError:
        given = {"": -1.0}
    if "" in given or not all(0 <= w < float("inf") for w in given.values()):
        raise click.UsageError(
            f"--class-weight must be balanced, or label:weight with commas between them, such as "
            f"1:5,-1:1; got {text!r}."
        )
    return given


def problem_options(
    *, intercept: bool = True
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """The options of `ProblemOptions`, which the command gets as `problem`; and --plugin."""

    def decorate(command: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(command)
        def called(**given: Any) -> object:
            own = {f.name: given.pop(f.name) for f in fields(ProblemOptions)}
            return command(problem=ProblemOptions(**own), **given)

        for option in _OPTIONS[::-1]:
            called = option(called)
        return click.option("--intercept/--no-intercept", default=intercept, show_default=True,
                            help="A constant b, without a penalty on it.")(called)  # fmt: skip

    return decorate


_OPTIONS = (
    click.option("--loss", type=LossName(lambda: LOSSES + losses.names()),
                 show_default="smoothed_hinge for two labels; multinomial, the softmax, for "
                 "words and for 3 to 100 whole numbers (for amounts, such as ages, give "
                 "squared); else squared",
                 help=f"{', '.join(losses.names(margin=True))} are for two classes, "
                 f"{', '.join(losses.names_of_classes())} for many (logistic means "
                 f"multinomial there), {', '.join(losses.names(margin=False))} for real labels."),
    click.option("--penalty", type=click.Choice(PENALTIES), default="l2",
                 show_default=True, help="Penalty g."),
    click.option("--l1-ratio", type=click.FloatRange(0, 1), show_default="0.5",
                 help="Share of L1 in elasticnet."),
    click.option("--positive", is_flag=True, help="Keep all weights w >= 0."),
    click.option("--gamma", type=POSITIVE, show_default="1, and 0 for multiclass_hinge",
                 help="For smoothed_hinge and multiclass_hinge: how smooth."),
    click.option("--delta", type=POSITIVE, show_default="1.35",
                 help="For huber: residuals up to this are squared, larger ones are not."),
    click.option("--epsilon", type=click.FloatRange(min=0), show_default="0.1",
                 help="For epsilon_insensitive and squared_epsilon_insensitive: residuals up to "
                 "this cost nothing."),
    click.option("--quantile", type=click.FloatRange(0, 1, min_open=True, max_open=True),
                 show_default="0.5", help="For pinball: the quantile to predict."),
    click.option("--class-weight", metavar="TEXT",
                 help="balanced, or label:weight with commas between them (1:5,-1:1): errors in "
                 "a class count so many times."),
    plugin,
    click.option("--C", "-c", "C", type=float, hidden=True, expose_value=False,
                 is_eager=True, callback=_no_c),
)  # fmt: skip


def find_loss(data: Dataset, given: str | None) -> str:
    """The loss that was given, or one that suits the labels.

    Smoothed hinge for two classes, softmax for more of them, squared for real labels. The softmax
    is the logistic loss of many classes, and is found by that name too.
    """
    if given not in (None, "logistic"):
        return given
    if data.y is None:
        return given or "smoothed_hinge"
    values = np.unique(data.y)
    if values.size <= 2:
        return given or "smoothed_hinge"
    words = values.dtype.kind not in "fciub"
    whole = words or values.dtype.kind in "iub" or bool(np.all(values == np.round(values)))
    few = words or values.size <= min(MOST_CLASSES, data.y.size / 2)
    return "multinomial" if whole and few else given or "squared"


def taken_for(data: Dataset, given: str | None, loss: str) -> str:
    """What is said of a loss that nobody asked for."""
    if given == loss or data.y is None:
        return ""
    if loss == "multinomial" and data.y.dtype.kind in "fiub":
        kinds = np.unique(data.y).size
        return f": the {kinds} labels are taken for classes (for amounts give --loss squared)"
    return ": the labels are real numbers" if loss == "squared" else ""
