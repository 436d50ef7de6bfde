"""The constants of the adaptive method, in one record; each stands beside its idea."""

from __future__ import annotations

from dataclasses import dataclass

from .rate import RateTuning
from .resting import RestingTuning
from .settling import SettlingTuning
from .visits import VisitsTuning


@dataclass(frozen=True)
class AdaptiveTuning:
    """One record for each idea."""

    rate: RateTuning = RateTuning()
    visits: VisitsTuning = VisitsTuning()
    resting: RestingTuning = RestingTuning()
    settling: SettlingTuning = SettlingTuning()
