"""apcg predict"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from .. import datasets
from .._base.types import Array
from ..datasets import Table
from ..model import LinearModel
from . import common, source
from .fit import MEASURES
from .problem import plugin


class Score:
    """Accuracy or R^2 of predictions that come in pieces."""

    def __init__(self) -> None:
        self.n = self.right = 0
        self.mean = self.spread = self.left = 0.0

    def add(self, model: LinearModel, z: Array, y: Array | None) -> None:
        """Some predictions and labels; labels of no class of the model are none."""
        if y is None or y.size == 0:
            return
        if model.classes is not None:
            if (y.dtype.kind == "U") != (model.classes.dtype.kind == "U"):
                return
            known = np.isin(y, model.classes)
            self.n += int(known.sum())
            self.right += int(np.sum(model.labels(z)[known] == y[known]))
        elif y.dtype.kind in "fiub":
            # means and sums of squares of two parts are joined without their difference lost
            n, mean = y.size, float(np.mean(y))
            off = mean - self.mean
            self.spread += float(np.sum((y - mean) ** 2)) + off**2 * self.n * n / (self.n + n)
            self.mean += off * n / (self.n + n)
            with np.errstate(over="ignore", invalid="ignore"):
                self.left += float(np.sum((y - z) ** 2))
            self.n += n

    def result(self, model: LinearModel) -> tuple[str, float, int] | None:
        """(measure, value, number of labels); None if there is nothing to say."""
        if model.classes is not None:
            return ("accuracy", self.right / self.n, self.n) if self.n else None
        sound = self.spread > 0 and math.isfinite(self.left)
        return ("r2", 1 - self.left / self.spread, self.n) if sound else None


def _no_target(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(
            "there is no --target here. A model knows the columns that it was trained with, and "
            "finds them by name, the labels too."
        )


@click.command(short_help="Predict the label of each sample of DATA, one a line.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option(
    "--proba",
    "--probabilities",
    "what",
    flag_value="probabilities",
    help="Print the probability of the larger label (loss logistic), or of each (multinomial).",
)
@click.option("--decision", "what", flag_value="decision", help="Print a'w + b.")
@source.memory
@plugin
@common.as_json
@click.option("--target", hidden=True, expose_value=False, is_eager=True, callback=_no_target)
def predict(model: Path, data: str, what: str | None, memory: str | None, as_json: bool) -> None:
    """Predict the label of each sample of DATA, one a line.

    MODEL is a file of `apcg train` or of LIBLINEAR. Files and pipes of LIBSVM text and CSV are read
    through piece by piece, whatever their size. If DATA has labels, the accuracy or R^2 is printed
    to standard error, or with --json at the end. A label that the model does not know, such as 0 or
    ?, counts as missing.

    \b
    apcg predict a9a.npz a9a.t > labels.txt
    zcat huge.gz | apcg predict a9a.npz - --proba | head
    """
    trained, score = LinearModel.load(model), Score()
    batches = _predictions(trained, data, what or "labels", memory, score)
    if not as_json:
        for values in batches:
            click.echo("\n".join(map(common.label, values.tolist())))
        known = score.result(trained)
        if known is not None:
            measure, value, n = known
            click.echo(f"{MEASURES[measure]} {value:.4f} on {n:,} labels", err=True)
        return
    # one document, written as it comes
    facts = {"model": str(model), "data": data, "what": what or "labels"}
    click.echo(json.dumps(facts)[:-1] + ', "predictions": [', nl=False)
    separator = "\n"
    try:
        for values in batches:
            click.echo(separator + ",\n".join(map(_json, values.tolist())), nl=False)
            separator = ",\n"
    except (Exception, KeyboardInterrupt) as error:  # the document ends as JSON all the same
        said = json.dumps(str(error) or type(error).__name__)
        click.echo(f'\n], "error": {said}}}')
        raise
    known = score.result(trained)
    shown = None if known is None else dict(zip(("measure", "value", "n"), known, strict=True))
    click.echo(f'\n], "scores": {json.dumps(shown)}}}')


def _predictions(
    model: LinearModel, data: str, what: str, memory: str | None, score: Score
) -> Iterator[Array]:
    like = None if model.table is None else Table.of(model.table)
    pieces = datasets.batches(data, model.n_features, bool(model.zero_based), memory, like)
    for X, y in pieces:
        z = model.decision(X)
        score.add(model, z, y)
        if what == "labels":
            yield model.labels(z)
        else:
            yield model.shares(z) if what == "probabilities" else z


def _json(value: object) -> str:
    if isinstance(value, list):  # one number for each class
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "null"  # as everywhere: JSON has no word for it
    return json.dumps(value)
