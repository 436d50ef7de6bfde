"""Pictures. matplotlib is imported here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .result import Trace

#: One colour and one line style a method, throughout; told apart in grey by style and shade. A
#: series has the style whose name its own begins with, the longest if there are several.
STYLES: dict[str, dict[str, Any]] = {
    "apcg": {"color": "#b2182b", "linestyle": "-", "linewidth": 2.2},
    "apcg, gamma0 = mu": {"color": "#e8743b", "linestyle": ":", "linewidth": 2.4},
    "apcg, mu = 0": {"color": "#7fb069", "linestyle": "-.", "linewidth": 1.8},
    "rpcg": {"color": "#0b3c68", "linestyle": (0, (5, 2)), "linewidth": 1.8},
    "auto": {"color": "#7b3294", "linestyle": (0, (1, 1)), "linewidth": 2.4},
    "sdca": {"color": "#0b3c68", "linestyle": (0, (5, 2)), "linewidth": 1.8},
    "afg": {"color": "#6b6b6b", "linestyle": "-.", "linewidth": 1.6},
}

LABELS = {
    "fun": "F(x)",
    "residual": "proximal-gradient residual",
    "suboptimality": "F(x) - F*",
    "gap": "duality gap P(w) - D(x)",
    "primal": "P(w)",
    "dual": "D(x)",
}


def convergence(
    traces: Mapping[str, Trace], y: str, ax: Any = None, *, optimum: float | None = None
) -> Any:
    """Draw column y of each trace against passes, on a logarithmic axis; return the axes.

    With `optimum`, y less the optimum is drawn.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Plots need matplotlib: pip install 'apcg[plot]'.") from None
    if ax is None:
        ax = Figure(figsize=(6, 4), layout="constrained").add_subplot()
    for name, trace in traces.items():
        values = np.asarray(trace[y], dtype=float) - (optimum or 0.0)
        style = STYLES.get(max(filter(name.startswith, STYLES), key=len, default=""), {})
        ax.plot(trace["epoch"], np.where(values > 0, values, np.nan), label=name or None, **style)
    ax.set_yscale("log")
    ax.set_xlabel("passes over the data")
    ax.set_ylabel(LABELS.get("suboptimality" if optimum is not None else y, y))
    ax.grid(visible=True, which="major", alpha=0.3)
    if any(traces):
        ax.legend(frameon=False)
    return ax
