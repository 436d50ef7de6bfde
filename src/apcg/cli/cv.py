"""apcg cv"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import click
import numpy as np

from .. import losses, plots
from .._base import files
from ..data import Chunked, views
from ..data import Stored as InMemory
from ..datasets import DataError, Dataset
from . import common, source
from .fit import MEASURES, Settings, exit_code, facts_of, fit, settings_options, show
from .problem import ProblemOptions, problem_options, taken_for


class AlphaRow(TypedDict):
    """One alpha: the mean of its scores over the folds, and how sure that is."""

    alpha: float
    score: float
    standard_error: float
    scores: list[float]


class CrossValidation(TypedDict):
    """What was found. `one_standard_error` is the largest alpha that is as good as the best."""

    measure: str
    folds: int
    alphas: list[AlphaRow]
    best: float
    one_standard_error: float


@click.command(short_help="Choose alpha by cross-validation on DATA.")
@click.argument("data")
@source.column_options
@problem_options()
@click.option(
    "--alphas",
    type=common.NumberList(),
    help="The alphas to try, with commas between them; without it, 15 from 1 to 1e-6.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Parts that DATA is cut into.",
)
@click.option(
    "--one-se",
    is_flag=True,
    help="Take the largest alpha whose score is within one standard error of the best.",
)
@settings_options
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True,
              help="Threads for the folds.")  # fmt: skip
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the scores here: a .png, .pdf or .svg file.",
)
@click.option(
    "--model",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Train with the alpha that was chosen, and write the model here.",
)
@source.memory
@common.as_json  # fmt: skip
def cv(
    data: str,
    columns: source.TableColumns,
    problem: ProblemOptions,
    alphas: tuple[float, ...] | None,
    folds: int,
    one_se: bool,
    settings: Settings,
    jobs: int,
    plot: Path | None,
    out: Path | None,
    memory: str | None,
    as_json: bool,
) -> int:
    """Choose alpha by cross-validation on DATA: the accuracy, or R^2, of each alpha.

    DATA is cut into folds, and each is predicted by models that are trained on the others. The
    standard error says how far the mean over the folds can be trusted. Scores of alphas that are
    clearly not the best are those of coarse solutions.

    \b
    apcg cv a9a --loss logistic --model a9a.npz
    apcg cv customers.csv --target left --one-se --plot scores.png
    """
    for path in filter(None, (out, plot)):  # before the work, not after it
        files.check_target(path, [data])
    found = source.load(data, columns, memory_limit=memory)
    made, classes = problem.make(found, 1.0)
    loss = problem.name(found)
    if not as_json:
        click.echo(f"data         {common.describe(found)}")
        click.echo(
            f"problem      {problem.words(loss)}, {folds} folds"
            f"{taken_for(found, problem.loss, loss)}"
        )
    with common.working("cross-validation"):
        search = _search(found, problem, classes, alphas, folds, settings, jobs)
    alpha = search["one_standard_error"] if one_se else search["best"]
    written = None if plot is None else _draw(search, plot, [data, found.source])
    if not as_json:
        _show(search, one_se)
        if written:
            click.echo(f"plot         {written}")
    facts: dict[str, Any] = {"data": common.origin(found), "loss": loss, **search, "alpha": alpha,
                             "plot": written}  # fmt: skip
    code = 0
    if out is not None:
        model, trained = fit(found, problem, made.with_alpha(alpha), classes, settings)
        model.save(out, [data, found.source])
        facts["trained"] = facts_of(model, trained, found, None, str(out))
        code = exit_code(trained)
        if not as_json:
            show(found, None, facts["trained"])
    if as_json:
        common.print_json(facts)
    return code


def _search(
    data: Dataset,
    problem: ProblemOptions,
    classes: Any,
    alphas: tuple[float, ...] | None,
    folds: int,
    settings: Settings,
    jobs: int,
) -> CrossValidation:
    """Cross-validation by the estimators."""
    from ..estimators import APCGClassifierCV, APCGRegressorCV

    X = data.X
    if isinstance(X, Chunked):
        raise DataError(
            f"{data.name} does not fit into the memory that is given, and cross-validation needs "
            "it there; raise --memory, or choose alpha on a part of the data."
        )
    if isinstance(X, InMemory):
        X = X.view(views.whole)
    name = problem.name(data)
    rest: dict[str, Any] = {
        "penalty": problem.penalty, "alphas": 15 if alphas is None else list(alphas),
        "l1_ratio": problem.ratio(), "positive": problem.positive,
        "fit_intercept": problem.intercept, "cv": folds, "tol": settings.tol,
        "max_epochs": settings.max_passes, "method": settings.method,
        "random_state": settings.seed, "n_jobs": jobs,
    }  # fmt: skip
    estimator: Any
    if classes is None:
        estimator, measure = APCGRegressorCV(problem.loss_of(name), **rest), "r2"
    else:
        if problem.class_weight is not None:
            rest["class_weight"] = problem.weights_of(data.y, classes)
        loss, mode = _of_classes(problem.loss_of(name))
        estimator, measure = APCGClassifierCV(loss, multi_class=mode, **rest), "accuracy"
    estimator.fit(X, data.y)
    return _summary(estimator.alphas_, estimator.scores_, estimator.alpha_, measure)


def _of_classes(loss: Any) -> tuple[Any, str]:
    """loss and multi_class of the estimator."""
    if isinstance(loss, losses.Multinomial):
        return losses.Logistic(), "multinomial"
    if isinstance(loss, losses.MulticlassHinge):  # with two classes, the same loss
        one = losses.SmoothedHinge(2 * loss.gamma) if loss.gamma else losses.Hinge()
        return one, "crammer_singer"
    if isinstance(loss, losses.OutputsLoss):
        raise DataError(f"cross-validation does not know the loss {loss.name!r} of many classes.")
    return loss, "auto"


def _summary(alphas: Any, scores: Any, best: float, measure: str) -> CrossValidation:
    """The table, and the largest alpha within one standard error of the best."""
    means = scores.mean(axis=1)
    errors = scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    k = int(np.flatnonzero(alphas == best)[0])
    good = alphas[means >= means[k] - errors[k]]
    rows: list[AlphaRow] = [
        {"alpha": float(a), "score": float(m), "standard_error": float(e), "scores": s.tolist()}
        for a, m, e, s in zip(alphas, means, errors, scores, strict=True)
    ]
    return {"measure": measure, "folds": scores.shape[1], "alphas": rows, "best": float(best),
            "one_standard_error": float(good.max())}  # fmt: skip


def _show(search: CrossValidation, one_se: bool) -> None:
    marks = {search["best"]: "best"}
    if search["one_standard_error"] != search["best"]:
        marks[search["one_standard_error"]] = "one standard error"
    chosen = search["one_standard_error"] if one_se else search["best"]
    marks[chosen] = f"{marks[chosen]}, chosen"
    head = ["alpha", MEASURES[search["measure"]], "standard error"]
    rows = [
        [f"{row['alpha']:.3g}", f"{row['score']:.4f}", f"{row['standard_error']:.4f}"]
        for row in search["alphas"]
    ]
    first, *lines = common.table(head, rows).splitlines()
    named = [marks.get(row["alpha"], "") for row in search["alphas"]]
    lines = [f"{line}  {mark}".rstrip() for line, mark in zip(lines, named, strict=True)]
    click.echo("\n" + "\n".join([first, *lines]) + "\n")
    click.echo(f"chosen       --alpha {chosen!r}")


def _draw(search: CrossValidation, path: Path, read: list[str]) -> str | None:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "pdf", "svg"):
        raise click.UsageError(f"--plot must be a .png, .pdf or .svg file, got {path.name!r}.")
    rows = search["alphas"]
    try:
        figure = plots.scores(
            np.array([row["alpha"] for row in rows]),
            np.array([row["score"] for row in rows]),
            np.array([row["standard_error"] for row in rows]),
            {"best": search["best"], "one standard error": search["one_standard_error"]},
            MEASURES[search["measure"]],
        )
    except ImportError as error:
        click.echo(f"no plot: {error}", err=True)
        return None
    return str(files.save_figure(figure, path.with_suffix(""), (path.suffix[1:],), read)[0])
