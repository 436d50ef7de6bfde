"""A trained linear model: labels to signs and back, predictions, and one safe file.

The file is an .npz of plain arrays, nothing pickled: the weights, the classes, and a JSON header
with everything else and a SHA-256 of the arrays and of itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from .. import losses
from .._base.archive import BROKEN, Archive, is_zip
from .._base.files import replacing
from .._base.types import Array, Stored
from .._base.validation import Index, Vector
from ..data import Chunked, check_sparse
from ..data import Stored as InMemory
from ..datasets import DataError, Table
from . import liblinear, onnx

FORMAT = "apcg-model-1"


def _labels(y: Array | None) -> Array:
    """The labels of classes, if there are any, and numbers are finite."""
    if y is None or y.size == 0:
        raise DataError("the data has no labels." if y is None else "the data has no samples.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError("the data has labels that are not finite; remove those samples.")
    return y


def encode_labels(y: Array | None) -> tuple[Vector, Array]:
    """(signs, classes): two classes of numbers or words to -1 and 1, the second is 1."""
    classes = np.unique(_labels(y))
    if classes.size != 2:
        shown = ", ".join(str(c) for c in classes[:6].tolist()) + ", ..." * (classes.size > 6)
        cure = (
            "for many classes take --loss logistic (the softmax) or multiclass_hinge, for real "
            'targets a loss of residuals, such as --loss squared ("huber", "epsilon_insensitive")'
            if classes.size > 2
            else "one class cannot be told from another"
        )
        raise DataError(
            f"this loss needs labels of two classes, got {classes.size} ({shown}); {cure}."
        )
    return np.where(y == classes[1], 1.0, -1.0), classes


def encode_classes(y: Array | None) -> tuple[Index, Array]:
    """(codes, classes): labels of any number of classes, numbers or words, to 0..K-1."""
    classes, codes = np.unique(_labels(y), return_inverse=True)
    if classes.size < 2:
        raise DataError(f"all labels are {classes[0]}: one class cannot be told from another.")
    return codes, classes


def targets(y: Array | None) -> Vector:
    """Labels as real numbers, for a loss of residuals."""
    if y is None:
        raise DataError("the data has no labels.")
    if np.asarray(y).dtype.kind not in "fiub":
        raise DataError(
            "this loss needs labels that are numbers, got words; take a loss of margins, such as "
            "--loss logistic."
        )
    return np.asarray(y, dtype=float)


@dataclass(eq=False)
class LinearModel:
    """a'w + intercept: its sign tells the class, or it is the prediction.

    w           the weights; a loss over K classes has a column for each
    classes     the two labels, of margins < 0 and >= 0, or those of the columns; None for a
                regression
    loss        the name of the loss it was trained with
    intercept   added to every a'w; one for each of K classes
    zero_based  whether the training file counted features from 0
    facts       how it was trained, and its certificate
    table       the columns of the CSV or Parquet file that it was trained with, as a record
    """

    w: Vector
    classes: Array | None
    loss: str
    intercept: Any = 0.0
    zero_based: bool | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    table: Mapping[str, Any] | None = None

    @property
    def n_features(self) -> int:
        """The columns that X must have."""
        return int(self.w.shape[0])

    def decision(self, X: Stored | InMemory | Chunked) -> Vector:
        """a'w + intercept for each row of X."""
        check_sparse(X, "X")
        if X.shape[1] != self.n_features:
            raise DataError(
                f"the data has {X.shape[1]} features, and the model was trained with "
                f"{self.n_features}. Is it the right file?"
            )
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is shown as such
            z = X.times(self.w) if isinstance(X, InMemory | Chunked) else X @ self.w
            return np.asarray(z + np.asarray(self.intercept), dtype=float)

    def predict(self, X: Stored | InMemory | Chunked) -> Array:
        """The class of each row, or the predicted number."""
        return self.labels(self.decision(X))

    def labels(self, z: Vector) -> Array:
        """What is predicted where the decision is z."""
        if self.classes is None:
            return z
        found: Array = self.classes[z.argmax(axis=1) if z.ndim == 2 else (z >= 0).astype(int)]
        return found

    def probabilities(self, X: Stored | InMemory | Chunked) -> Vector:
        """The probability of the second class, or a row with that of each, for the softmax."""
        return self.shares(self.decision(X))

    def shares(self, z: Vector) -> Vector:
        """The probabilities where the decision is z."""
        if self.loss not in ("logistic", "multinomial"):
            raise DataError(
                f"a model of loss {self.loss!r} gives no probabilities; train with --loss logistic "
                "or multinomial."
            )
        return np.asarray(softmax(z, axis=1) if self.loss == "multinomial" else expit(z))

    def score(self, X: Stored | InMemory | Chunked, y: Array | None) -> tuple[str, float]:
        """("accuracy", share of right classes) or ("r2", coefficient of determination)."""
        if y is None:
            raise DataError("the test data has no labels.")
        if self.classes is not None:
            new = np.setdiff1d(y, self.classes)
            if new.size:
                shown = ", ".join(map(str, new[:5].tolist()))
                raise DataError(
                    f"the test data has labels that the training data has not: {shown}; the "
                    f"classes are {', '.join(map(str, self.classes.tolist()))}."
                )
            return "accuracy", float(np.mean(self.predict(X) == y))
        y = targets(y)
        spread = float(np.sum((y - y.mean()) ** 2))
        left = float(np.sum((y - self.predict(X)) ** 2))
        return "r2", 1 - left / spread if spread > 0 else float("nan")

    # ---- the file ---------------------------------------------------------------------------

    def save(self, path: str | Path, read: Iterable[str | Path] = ()) -> None:
        """Write the file; what was there is replaced only when the new one is whole.

        It is never one of the files `read`, such as the training data: that is an error.
        """
        arrays: dict[str, Array] = {"w": self.w}
        if self.classes is not None:
            arrays["classes"] = self.classes
        header: dict[str, object] = {
            "format": FORMAT,
            **{k: v for k, v in asdict(self).items() if k not in ("w", "classes")},
            "intercept": np.asarray(self.intercept).tolist(),
            "digests": {k: _digest(a) for k, a in arrays.items()},
        }
        text = json.dumps(header, sort_keys=True)
        seal = hashlib.sha256(text.encode()).hexdigest()
        with replacing(path, read) as file:
            np.savez(file, **arrays, header=np.array(text), seal=np.array(seal))  # type: ignore[arg-type]

    def to_onnx(self) -> bytes:
        """The model as an ONNX file, which `onnx` makes; see docs/serving.md."""
        return onnx.model_bytes(self)

    def to_liblinear(self) -> str:
        """The model as a file of LIBLINEAR; `load` reads one as well."""
        return liblinear.text(self)

    @classmethod
    def load(cls, path: str | Path) -> LinearModel:
        """Read a file of `save` or of LIBLINEAR, or refuse it: cut short, changed, or no model."""
        if not isinstance(path, str | Path):
            raise TypeError(f"path must be a path, got {path!r} of type {type(path).__name__}.")
        try:
            with Path(path).open("rb") as file:
                if file.peek(16).startswith(liblinear.START):
                    return cls(**liblinear.read(file.read()))
                return _read(cls, file)
        except BROKEN as error:
            if isinstance(error, OSError) and error.strerror:
                raise DataError(f"{str(path)[:200]} cannot be read: {error.strerror}.") from None
            raise DataError(
                f"{path} is not a sound model file ({error}): it was cut short, changed, or is "
                "something else. Make it again with `apcg train --model`."
            ) from None


#: The header is text: what a model was trained with. More than this is something else.
_HEADER_BYTES = 1 << 24


def _read(cls: type[LinearModel], file: io.BufferedReader) -> LinearModel:
    """The model of an opened file. The seal comes first; nothing is read that it does not name.

    The seal finds damage. Anybody can make one, so what it seals is looked at as well.
    """
    if not is_zip(file.peek(4)):
        raise ValueError("it does not begin as an .npz does")
    with Archive(file if file.seekable() else io.BytesIO(file.read()), stored=True) as archive:
        text = str(archive.read("header", _HEADER_BYTES)[()])
        if hashlib.sha256(text.encode()).hexdigest() != str(archive.read("seal", 1024)[()]):
            raise ValueError("its contents do not match its checksums")
        header = json.loads(text)
        if header.pop("format") != FORMAT:
            raise ValueError("it was written by another version")
        digests = header.pop("digests")
        if sorted(archive.names) != sorted([*digests, "header", "seal"]):
            raise ValueError(f"it has the parts {', '.join(archive.names)}")
        parts = {name: archive.read(name) for name in digests if name in ("w", "classes")}
        if digests != {name: _digest(part) for name, part in parts.items()}:
            raise ValueError("its contents do not match its checksums")
    model = cls(parts["w"], parts.get("classes"), **header)
    if isinstance(model.loss, str) and model.loss not in losses.names():
        raise ValueError(
            f"loss {model.loss[:40]!r} is not known here; if it is your own, name its module with "
            "--plugin"
        )
    _check(model)
    return model


def _check(model: LinearModel) -> None:
    """Refuse a model that is not one, whatever its seal says."""
    w, classes, b = model.w, model.classes, model.intercept
    loss = losses.by_name(model.loss if isinstance(model.loss, str) else "")
    many = isinstance(loss, losses.OutputsLoss)
    if w.ndim != 1 + many or w.size == 0 or w.dtype.kind != "f" or not np.isfinite(w).all():
        raise ValueError(f"w is no vector of finite numbers: {w.dtype} of shape {w.shape}")
    each = b if many and isinstance(b, list) and len(b) == w.shape[1] else [b]
    for number in each:
        bad = isinstance(number, bool) or not isinstance(number, int | float)
        if bad or not math.isfinite(number):
            raise ValueError(f"the intercept is {b!r}, and no finite number")
    if (many or loss.margin) != (classes is not None):
        raise ValueError(f"loss {model.loss!r} has {'' if many or loss.margin else 'no '}classes")
    count = w.shape[1] if many else 2
    if classes is not None and (
        count < 2
        or classes.shape != (count,)
        or classes.dtype.kind not in "fiubU"
        or np.unique(classes).size != count
    ):
        raise ValueError(f"its classes are not {count} different numbers or words")
    if classes is not None and classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ValueError("its classes are not finite")
    if not (model.zero_based is None or isinstance(model.zero_based, bool)):
        raise ValueError(f"zero_based is {model.zero_based!r}, not true, false or null")
    if model.table is not None and len(Table.of(model.table).features) != model.n_features:
        raise ValueError("its columns are not as many as its weights")
    if not isinstance(model.facts, dict):
        raise ValueError(f"facts is {type(model.facts).__name__}, not a record")


def _digest(array: Array) -> str:
    told = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(told + np.ascontiguousarray(array).tobytes()).hexdigest()
