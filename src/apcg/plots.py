"""Pictures. matplotlib is imported here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Required, TypedDict

import numpy as np

from ._base.types import Array
from ._base.validation import Vector
from .certify.result import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Style(TypedDict, total=False):
    """How a line is drawn, in the words of matplotlib."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    linewidth: float
    marker: str
    markersize: float
    markevery: tuple[int, int]
    label: str


class Panel(TypedDict, total=False):
    """The arguments of `convergence` for one of the axes of a figure."""

    traces: Required[Mapping[str, Trace]]
    y: Required[str]
    x: str
    optimum: float | None
    bound: Callable[[Vector], Array] | None
    log_x: bool


#: One colour, line style and marker a method, throughout; told apart in grey by style, marker and
#: shade. A series has the style whose name its own begins with, the longest if there are several.
STYLES: dict[str, Style] = {
    "apcg": {"color": "#b2182b", "linestyle": "-", "linewidth": 2.0, "marker": "o"},
    "apcg, gamma0 = mu": {"color": "#e8743b", "linestyle": ":", "linewidth": 2.4, "marker": "v"},
    "apcg, mu = 0": {"color": "#7fb069", "linestyle": "-.", "linewidth": 1.8, "marker": "D"},
    "rpcg": {"color": "#0b3c68", "linestyle": (0, (5, 2)), "linewidth": 1.8, "marker": "s"},
    "auto": {"color": "#7b3294", "linestyle": (0, (1, 1)), "linewidth": 2.2, "marker": "*"},
    "sdca": {"color": "#0b3c68", "linestyle": (0, (5, 2)), "linewidth": 1.8, "marker": "s"},
    "newton": {"color": "#1b7837", "linestyle": (0, (3, 1, 1, 1)), "linewidth": 1.8, "marker": "P"},
    "afg": {"color": "#777777", "linestyle": "-.", "linewidth": 1.6, "marker": "^"},
    "sag": {"color": "#d98c00", "linestyle": (0, (7, 1, 1, 1)), "linewidth": 1.6, "marker": "X"},
    "svrg": {"color": "#2a9d8f", "linestyle": (0, (2, 2)), "linewidth": 1.8, "marker": "<"},
    "accelerated_sdca": {
        "color": "#4a90d9",
        "linestyle": (0, (5, 1, 2, 1)),
        "linewidth": 1.8,
        "marker": "p",
    },
}
BOUND: Style = {
    "color": "#222222",
    "linestyle": "--",
    "linewidth": 1.0,
    "label": "Theorem 2, bound of D* - D",
}
#: Markers on a curve.
MARKERS = 8

NAMES = {
    "auto": "auto",
    "apcg": "APCG",
    "sdca": "SDCA",
    "afg": "AFG",
    "newton": "Newton",
    "sag": "SAG",
    "svrg": "SVRG",
    "accelerated_sdca": "acc. SDCA",
}
LABELS = {
    "fun": "F(x)",
    "residual": "proximal-gradient residual",
    "suboptimality": "F(x) - F*",
    "gap": "duality gap P(w) - D(x)",
    "primal": "P(w)",
    "primal error": "P(w) - P*",
    "dual": "D(x)",
    "epoch": "passes over the data",
    "seconds": "time (seconds)",
}


def convergence(
    traces: Mapping[str, Trace],
    y: str,
    ax: Axes | None = None,
    *,
    x: str = "epoch",
    optimum: float | None = None,
    bound: Callable[[Vector], Array] | None = None,
    log_x: bool = False,
    legend: bool = True,
) -> Axes:
    """Draw column y of each trace against passes, on a logarithmic axis; return the axes.

    With `optimum`, y less the optimum is drawn. `x` may be "seconds". `bound` is a function of an
    array of passes, such as that of Theorem 2 (`theory.dual_bound`), drawn dashed. `log_x` is for
    methods of very different speeds.
    """
    if ax is None:
        ax = new_figure(6, 4).add_subplot()
    for name, trace in traces.items():
        values = np.asarray(trace[y], dtype=float) - (optimum or 0.0)
        label = NAMES.get(name, name) or None
        shown = np.where(values > 0, values, np.nan)
        ax.plot(trace[x], shown, label=label, **_style(name, len(trace)))
    ax.set_yscale("log")
    if log_x:
        ax.set_xscale("log")
    if bound is not None:
        _draw_bound(ax, bound)
    ax.set_xlabel(LABELS.get(x, x))
    kind = y if optimum is None else "primal error" if y == "primal" else "suboptimality"
    ax.set_ylabel(LABELS.get(kind, kind))
    ax.grid(visible=True, which="major", alpha=0.3)
    if legend and any(traces):
        ax.legend(frameon=False)
    return ax


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Panel],
    title: str = "",
) -> Figure:
    """A figure of panels; a cell has the arguments of `convergence` for its row and column."""
    size = (3.1 * len(columns) + 0.6, 2.3 * len(rows) + 0.8)
    figure = new_figure(*size)
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            ax = axes[i, j]
            if (row, column) in cells:
                convergence(ax=ax, legend=False, **cells[row, column])
            else:
                ax.text(0.5, 0.5, "not run", ha="center", transform=ax.transAxes)
                ax.set_yticks([])
            if i == 0:
                ax.set_title(column, fontsize=11)
            ax.set_ylabel(f"{row}\n{ax.get_ylabel()}".strip() if j == 0 else "")
    for above, below in zip(axes[:-1].flat, axes[1:].flat, strict=True):
        if above.get_xlabel() == below.get_xlabel():
            above.set_xlabel("")
    entries = {
        label: line
        for ax in axes.flat
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if entries:
        side_by_side = min(5, 2 * len(columns))
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside lower center",
            ncols=side_by_side,
            frameon=False,
        )
    if title:
        figure.suptitle(title)
    return figure


def scores(
    alphas: Vector, means: Vector, errors: Vector, marks: Mapping[str, float], measure: str
) -> Figure:
    """Scores of cross-validation against alpha, with their standard errors, and alphas by name."""
    figure = new_figure(5.6, 3.6)
    ax = figure.add_subplot()
    order = np.argsort(alphas)
    ax.errorbar(alphas[order], means[order], errors[order], color="#0b3c68", marker="o",
                markersize=4, capsize=2, linewidth=1.4)  # fmt: skip
    for (name, alpha), style in zip(marks.items(), ("-", "--"), strict=False):
        ax.axvline(alpha, color="#b2182b", linestyle=style, linewidth=1.0, label=name)
    ax.set_xscale("log")
    ax.set_xlabel("alpha")
    ax.set_ylabel(f"{measure} on held-out folds")
    ax.legend()
    return figure


def lambda_label(alpha: float) -> str:
    """λ = 10^-6, as a label."""
    exponent = round(math.log10(alpha))
    if math.isclose(alpha, 10.0**exponent):
        return rf"$\lambda = 10^{{{exponent}}}$"
    return rf"$\lambda$ = {alpha:g}"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, independent of any window system."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Plots need matplotlib: pip install 'apcg[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


def _style(name: str, points: int) -> Style:
    style: Style = STYLES.get(max(filter(name.startswith, STYLES), key=len, default=""), {})
    if "marker" not in style:
        return style
    every = max(1, points // MARKERS)
    # curves that lie on each other show their markers at different places
    start = list(STYLES).index(name) * every // len(STYLES) if name in STYLES else 0
    return {**style, "markersize": 4.5, "markevery": (start, every)}


def _draw_bound(ax: Axes, bound: Callable[[Vector], Array]) -> None:
    """Over the passes that are drawn, without changing the range of the axes."""
    xlim, ylim = ax.get_xlim(), ax.get_ylim()
    passes = np.geomspace(max(xlim[0], 1e-2), xlim[1], 200)
    ax.plot(passes, bound(passes), **BOUND)
    ax.set_xlim(xlim)
    ax.set_ylim(ylim)
