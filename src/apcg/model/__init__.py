"""A trained linear model: labels to signs and back, predictions, its file, and those of others."""

from .linear import LinearModel, encode_classes, encode_labels, targets

__all__ = ["LinearModel", "encode_classes", "encode_labels", "targets"]
