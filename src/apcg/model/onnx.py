"""A model as ONNX, for any server of models: X in float32, labels and probabilities out.

The graph is a product with the weights and what follows from it: "label" (or "prediction" of a
regression), "decision", and for the logistic loss and the softmax "probabilities", a column for
each class.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

import numpy as np

from .._base.types import Array
from .._base.validation import Vector
from ..datasets import Table

#: The versions of operators and of the file that are asked for: servers of 2021 and later have it.
_OPSET, _IR = 13, 7


class ModelWithTable(Protocol):
    """What is asked of a model."""

    w: Vector
    classes: Array | None
    loss: str
    intercept: Any
    table: Any


def model_bytes(model: ModelWithTable) -> bytes:
    """The ONNX file of a model."""
    try:
        import onnx
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise ImportError("ONNX files are written by onnx: pip install 'apcg[onnx]'") from None
    graph = _Graph(model)
    d = model.w.shape[0]
    whole = helper.make_graph(
        graph.nodes,
        "apcg",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", d])],
        graph.outputs,
        graph.constants,
    )
    made = helper.make_model(
        whole, producer_name="apcg", opset_imports=[helper.make_opsetid("", _OPSET)]
    )
    made.ir_version = _IR
    told = {"loss": model.loss}
    if model.table is not None:
        told["features"] = json.dumps(Table.of(model.table).features)
    helper.set_model_props(made, told)
    checker.check_model(made)
    raw: bytes = made.SerializeToString()
    del onnx
    return raw


class _Graph:
    """Nodes, constants and outputs."""

    def __init__(self, model: ModelWithTable) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []
        W, b = np.atleast_2d(model.w.T).T, np.ravel(model.intercept)
        self._constant("W", W.astype(np.float32))
        self._constant("b", np.broadcast_to(b, W.shape[1]).astype(np.float32))
        self._node("MatMul", ["X", "W"], "product")
        if model.classes is None:
            self._node("Add", ["product", "b"], "column")
            self._flat("column", "prediction")
            self._output("prediction", np.dtype(np.float32))
        elif W.shape[1] == 1:
            self._two(model.classes, model.loss)
        else:
            self._many(model.classes, model.loss)

    def _two(self, classes: Array, loss: str) -> None:
        self._node("Add", ["product", "b"], "column")
        self._flat("column", "decision")
        self._constant("zero", np.zeros(1, dtype=np.float32))
        self._node("GreaterOrEqual", ["decision", "zero"], "positive")
        self._node("Cast", ["positive"], "number", to=7)  # int64
        self._label(classes)
        self._output("decision", np.dtype(np.float32))
        if loss == "logistic":
            self._node("Sigmoid", ["column"], "second")
            self._node("Neg", ["column"], "turned")
            self._node("Sigmoid", ["turned"], "first")
            self._node("Concat", ["first", "second"], "probabilities", axis=1)
            self._output("probabilities", np.dtype(np.float32), 2)

    def _many(self, classes: Array, loss: str) -> None:
        self._node("Add", ["product", "b"], "decision")
        self._node("ArgMax", ["decision"], "number", axis=1, keepdims=0)
        self._label(classes)
        self._output("decision", np.dtype(np.float32), len(classes))
        if loss == "multinomial":
            self._node("Softmax", ["decision"], "probabilities", axis=1)
            self._output("probabilities", np.dtype(np.float32), len(classes))

    def _label(self, classes: Array) -> None:
        if classes.dtype.kind == "U":
            values = classes.astype(object)
        elif np.all(classes == np.round(classes.astype(float))):
            values = classes.astype(np.int64)
        else:
            values = classes.astype(np.float32)
        self._constant("classes", values)
        self._node("Gather", ["classes", "number"], "label", axis=0)
        self._output("label", values.dtype)

    def _flat(self, name: str, out: str) -> None:
        self._constant("flat", np.array([-1], dtype=np.int64))
        self._node("Reshape", [name, "flat"], out)

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))

    def _constant(self, name: str, values: Array) -> None:
        from onnx import TensorProto, helper, numpy_helper

        if values.dtype == object:
            words = [str(v).encode() for v in values.tolist()]
            made = helper.make_tensor(name, TensorProto.STRING, values.shape, words)
        else:
            made = numpy_helper.from_array(np.ascontiguousarray(values), name)
        self.constants.append(made)

    def _output(self, name: str, dtype: np.dtype[Any], columns: int | None = None) -> None:
        from onnx import TensorProto, helper

        kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "O": TensorProto.STRING}
        shape = ["n"] if columns is None else ["n", columns]
        self.outputs.append(helper.make_tensor_value_info(name, kinds[dtype.kind], shape))
