"""Models as LIBLINEAR writes and reads them: text, the weights of a feature a line.

solver_type says how the model was trained, and which rules its `predict` follows: MCSVM_CS has a
column of weights for each class, the other classifiers have one column for two classes; those of
logistic regression give probabilities. Labels are whole numbers, features count from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .._base.types import Array
from .._base.validation import Vector
from ..datasets import DataError

START = b"solver_type "
#: solver_type for each loss, with an L2 and with an L1 penalty. What LIBLINEAR does not have is
#: written as what predicts the same.
_TYPES = {
    "logistic": ("L2R_LR", "L1R_LR"),
    "hinge": ("L2R_L1LOSS_SVC_DUAL", "L2R_L1LOSS_SVC_DUAL"),
    "squared_hinge": ("L2R_L2LOSS_SVC", "L1R_L2LOSS_SVC"),
}
_LOSSES = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "MCSVM_CS": "multiclass_hinge",
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
}


class ModelWithFacts(Protocol):
    """What is asked of a model."""

    w: Vector
    classes: Array | None
    loss: str
    intercept: Any
    facts: Any


def text(model: ModelWithFacts) -> str:
    """The file of a model. Probabilities of the softmax are lost: LIBLINEAR has no such model."""
    w, b = np.atleast_2d(model.w.T).T, np.ravel(np.asarray(model.intercept, dtype=float))
    lines = [f"solver_type {_solver(model)}"]
    if model.classes is None:
        lines.append("nr_class 2")
    else:
        labels = _labels(model.classes)
        if w.shape[1] == 1:  # LIBLINEAR: positive decisions are of the first label
            labels = labels[::-1]
        lines += [f"nr_class {len(labels)}", f"label {' '.join(map(str, labels))}"]
    has_bias = bool(np.any(b))
    lines += [f"nr_feature {w.shape[0]}", f"bias {1 if has_bias else -1}", "w"]
    rows = np.vstack([w, np.broadcast_to(b, w.shape[1])]) if has_bias else w
    lines += [" ".join(f"{v:.17g}" for v in row) for row in rows.tolist()]
    return "\n".join(lines) + "\n"


def _solver(model: ModelWithFacts) -> str:
    if model.classes is None:
        return "L2R_L1LOSS_SVR_DUAL" if model.loss == "epsilon_insensitive" else "L2R_L2LOSS_SVR"
    if model.w.ndim == 2:
        return "MCSVM_CS"
    l1 = model.facts.get("penalty") == "l1" if isinstance(model.facts, dict) else False
    return _TYPES.get(model.loss, _TYPES["squared_hinge"])[l1]


def _labels(classes: Array) -> list[int]:
    if classes.dtype.kind not in "fiub" or np.any(classes != np.round(classes.astype(float))):
        shown = ", ".join(map(str, classes[:5].tolist()))
        raise DataError(
            f"a LIBLINEAR model has whole numbers as labels, and the classes are {shown}; train "
            "with labels that are whole numbers, or export to ONNX."
        )
    return [int(c) for c in classes.tolist()]


def read(raw: bytes) -> dict[str, Any]:
    """w, classes, loss, intercept and zero_based of a LIBLINEAR file, or a ValueError."""
    head, _, body = raw.decode("ascii").partition("\nw\n")
    said = {key: rest for key, _, rest in (line.partition(" ") for line in head.splitlines())}
    try:
        solver, d = said["solver_type"], int(said["nr_feature"])
        count, bias = int(said["nr_class"]), float(said["bias"])
        rows = [[float(v) for v in line.split()] for line in body.splitlines() if line.strip()]
    except (KeyError, ValueError) as error:
        raise ValueError(f"it is no whole LIBLINEAR model: {error}") from None
    if solver not in _LOSSES:
        raise ValueError(f"its solver_type {solver} is not one of {', '.join(_LOSSES)}")
    loss = _LOSSES[solver]
    one = "label" not in said or (count == 2 and solver != "MCSVM_CS")
    width = 1 if one else count
    if d < 1 or len(rows) != d + (bias >= 0) or any(len(row) != width for row in rows):
        raise ValueError(f"it should have {d + (bias >= 0)} rows of {width} weights, and has not")
    W = np.array(rows)
    b = bias * W[d] if bias >= 0 else np.zeros(width)
    if "label" not in said:
        return _made(W[:d, 0], None, loss, float(b[0]))
    labels = [float(v) for v in said["label"].split()]
    if len(labels) != count:
        raise ValueError(f"it says {count} classes and has {len(labels)} labels")
    return _classifier(W[:d], b, labels, loss)


def _classifier(W: Array, b: Vector, labels: Sequence[float], loss: str) -> dict[str, Any]:
    """Classes in order; one column of two classes turns round if its first label is the smaller."""
    classes = np.array(labels)
    if W.shape[1] == 1:
        sign = 1.0 if labels[0] > labels[1] else -1.0
        return _made(sign * W[:, 0], np.sort(classes), loss, float(sign * b[0]))
    order = np.argsort(classes)
    many = "multiclass_hinge"  # the largest decision wins, for one against the rest as well
    return _made(W[:, order], classes[order], many, b[order].tolist())


def _made(w: Array, classes: Array | None, loss: str, b: Any) -> dict[str, Any]:
    return {"w": np.ascontiguousarray(w), "classes": classes, "loss": loss, "intercept": b,
            "zero_based": False, "facts": {"from": "LIBLINEAR"}}  # fmt: skip
