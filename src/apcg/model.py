"""A trained linear model: labels to signs and back, predictions, and one safe file.

The file is an .npz of plain arrays, nothing pickled: the weights, the classes, and a JSON header
with everything else and a SHA-256 of the arrays and of itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from scipy.special import expit

from . import losses
from ._files import replacing
from ._types import Array, Stored
from ._validation import Vector
from .data import check_sparse
from .datasets import DataError

FORMAT = "apcg-model-1"


def encode_labels(y: Array | None) -> tuple[Vector, Array]:
    """(signs, classes): two classes of numbers or words to -1 and 1, the second is 1."""
    if y is None:
        raise DataError("the data has no labels.")
    classes = np.unique(y)
    if classes.size != 2:
        shown = ", ".join(str(c) for c in classes[:6].tolist()) + ", ..." * (classes.size > 6)
        cure = (
            'for real targets take a loss of residuals, such as --loss squared ("huber", '
            '"epsilon_insensitive")'
            if classes.size > 2
            else "one class cannot be told from another"
        )
        raise DataError(
            f"this loss needs labels of two classes, got {classes.size} ({shown}); {cure}."
        )
    return np.where(y == classes[1], 1.0, -1.0), classes


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

    w           the weights
    classes     the two labels, of margins < 0 and >= 0; None for a regression
    loss        the name of the loss it was trained with
    intercept   added to every a'w
    zero_based  whether the training file counted features from 0
    facts       how it was trained, and its certificate
    """

    w: Vector
    classes: Array | None
    loss: str
    intercept: float = 0.0
    zero_based: bool | None = None
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """The columns that X must have."""
        return int(self.w.size)

    def decision(self, X: Stored) -> Vector:
        """a'w + intercept for each row of X."""
        check_sparse(X, "X")
        if X.shape[1] != self.n_features:
            raise DataError(
                f"the data has {X.shape[1]} features, and the model was trained with "
                f"{self.n_features}. Is it the right file?"
            )
        return np.asarray(X @ self.w + self.intercept, dtype=float)

    def predict(self, X: Stored) -> Array:
        """The class of each row, or the predicted number."""
        z = self.decision(X)
        return z if self.classes is None else self.classes[(z >= 0).astype(int)]

    def probabilities(self, X: Stored) -> Vector:
        """The probability of the second class, for the logistic loss."""
        if self.loss != "logistic":
            raise DataError(
                f"a model of loss {self.loss!r} gives no probabilities; train with --loss logistic."
            )
        return np.asarray(expit(self.decision(X)))

    def score(self, X: Stored, y: Array | None) -> tuple[str, float]:
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

    def save(self, path: str | Path) -> None:
        """Write the file; what was there is replaced only when the new one is whole."""
        arrays: dict[str, Array] = {"w": self.w}
        if self.classes is not None:
            arrays["classes"] = self.classes
        header: dict[str, object] = {
            "format": FORMAT,
            **{k: v for k, v in asdict(self).items() if k not in ("w", "classes")},
            "digests": {k: _digest(a) for k, a in arrays.items()},
        }
        text = json.dumps(header, sort_keys=True)
        seal = hashlib.sha256(text.encode()).hexdigest()
        with replacing(path) as file:
            np.savez(file, **arrays, header=np.array(text), seal=np.array(seal))  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> LinearModel:
        """Read a file, or refuse it: cut short, changed, or not a model."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                parts = {key: archive[key] for key in archive.files}
            text = str(parts.pop("header")[()])
            sealed = hashlib.sha256(text.encode()).hexdigest() == str(parts.pop("seal")[()])
            header = json.loads(text)
            if header.pop("format") != FORMAT:
                raise ValueError("it was written by another version")
            if not sealed or header.pop("digests") != {k: _digest(a) for k, a in parts.items()}:
                raise ValueError("its contents do not match its checksums")
            model = cls(parts["w"], parts.get("classes"), **header)
            losses.by_name(model.loss)
        except (ValueError, KeyError, TypeError, OSError, EOFError, AttributeError,
                zipfile.BadZipFile, zlib.error, NotImplementedError) as error:  # fmt: skip
            raise DataError(
                f"{path} is not a sound model file ({error}): it was cut short, changed, or is "
                "something else. Make it again with `apcg train --model`."
            ) from None
        return model


def _digest(array: Array) -> str:
    told = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(told + np.ascontiguousarray(array).tobytes()).hexdigest()
