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
from ..model import LinearModel
from . import common


@click.command(short_help="Predict the label of each sample of DATA, one a line.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option(
    "--probabilities",
    "what",
    flag_value="probabilities",
    help="Print the probability of the larger label (loss logistic), or of each (multinomial).",
)
@click.option("--decision", "what", flag_value="decision", help="Print a'w.")
@common.memory
@common.as_json  # fmt: skip
def predict(model: Path, data: str, what: str | None, memory: str | None, as_json: bool) -> None:
    """Predict the label of each sample of DATA, one a line, with a MODEL made by `apcg train`.

    Files and pipes of LIBSVM text are read through piece by piece, whatever their size; the labels
    in them are not looked at (put 0 if there are none).

    \b
    apcg predict a9a.npz a9a.t > labels.txt
    zcat huge.gz | apcg predict a9a.npz - --probabilities | head
    """
    trained = LinearModel.load(model)
    batches = _predictions(trained, data, what or "predict", memory)
    if not as_json:
        for values in batches:
            click.echo("\n".join(map(_text, values.tolist())))
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
    click.echo("\n]}")


def _predictions(model: LinearModel, data: str, what: str, memory: str | None) -> Iterator[Array]:
    for X in datasets.batches(data, model.n_features, bool(model.zero_based), memory):
        yield np.asarray(getattr(model, what)(X))


def _text(value: object) -> str:
    """A number as short as it can be without loss: 1, not 1.0; those of K classes with spaces."""
    if isinstance(value, list):
        return " ".join(map(_text, value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _json(value: object) -> str:
    if isinstance(value, list):  # one number for each class
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "null"  # as everywhere: JSON has no word for it
    return json.dumps(value)
