"""apcg convert"""

from __future__ import annotations

import time
from pathlib import Path

import click

from .. import datasets
from . import common, source


@click.command(short_help="Write DATA to a folder that is read part by part.")
@click.argument("data")
@click.argument("out", type=click.Path(path_type=Path))
@source.column_options
@click.option(
    "--features",
    type=click.IntRange(1, 2**31 - 1),
    help="Features, if DATA happens not to have the last ones.",
)
@click.option(
    "--float32", is_flag=True, help="Numbers of 4 bytes: two thirds of the room, 7 digits."
)
@common.as_json  # fmt: skip
def convert(
    data: str,
    out: Path,
    columns: source.TableColumns,
    features: int | None,
    float32: bool,
    as_json: bool,
) -> None:
    """Write DATA, of any size, to the folder OUT, which `train` and `predict` read part by part.

    A folder need not fit into memory: `apcg train OUT --memory 300MB`. OUT is whole or not there:
    a conversion that is interrupted leaves nothing, and starts from the beginning the next time.

    \b
    apcg convert huge.libsvm.gz huge.apcg --float32
    zcat part*.gz | apcg convert - huge.apcg
    apcg convert huge.parquet huge.apcg --target y
    """
    begin, said = time.monotonic(), time.monotonic()

    def tell(n: int) -> None:
        nonlocal said
        if common.on_terminal() and time.monotonic() - said > 1:
            said = time.monotonic()
            click.echo(f"\r{n:,} rows", nl=False, err=True)

    dtype = "float32" if float32 else "float64"
    header = datasets.convert(
        data, out, n_features=features, dtype=dtype, tell=tell, target_column=columns.target,
        drop=columns.drop, categorical=columns.categorical,
    )  # fmt: skip
    seconds, (n, d) = time.monotonic() - begin, header.shape
    size = sum(file.bytes for file in header.files.values())
    if as_json:
        common.print_json(
            {"folder": str(out), "source": data, "n": n, "d": d, "stored": header.stored,
             "bytes": size, "parts": len(header.parts), "seconds": seconds}
        )  # fmt: skip
        return
    click.echo(
        f"{out}: {n:,} samples, {d:,} features, {header.stored:,} numbers stored; "
        f"{size / 1e6:,.1f} MB in {len(header.parts):,} parts, {seconds:.1f} s"
    )
