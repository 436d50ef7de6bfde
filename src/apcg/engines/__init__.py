"""Engines: where the shards of a problem live, and how a driver talks to all of them."""

from .base import LOSSES, Engine, Lost, NoWorkers
from .in_process import InProcess

__all__ = ["LOSSES", "Engine", "InProcess", "Lost", "NoWorkers"]
