"""Accelerated SDCA, which lives in `apcg.methods.literature`."""

from .literature.accelerated_sdca import AcceleratedDualAscent

__all__ = ["AcceleratedDualAscent"]
