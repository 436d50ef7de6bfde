"""apcg train"""

from __future__ import annotations

from pathlib import Path
from typing import NotRequired, TypedDict

import click
import numpy as np

from .. import datasets
from .._base.files import check_target
from ..certify.result import Solution, passes_in_words
from ..datasets import Dataset
from ..methods import registry
from ..model import LinearModel
from ..run.solve import solve
from . import common


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


@click.command(short_help="Train a linear model on DATA and certify it.")
@click.argument("data")
@common.problem_options
@click.option(
    "--alpha",
    type=common.POSITIVE,
    default=1e-4,
    show_default=True,
    help="The paper's lambda: mean loss + alpha g(w). For LIBLINEAR's C it is 1/(C n).",
)
@click.option(
    "--intercept/--no-intercept", default=False, show_default=True, help="Without a penalty on it."
)
@click.option("--method", type=click.Choice(registry.names()), default="auto", show_default=True)
@click.option(
    "--tol",
    type=common.POSITIVE,
    default=1e-6,
    show_default=True,
    help="Stop when the relative gap, the duality gap over the objective, is at most this.",
)
@click.option("--max-passes", type=click.IntRange(min=0), default=1000, show_default=True)
@click.option("--time-limit", type=common.POSITIVE, help="In seconds.")
@click.option(
    "--features",
    type=click.IntRange(1, 2**31),
    help="Features of the model, if DATA happens not to have the last ones.",
)
@click.option("--test", "test_data", metavar="DATA", help="Data to test the model on.")
@click.option(
    "--model",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the model here, as one .npz file.",
)
@common.memory
@common.seed
@common.as_json  # fmt: skip
def train(
    data: str,
    loss: str | None,
    penalty: str,
    l1_ratio: float,
    alpha: float,
    intercept: bool,
    method: str,
    tol: float,
    max_passes: int,
    time_limit: float | None,
    features: int | None,
    test_data: str | None,
    out: Path | None,
    memory: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Train a linear model on DATA and certify it.

    Minimizes the mean loss plus alpha times the penalty, and prints a certificate: the optimum is
    between D and P, so P is at most the gap from it. Labels may be two numbers or words (the larger
    one is the positive class), those of many classes, or real numbers; without --loss they say
    which it is.

    \b
    apcg train a9a --loss logistic --alpha 1e-6 --test a9a.t --model a9a.npz
    apcg train mine.libsvm.bz2 --loss squared_hinge --tol 1e-9 --json

    Ctrl-C keeps what there is: the model is written, and the certificate says how good it is.
    """
    read = [data, *([] if test_data is None else [test_data])]
    if out is not None:  # before the work, not after it
        check_target(out, read)
    found = datasets.load(data, n_features=features, memory_limit=memory)
    test = None
    if test_data is not None:
        test = datasets.load(test_data, n_features=found.shape[1], zero_based=found.zero_based)
    read += [each.source for each in (found, test) if each is not None]  # the files of names
    if out is not None:
        check_target(out, read)
    given, loss = loss, common.find_loss(found, loss)
    problem, classes = common.make_problem(found, loss, penalty, alpha, l1_ratio, intercept)
    if test is not None:  # what is wrong with the test data is said before the work
        shape = (problem.d, problem.K)[: 1 + (problem.K > 1)]
        LinearModel(np.zeros(shape), classes, loss).score(test.X, test.y)
    if not as_json:  # now, for the rest may take long
        click.echo(f"data         {common.describe(found)}")
        why = common.taken_for(found, given, loss)
        click.echo(f"problem      {loss} loss, {penalty} penalty, alpha = {alpha:g}{why}")
    r = solve(problem, method, tol=tol, max_epochs=max_passes, time_limit=time_limit,
              random_state=seed, verbose=common.on_terminal())  # fmt: skip
    trained = _trained(found, r, penalty, alpha, l1_ratio, tol, seed)
    model = LinearModel(r.w, classes, loss, r.intercept, zero_based=found.zero_based, facts=trained)
    if out is not None:
        model.save(out, read)
    scores, path = _scores(model, found, test), None if out is None else str(out)
    facts: TrainFacts = {**trained, "loss": loss, "scores": scores, "model": path}
    common.print_json(facts) if as_json else _print(found, test, facts)
    if r.status.code == "interrupted":
        return 130
    return 0 if r.converged else 3


def _trained(
    data: Dataset, r: Solution, penalty: str, alpha: float, l1_ratio: float, tol: float, seed: int
) -> Trained:
    return {
        "data": common.origin(data),
        "penalty": penalty,
        "alpha": alpha,
        "l1_ratio": l1_ratio if penalty == "elasticnet" else None,
        "method": r.method,
        "side": r.side,
        "plan": r.trace.notes,
        "tol": tol,
        "seed": seed,
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


def _scores(model: LinearModel, data: Dataset, test: Dataset | None) -> Scores:
    name, value = model.score(data.X, data.y)
    scores: Scores = {"measure": name, "train": value}
    if test is not None:
        scores["test"] = model.score(test.X, test.y)[1]
    return scores


def _print(data: Dataset, test: Dataset | None, facts: TrainFacts) -> None:
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
    kind = {"accuracy": "accuracy", "r2": "R^2"}[scores["measure"]]
    click.echo(f"{kind:<12} {scores['train']:.4f} on the training data")
    if test is not None:
        click.echo(f"{'':<12} {scores['test']:.4f} on {common.describe(test)}")
    if facts["model"]:
        click.echo(f"model        {facts['model']}")
