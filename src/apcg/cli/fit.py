"""One fit: its options, the model that comes out, and the lines that are printed about it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NotRequired, TypedDict

import click
import numpy as np

from .._base.types import Array
from ..certify.result import Solution, passes_in_words
from ..datasets import Dataset
from ..methods import registry
from ..model import LinearModel
from ..problems.erm import ERM
from ..run.solve import solve
from . import common
from .problem import KnownName, ProblemOptions


class CertifiedFacts(TypedDict):
    """The certificate: the optimum is between `dual` and `primal`."""

    primal: float
    dual: float
    gap: float
    relative_gap: float | None
    converged: bool


class Scores(TypedDict):
    """How good the predictions are, by `measure`."""

    measure: str
    train: float
    test: NotRequired[float]


class Trained(TypedDict):
    """How a model was trained, as its file has it."""

    data: common.Origin
    penalty: str
    alpha: float
    l1_ratio: float | None
    positive: bool
    parameters: dict[str, float]
    class_weight: str | None
    method: str
    side: str
    plan: list[str]
    tol: float
    seed: int
    certificate: CertifiedFacts
    passes: int
    seconds: float
    status: str
    message: str
    nonzero_weights: int
    outputs: int
    intercept: float | list[float]


class TrainFacts(Trained):
    """All that is printed."""

    loss: str
    scores: Scores
    model: str | None


@dataclass(frozen=True)
class Settings:
    """How to solve."""

    method: str
    tol: float
    max_passes: int
    seed: int


_SETTINGS = (
    click.option("--method", type=KnownName(registry.names), default="auto", show_default=True,
                 help="How it is solved; auto chooses, and none of them changes the answer. One "
                 f"of {', '.join(registry.names())}."),
    click.option("--tol", type=common.POSITIVE, default=1e-6, show_default=True,
                 help="Stop when the relative gap, the duality gap over the objective, is at most "
                 "this."),
    click.option("--max-passes", type=click.IntRange(min=0), default=1000, show_default=True,
                 help="Passes over the data, at most."),
    common.seed,
)  # fmt: skip


def settings_options(command: Callable[..., object]) -> Callable[..., object]:
    """The options of `Settings`, which the command gets as `settings`."""

    @functools.wraps(command)
    def called(**given: Any) -> object:
        own = {f.name: given.pop(f.name) for f in fields(Settings)}
        return command(settings=Settings(**own), **given)

    for option in _SETTINGS[::-1]:
        called = option(called)
    return called


def fit(
    data: Dataset,
    wanted: ProblemOptions,
    problem: ERM,
    classes: Array | None,
    settings: Settings,
    time_limit: float | None = None,
) -> tuple[LinearModel, Trained]:
    """The model, and how it was trained."""
    r = solve(problem, settings.method, tol=settings.tol, max_epochs=settings.max_passes,
              time_limit=time_limit, random_state=settings.seed,
              verbose=common.on_terminal())  # fmt: skip
    trained = _trained(data, r, wanted, problem, settings)
    table = None if data.table is None else data.table.record()
    model = LinearModel(r.w, classes, wanted.name(data), r.intercept, zero_based=data.zero_based,
                        facts=trained, table=table)  # fmt: skip
    return model, trained


def _trained(
    data: Dataset, r: Solution, wanted: ProblemOptions, problem: ERM, settings: Settings
) -> Trained:
    numbers = {name: getattr(wanted, name) for name in ("gamma", "delta", "epsilon", "quantile")}
    return {
        "data": common.origin(data),
        "penalty": wanted.penalty,
        "alpha": problem.alpha,
        "l1_ratio": wanted.ratio() if wanted.penalty == "elasticnet" else None,
        "positive": wanted.positive,
        "parameters": {name: value for name, value in numbers.items() if value is not None},
        "class_weight": wanted.class_weight,
        "method": r.method,
        "side": r.side,
        "plan": r.trace.notes,
        "tol": settings.tol,
        "seed": settings.seed,
        "certificate": {"primal": r.primal, "dual": r.dual, "gap": r.gap,
                        "relative_gap": r.gap / abs(r.primal) if r.primal else None,
                        "converged": r.converged},
        "passes": r.epochs,
        "seconds": r.seconds,
        "status": r.status.code,
        "message": str(r.status.told_to("command")),
        "nonzero_weights": int((r.w != 0).sum()),
        "outputs": r.w.shape[1] if r.w.ndim == 2 else 1,
        "intercept": np.asarray(r.intercept).tolist(),
    }  # fmt: skip


def facts_of(
    model: LinearModel, trained: Trained, data: Dataset, test: Dataset | None, path: str | None
) -> TrainFacts:
    """What is known of a model, with its scores."""
    name, value = model.score(data.X, data.y)
    scores: Scores = {"measure": name, "train": value}
    if test is not None:
        scores["test"] = model.score(test.X, test.y)[1]
    return {**trained, "loss": model.loss, "scores": scores, "model": path}


#: What the scores are called.
MEASURES = {"accuracy": "accuracy", "r2": "R^2"}


def show(data: Dataset, test: Dataset | None, facts: TrainFacts) -> None:
    """Print it."""
    c, scores = facts["certificate"], facts["scores"]
    click.echo(
        f"solved       by {facts['method']} on the {facts['side']}, "
        f"{passes_in_words(facts['passes'])}, {facts['seconds']:.2f} s"
    )
    for note in facts["plan"]:
        click.echo(f"chosen       {note}")
    click.echo(f"status       {facts['message']}")
    where, gaps = common.optimum(c["dual"], c["primal"]), common.gaps(c["gap"], c["primal"])
    click.echo(f"certificate  the {where}: {gaps}")
    weights, b = data.shape[1] * facts["outputs"], facts["intercept"]
    click.echo(f"weights      {facts['nonzero_weights']:,} of {weights:,} are not zero")
    if isinstance(b, float) and b:
        click.echo(f"intercept    {b:.10g}")
    elif isinstance(b, list) and any(b):
        click.echo(f"intercepts   {', '.join(f'{each:.4g}' for each in b)}")
    click.echo(f"{MEASURES[scores['measure']]:<12} {scores['train']:.4f} on the training data")
    if test is not None:
        click.echo(f"{'':<12} {scores['test']:.4f} on {common.describe(test)}")
    if facts["model"]:
        click.echo(f"model        {facts['model']}")


def exit_code(trained: Trained) -> int:
    """0, or 3 if the tolerance was not reached, or 130 after Ctrl-C."""
    if trained["status"] == "interrupted":
        return 130
    return 0 if trained["certificate"]["converged"] else 3
