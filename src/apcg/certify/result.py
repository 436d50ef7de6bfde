"""What a solver gives back: `Result` or `Solution`, a `Status` (why it ended), a `Trace`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base.validation import Vector
from .points import Certificate, Report

#: A gap is rounded by so much of |P| + |D|.
ROUNDING = 16 * 2.0**-52
#: How a user of `solve` goes on, and the words for that where the interface is another one.
_RESUME = "go on from this answer by x0"
_RESUME_BEST = "go on from it by x0"
_WORDS = {
    "estimator": {
        _RESUME: "fit again with warm_start=True",
        _RESUME_BEST: "fit again with warm_start=True to go on",
    },
    "search": {f", or {_RESUME}": "", f"; {_RESUME_BEST}": ""},
    "command": {
        f", or {_RESUME}": "",
        f"; {_RESUME_BEST}": "",
        "max_epochs": "--max-passes",
        "time_limit": "--time-limit",
        " tol": " --tol",
    },
}

_MESSAGES = {
    "max_epochs": f"stopped at max_epochs {{after}}. Raise max_epochs or tol, or {_RESUME}.",
    "time_limit": f"stopped at the time limit {{after}}. Raise time_limit or tol, or {_RESUME}.",
    "precision": "stopped as far as double precision goes, {after}: what is left is rounding "
    "error. Raise tol; the answer is as good as it gets.",
    "no_minimum": "there is no minimum: w separates the classes, and without a penalty the loss "
    "falls on as w grows. Stopped {after}. Take a penalty (alpha > 0, or a finite C).",
    "stuck": "stopped {after}: the method gets no further. Take another one, or scale the data.",
    "callback": "stopped by the callback {after}.",
    "interrupted": "interrupted by the user {after}. This is the best point seen; "
    f"{_RESUME_BEST}.",
    "non_finite": "stopped at a value that is not finite {after}. Look at the constants L (too "
    "small ones make the steps too long), at the scale of the data, and at value, gradient and "
    "prox of your own functions, if any. This is the best finite point seen.",
}


def passes_in_words(passes: int) -> str:
    """1 pass, 2 passes"""
    return f"{passes:,} pass{'es' * (passes != 1)}"


def gap_in_words(gap: float, digits: int = 2) -> str:
    """A gap, absolute or relative; one that is below 0 by rounding is 0."""
    return "0 to rounding" if -2 * ROUNDING <= gap < 0 else f"{gap:.{digits}e}"


class Status(str):
    """A message in words, with advice; `code` is the short name for programs.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, solve
    >>> X = np.array([[1.0, 0.2], [0.8, -0.5], [-1.0, 0.3], [-0.6, -0.4]])
    >>> r = solve(ERM(X, [1, 1, -1, -1], alpha=0.1), random_state=0)
    >>> r.status.code, r.status.converged
    ('converged', True)
    >>> str(r.status).startswith("converged after")
    True
    """

    code: str

    def __new__(cls, code: str, message: str) -> Status:
        self = super().__new__(cls, message)
        self.code = code
        return self

    @classmethod
    def of(
        cls, code: str, passes: int, measure: float, target: float, measured: str = "relative gap"
    ) -> Status:
        """The status of a run that ended after so many passes; `measured` names its measure."""
        after, at = f"after {passes_in_words(passes)}", f"{measured} {gap_in_words(measure)}"
        if code == "converged":
            return cls(code, f"converged {after}: {at} <= {target:.2e}.")
        return cls(code, _MESSAGES[code].format(after=f"{after}, at a {at} (wanted {target:.2e})"))

    def with_advice(self, advice: str) -> Status:
        """The same with a sentence more, if there is one."""
        return Status(self.code, f"{self} {advice}") if advice else self

    def told_to(self, interface: str) -> Status:
        """The same in the words of another interface: "estimator", "search" or "command"."""
        message = str(self)
        for word, other in _WORDS[interface].items():
            message = message.replace(word, other)
        return Status(self.code, message)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.code, str(self)

    @property
    def converged(self) -> bool:
        """Whether the tolerance that was asked for was reached."""
        return self.code == "converged"


class Trace:
    """A small columnar record, one row for each check: trace["fun"], trace.epoch, len(trace).

    `notes` are sentences: what `auto` chose, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, solve
    >>> X = np.array([[1.0, 0.2], [0.8, -0.5], [-1.0, 0.3], [-0.6, -0.4]])
    >>> r = solve(ERM(X, [1, 1, -1, -1], alpha=0.1), random_state=0)
    >>> len(r.trace) >= 1, bool(r.trace["gap"][-1] <= 1e-6 * r.primal)
    (True, True)
    """

    def __init__(self, *columns: str) -> None:
        self._names, self._rows = columns, list[tuple[float | str, ...]]()
        self.notes: list[str] = []

    def append(self, **row: float | str) -> None:
        """Add a row; it must have every column."""
        self._rows.append(tuple([row[name] for name in self._names]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._names

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            known = ", ".join(self._names)
            raise KeyError(f"the trace has no column {name!r}; it has {known}")
        place = self._names.index(name)
        return np.array([row[place] for row in self._rows])

    def last(self, name: str) -> Any:
        """The last entry of a column."""
        return self._rows[-1][self._names.index(name)]

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._names:
            known = ", ".join(self._names)
            raise AttributeError(f"the trace has no column {name!r}; it has {known}")
        return self[name]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def to_pandas(self) -> Any:
        """A pandas DataFrame of the record."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("Trace.to_pandas needs pandas: pip install 'apcg[plot]'.") from None
        return pd.DataFrame({name: self[name] for name in self._names})

    def plot(self, y: str | None = None, ax: Any = None) -> Any:
        """Draw column y against passes, by default the gap or the residual; return the axes."""
        from ..plots import convergence

        return convergence({"": self}, y or ("gap" if "gap" in self else "residual"), ax=ax)

    def __repr__(self) -> str:
        return f"Trace({len(self)} checks of {', '.join(self._names)})"


@dataclass(eq=False)
class Result:
    """The answer of `minimize`.

    Attributes
    ----------
    x : array
        The point that reached the tolerance, else the best point seen; in dom Psi.
    fun, residual : float
        F(x), and max_i L_i |x_i - T_i(x)|, what was compared with tol.
    status : Status
        Why it stopped, in words; `status.code` for programs.
    converged : bool
        Whether the residual reached the tolerance.
    epochs, seconds : int and float
        Passes over the sampled blocks, and wall time.
    trace : Trace
        The record of the checks.
    mu, gamma0, L, method : float, float, array and str
        The parameters of Algorithm 1 that were used, and the method.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import functions, minimize
    >>> r = minimize(functions.LeastSquares(np.eye(2), [1.0, 2.0]), random_state=0)
    >>> r.converged, r.x.round(4).tolist()
    (True, [1.0, 2.0])
    """

    x: Vector
    fun: float
    residual: float
    status: Status
    epochs: int
    seconds: float
    trace: Trace = field(repr=False)
    mu: float
    gamma0: float
    L: Vector = field(repr=False)
    method: str

    @property
    def converged(self) -> bool:
        """Whether the residual reached the tolerance."""
        return self.status.converged

    def __repr__(self) -> str:
        return (
            f"Result(fun={self.fun:.10g}, residual={self.residual:.2e}, epochs={self.epochs}, "
            f"method={self.method!r}, mu={self.mu:.3g}, x: {self.x.size} numbers)\n  {self.status}"
        )


@dataclass(eq=False)
class Solution:
    """The answer of `solve`: P(w*) is in [dual, primal].

    Attributes
    ----------
    w, x : array
        The primal point, and the dual point that certifies it.
    intercept : float
        b, if the problem has one, else 0.
    primal, dual, gap : float
        P(w), D(x) and their difference; the gap is 0 where it is negative by a rounding.
    status : Status
        Why it stopped, in words; `status.code` for programs.
    converged : bool
        Whether gap <= tol |primal|.
    epochs, seconds : int and float
        Passes over the data, and wall time.
    trace : Trace
        The record of the checks: epoch, seconds, primal, dual, gap, mu, restarts, and the method at
        work; `trace.notes` says what "auto" chose and why.
    method, side : str
        The method as it was asked for; "dual" or "primal", whose coordinates it moved.
    mu : float
        Of APCG, relative to |.|_L; with "auto" the last mu-hat, with "sdca" 1, "afg" nan.

    Examples
    --------
    >>> import numpy as np
    >>> from apcg import ERM, solve
    >>> X = np.array([[1.0, 0.2], [0.8, -0.5], [-1.0, 0.3], [-0.6, -0.4]])
    >>> r = solve(ERM(X, [1, 1, -1, -1], alpha=0.1), random_state=0)
    >>> r.converged, bool(r.dual <= r.primal), r.w.shape
    (True, True, (2,))
    """

    w: Vector
    x: Vector
    primal: float
    dual: float
    status: Status
    epochs: int
    seconds: float
    trace: Trace = field(repr=False)
    method: str
    side: str
    mu: float
    intercept: float = 0.0

    @property
    def gap(self) -> float:
        """P(w) - D(x), how far P(w) can be from the optimum; 0 if it is negative by rounding."""
        gap = self.primal - self.dual
        return 0.0 if -ROUNDING * (abs(self.primal) + abs(self.dual)) <= gap < 0 else gap

    @property
    def converged(self) -> bool:
        """Whether gap <= tol |primal|."""
        return self.status.converged

    def __repr__(self) -> str:
        return (
            f"Solution(primal={self.primal:.10g}, gap={self.gap:.2e}, epochs={self.epochs}, "
            f"method={self.method!r}, w: {self.w.size} numbers)\n  {self.status}"
        )


def answer(
    found: Certificate,
    status: Status,
    said: Report,
    method: str,
    epochs: int,
    seconds: float,
    trace: Trace | None = None,
) -> Solution:
    """The one place where a `Solution` is made. Without a trace it was looked at once."""
    if trace is None:
        trace = Trace("epoch", "seconds", "primal", "dual", "gap", "mu", "restarts", "method")
        trace.append(
            epoch=epochs, seconds=seconds, primal=found.primal, dual=found.dual, gap=found.gap,
            mu=said.mu, restarts=said.restarts, method=said.at_work,
        )  # fmt: skip
        trace.notes = list(said.notes)
    return Solution(
        found.w, found.x, found.primal, found.dual, status, epochs, seconds, trace, method,
        said.side, said.mu, found.b,
    )  # fmt: skip
