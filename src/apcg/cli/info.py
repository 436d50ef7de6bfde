"""apcg info"""

from __future__ import annotations

import math
from typing import NotRequired, TypedDict

import click
import numpy as np

from .. import datasets, plots, theory
from ..certify.points import Start
from ..data import by_row
from ..datasets import DataError, Dataset
from ..methods.base import DUAL_BLOCKS, Target, unmet
from ..methods.plan.plan import Auto
from ..methods.plan.watch import Watch
from ..problems.erm import ERM
from . import common, source
from .problem import ProblemOptions, problem_options

METHODS = ("apcg", "sdca", "afg", "sag", "svrg", "accelerated_sdca")


class Takes(TypedDict):
    """What `auto` would do."""

    side: str
    method: str
    newton_passes: float | None


class ForAlpha(TypedDict):
    """How hard the problem is for one lambda."""

    alpha: float
    condition_number: float
    promised_passes: dict[str, float]
    auto: Takes


class DataFacts(TypedDict):
    """What is found. Where the labels do not suit the loss, a note is all that follows them."""

    sparsity: float
    row_norms: dict[str, float]
    R: float
    labels: NotRequired[dict[str, float]]
    loss: NotRequired[str]
    penalty: NotRequired[str]
    dual_error: NotRequired[float]
    alphas: NotRequired[list[ForAlpha]]
    note: NotRequired[str]


@click.command()
@click.argument("data", required=False)
@click.option("--alpha", type=common.NumberList(), default="1e-4,1e-5,1e-6,1e-7,1e-8",
              show_default=True, help="Lambdas to look at, with commas between them.")  # fmt: skip
@click.option("--dual-error", type=common.POSITIVE, default=1e-6, show_default=True,
              help="The dual error for which passes are promised.")  # fmt: skip
@source.column_options
@problem_options(intercept=False)
@click.option("--list", "list_names", is_flag=True,
              help="Only list the data sets with a name.")  # fmt: skip
@common.as_json
def info(
    data: str | None,
    columns: source.TableColumns,
    problem: ProblemOptions,
    alpha: tuple[float, ...],
    dual_error: float,
    list_names: bool,
    as_json: bool,
) -> None:
    """What DATA is like, and how hard it is for each lambda.

    Prints the numbers of samples, features and nonzeros, the norms of the rows, R (the largest),
    and for each lambda the condition number R^2/(lambda gamma), the passes over the data that
    Theorem 2 promises for APCG (and its counterparts for the other methods, by their own papers;
    for AFG and in part for accelerated SDCA these give the order only), and what `auto` would do.

    A problem is ill-conditioned when R^2/(lambda gamma) is much larger than n: there APCG is worth
    it.

    \b
    apcg info a9a --loss logistic --alpha 1e-4,1e-6
    apcg info customers.csv --target left
    apcg info --list
    """
    if list_names:
        _list(as_json)
        return
    if data is None:
        raise click.UsageError("give DATA, or --list for the names of data sets.")
    found = source.load(data, columns, labelled=False)
    facts = _facts(found)
    try:
        made, _ = problem.make(found, alpha[0])
        facts |= {"loss": problem.name(found), "penalty": problem.penalty}
        facts["dual_error"] = dual_error
        facts["alphas"] = [_for_alpha(made.with_alpha(a), dual_error) for a in alpha]
    except DataError as error:
        facts["note"] = str(error)
    if as_json:
        common.print_json({**common.origin(found), **facts})
    else:
        _print(found, facts)


def _list(as_json: bool) -> None:
    known = datasets.catalogue()
    if as_json:
        common.print_json(known)
        return
    head = ["name", "samples", "features", "labels", "from"]
    rows = [[e["name"], f"{e['n']:,}", f"{e['d']:,}", e["labels"], e["source"]] for e in known]
    click.echo(common.table(head, rows))


def auto_takes(problem: ERM) -> Takes:
    """The method that `method="auto"` starts with, and the passes that Newton's method would cost.

    It leaves the dual for Newton's method on the primal when the dual turns out to need more. The
    method is "none" for a problem that it refuses.
    """
    if problem.K > 1:
        side = "dual" if DUAL_BLOCKS.holds(problem) else "primal"
        return {"side": side, "method": "sweeps over blocks", "newton_passes": None}
    if unmet(Auto(), problem) is not None:
        return {"side": "primal", "method": "none", "newton_passes": None}
    first = Auto().first(problem, Start())[0].name
    cost = Watch(problem, Target()).newton_in_passes if problem.dual_form else None
    side = "dual" if first in ("dual", "adaptive") and problem.dual_form else "primal"
    return {"side": side, "method": first, "newton_passes": cost}


def _facts(data: Dataset) -> DataFacts:
    n, d = data.shape
    norms = np.sqrt(by_row(data.X, "X").squared_norms())
    facts: DataFacts = {
        "sparsity": data.nonzeros / (n * d),
        "row_norms": {"min": norms.min(), "mean": norms.mean(), "max": norms.max()},
        "R": norms.max(),
    }
    if data.y is not None:
        values, counts = np.unique(data.y, return_counts=True)
        few = values.size <= 20
        facts["labels"] = (
            {f"{v:g}" if isinstance(v, float) else str(v): c
             for v, c in zip(values.tolist(), counts.tolist(), strict=True)}
            if few
            else {"distinct": values.size, "min": values[0], "max": values[-1]}
        )  # fmt: skip
    return facts


def _for_alpha(problem: ERM, epsilon: float) -> ForAlpha:
    # nothing is promised for penalties and losses without strong convexity or smoothness
    promised = dict.fromkeys(METHODS, float("inf"))
    if problem.dual_form:
        promised = {m: theory.promised_passes(problem, epsilon, m) for m in METHODS}
    return {
        "alpha": problem.alpha,
        "condition_number": problem.condition_number,
        "promised_passes": promised,
        "auto": auto_takes(problem),
    }  # fmt: skip


def _print(data: Dataset, facts: DataFacts) -> None:
    norms = facts["row_norms"]
    click.echo(common.describe(data))
    click.echo(f"file       {data.source}{' (a stand-in, not the real one)' * data.stand_in}")
    click.echo(f"sparsity   {100 * facts['sparsity']:.3g} % of the entries are not zero")
    shown = "none"
    if "labels" in facts:
        shown = ", ".join(f"{k}: {v:,}" if isinstance(v, int) else f"{k}: {v:g}"
                          for k, v in facts["labels"].items())  # fmt: skip
    click.echo(f"labels     {shown}")
    click.echo(f"row norms  {norms['min']:.4g} to {norms['max']:.4g}, mean {norms['mean']:.4g}; "
               f"R = {facts['R']:.6g}")  # fmt: skip
    if "note" in facts:
        click.echo(f"note       {facts['note']}")
        return
    head = ["lambda", "R^2/(lambda gamma)", "over n", *(plots.NAMES[m] for m in METHODS), "auto"]
    rows = [
        [f"{a['alpha']:g}", f"{a['condition_number']:.3g}",
         f"{a['condition_number'] / data.shape[0]:.3g}",
         *(common.count(a["promised_passes"][m]) for m in METHODS), _auto(a["auto"])]
        for a in facts["alphas"]
    ]  # fmt: skip
    click.echo(
        f"\nLoss {facts['loss']}, penalty {facts['penalty']}. Passes that theory promises to a "
        f"dual error of {facts['dual_error']:g}\n(upper bounds; - where nothing is promised):\n"
    )
    click.echo(common.table(head, rows))


def _auto(takes: Takes) -> str:
    if takes["side"] == "primal":
        return takes["method"].replace("_", " ")
    newton = takes["newton_passes"]
    if newton is None or not math.isfinite(newton):
        return "dual"
    return f"dual; Newton if over {newton:.0f}"
