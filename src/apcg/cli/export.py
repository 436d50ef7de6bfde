"""apcg export"""

from __future__ import annotations

from pathlib import Path

import click

from .._base.files import replacing
from ..model import LinearModel
from . import common
from .problem import plugin

#: What the name of a file says, if --format says nothing.
_SUFFIXES = {".onnx": "onnx", ".npz": "apcg", ".model": "liblinear", ".liblinear": "liblinear"}


@click.command(short_help="Write a MODEL as ONNX, or for LIBLINEAR.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["onnx", "liblinear", "apcg"]),
    show_default="by the name of OUT: .onnx, .model or .liblinear, .npz",
)
@plugin
@common.as_json  # fmt: skip
def export(model: Path, out: Path, kind: str | None, as_json: bool) -> None:
    """Write a MODEL, of `apcg train` or of LIBLINEAR, to OUT in another format.

    ONNX is read by servers of models: X is a matrix of float32, and label (prediction of a
    regression), decision and, for logistic and multinomial, probabilities come out. LIBLINEAR's
    `predict` reads its own format: labels are whole numbers there, and features count from 1.

    \b
    apcg export a9a.npz a9a.onnx
    apcg export a9a.npz a9a.model
    apcg export liblinear.model mine.npz
    """
    kind = kind or _SUFFIXES.get(out.suffix.lower())
    if kind is None:
        raise click.UsageError(
            f"the name {out.name!r} does not say a format: end it with .onnx, .model or .npz, or "
            "give --format."
        )
    trained = LinearModel.load(model)
    if kind == "apcg":
        trained.save(out, [model])
    else:
        raw = trained.to_onnx() if kind == "onnx" else trained.to_liblinear().encode()
        with replacing(out, [model]) as file:
            file.write(raw)
    if as_json:
        common.print_json({"model": str(model), "file": str(out), "format": kind})
    else:
        click.echo(f"{out}: {kind}, {trained.n_features:,} features")
