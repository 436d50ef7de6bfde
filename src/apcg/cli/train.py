"""apcg train"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from .._base.files import check_target
from ..model import LinearModel
from . import common, source
from .fit import Settings, exit_code, facts_of, fit, settings_options, show
from .problem import ProblemOptions, problem_options, taken_for


@click.command(short_help="Train a linear model on DATA and certify it.")
@click.argument("data")
@source.column_options
@problem_options()
@click.option(
    "--alpha",
    type=common.POSITIVE,
    default=1e-4,
    show_default=True,
    help="The paper's lambda: mean loss + alpha g(w). For LIBLINEAR's C it is 1/(C n). `apcg cv` "
    "finds one.",
)
@settings_options
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
@source.memory
@common.as_json  # fmt: skip
def train(
    data: str,
    columns: source.TableColumns,
    problem: ProblemOptions,
    alpha: float,
    settings: Settings,
    time_limit: float | None,
    features: int | None,
    test_data: str | None,
    out: Path | None,
    memory: str | None,
    as_json: bool,
) -> int:
    """Train a linear model on DATA and certify it.

    Minimizes the mean loss plus alpha times the penalty, and prints a certificate: the optimum is
    between D and P, so P is at most the gap from it. Labels may be two numbers or words (the larger
    one is the positive class), those of many classes, or real numbers; without --loss they say
    which it is. Of CSV and Parquet files --target names the column with the labels; columns of
    words become a feature for each word.

    \b
    apcg train a9a --loss logistic --alpha 1e-6 --test a9a.t --model a9a.npz
    apcg train mine.libsvm.bz2 --loss squared_hinge --tol 1e-9 --json
    apcg train customers.csv --target left --drop id --class-weight balanced

    Ctrl-C keeps what there is: the model is written, and the certificate says how good it is.
    """
    read = [data, *([] if test_data is None else [test_data])]
    if out is not None:  # before the work, not after it
        check_target(out, read)
    found = source.load(data, columns, features=features, memory_limit=memory)
    test = None if test_data is None else source.load_like(test_data, found)
    read += [each.source for each in (found, test) if each is not None]  # the files of names
    if out is not None:
        check_target(out, read)
    made, classes = problem.make(found, alpha)
    loss = problem.name(found)
    if test is not None:  # what is wrong with the test data is said before the work
        shape = (made.d, made.K)[: 1 + (made.K > 1)]
        LinearModel(np.zeros(shape), classes, loss).score(test.X, test.y)
    if not as_json:  # now, for the rest may take long
        click.echo(f"data         {common.describe(found)}")
        why = taken_for(found, problem.loss, loss)
        click.echo(f"problem      {problem.words(loss)}, alpha = {alpha:g}{why}")
    model, trained = fit(found, problem, made, classes, settings, time_limit)
    if out is not None:
        model.save(out, read)
    facts = facts_of(model, trained, found, test, None if out is None else str(out))
    common.print_json(facts) if as_json else show(found, test, facts)
    return exit_code(trained)
