"""Dual runs for the tests, and the loop that drives them."""

import numpy as np

from apcg.certify.certificate import certify
from apcg.certify.points import Start
from apcg.methods.base import Budget, Target
from apcg.methods.dual.method import DualSweeps
from apcg.methods.dual.tuning import ONE, TuningOne

#: Logistic steps to the last digit, as the slower kernels take them.
EXACT = TuningOne(single=1e-5, enough=1e-7, easy=0.0)
MOMENTUM_AT_ONCE = TuningOne(patience=0.0, earliest=1)


def start(p, tol=1e-9, *, without=(), tuning=None, seed=0, **at):
    method = DualSweeps(without, tuning or ONE)
    return method.start(p, Start(**at), Target(tol), np.random.default_rng(seed))


def drive(p, run, max_passes=20_000, passes=0):
    """The loop: advance, certify, tell. Gives the certificate that ended it, and the passes."""
    while True:
        passes += run.advance(Budget(100)).passes
        found = certify(p, run.point())
        if found.relative <= run.estimates.tol:
            found = found if found.exact else certify(p, run.point().bare())
            if found.relative <= run.estimates.tol:
                return found, passes
        assert passes <= max_passes, f"not solved in {passes} passes: {found.relative:.1e}"
        run.seen(found)


def tolerance(p):
    return 1e-9 if p.loss.gamma > 0 else 1e-6
