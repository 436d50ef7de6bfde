"""Problems solved by every method that fits, each certificate computed again: the fuzzer itself.

P and D are computed here from w, x and b in extended precision, by their definition, with the
conjugates written out: nothing of the library is used for it.
"""

from __future__ import annotations

import signal
import traceback
import warnings
from collections import Counter
from functools import partial

import numpy as np
import scipy.sparse as sp
from one_output import LONG, random_case

from apcg import path, solve
from apcg.certify.points import Start
from apcg.methods import registry

#: CPU seconds after which a solve counts as hanging.
PATIENCE = 20.0


class Hangs(BaseException):
    """A solve took longer than PATIENCE."""


def _alarm(signum, frame):
    raise Hangs


def frozen(case, x0):
    """The bytes of everything that was given."""
    X = case.X
    names = ("data", "indices", "indptr", "row", "col")
    parts = [getattr(X, k) for k in names if hasattr(X, k)] if sp.issparse(X) else [X]
    parts += [case.y] + ([] if case.sample_weight is None else [case.sample_weight])
    if isinstance(x0, np.ndarray):
        parts.append(x0)
    elif x0 is not None:
        parts += [v for v in (x0.x, x0.w) if v is not None]
    return [v.tobytes() for v in parts]


def random_point(rng, problem):
    """A dual feasible x, and a w within its bounds."""
    if problem.K == 1:
        low, high = (float(np.clip(v, -2, 2)) for v in problem.loss.domain)
        x = problem.weights * rng.uniform(low, high, problem.n_samples)
        return x, problem.g.clip(rng.standard_normal(problem.d) * 10 ** rng.uniform(-3, 1))
    x = problem.into_domain(rng.standard_normal((problem.n_samples, problem.K)))
    w = rng.standard_normal((problem.d, problem.K)) * 10 ** rng.uniform(-3, 1)
    return x, problem.g.clip(w)


def random_start(rng, problem, name, before):
    """None, an earlier solution, an array, or a Start with any of its parts."""
    kind = rng.random()
    if kind < 0.6:
        return None
    if kind < 0.75:
        return before[rng.integers(len(before))] if before else None
    x, w = random_point(rng, problem)
    if kind < 0.85:
        side = getattr(
            registry.find(name, problem), "side", "dual" if problem.dual_form else "primal"
        )
        return x if side == "dual" else w
    b = rng.standard_normal(problem.K) if problem.intercept and rng.random() < 0.5 else None
    if b is not None and problem.K == 1:
        b = float(b[0])
    side = [None, "dual", "primal"][rng.integers(3)]
    take = rng.integers(3)
    return Start(x if take != 1 else None, w if take != 0 else None, b, None, side)


class Fuzz:
    """The problems solved so far, and what was wrong with them."""

    #: whether a problem that ERM took and `solve` refuses is wrong
    refusals = True

    def __init__(self, only, make=random_case):
        self.only, self.make = only, make
        self.problems = self.solves = self.converged = 0
        self.kinds, self.refused, self.by_method = Counter(), Counter(), Counter()

    def said(self):
        """What else there is to say at the end."""
        return ""

    def wrong(self, kind, seed, text):
        self.kinds[kind] += 1
        print(f"seed {seed}: {kind}: {text}", flush=True)

    def problem(self, seed):
        rng = np.random.default_rng(seed)
        case = self.make(rng)
        try:
            problem = case.problem()
        except ValueError as error:
            self.refused[str(error)[:60]] += 1
            return
        self.problems += 1
        tol = float(10 ** rng.uniform(-12, -2)) if rng.random() < 0.95 else 0.0
        every = [None, None, 1, 7][rng.integers(4)]
        epochs = int(rng.choice([0, 1, 5, 40, 400, 400, 400]))
        options = {"tol": tol, "max_epochs": epochs, "check_every": every, "random_state": seed}
        about = f"{problem!r}, intercept={case.intercept}, tol={tol:.1e}, {epochs=}, {every=}"
        before, lowest, highest = [], [], []
        for name in registry.fitting(problem):
            x0 = random_start(rng, problem, name, before)
            if self.only and name not in self.only:
                continue
            r = self.solve(case, problem, name, seed, x0, options, about)
            if r is None:
                continue
            before.append(r)
            P, D, room = self.check(case, r, tol, case.alpha, seed, f"{name} of {about}", x0)
            lowest.append((P + room, name))
            if D is not None:
                highest.append((D - room, name))
        if lowest and highest and min(lowest)[0] < max(highest)[0] * (1 - 1e-15):
            self.wrong("P below D", seed, f"{min(lowest)} {max(highest)} of {about}")
        if before and rng.random() < 0.1:
            self.path(case, problem, seed, rng, options, about)

    def guarded(self, call, seed, text):
        """What `call` gives, or None; anything but a ValueError is wrong."""
        before = signal.signal(signal.SIGPROF, _alarm)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return call()
        except Hangs:
            self.wrong("hangs", seed, text)
        except ValueError as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            if self.refusals:
                self.wrong("refused", seed, f"{text}: {error}")
        except Exception as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.wrong(
                type(error).__name__, seed, f"{text}: {error} at {where.filename}:{where.lineno}"
            )
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
        return None

    def solve(self, case, problem, name, seed, x0, options, about):
        start = "" if x0 is None else f", x0={type(x0).__name__}"
        named = getattr(name, "name", name)
        text = f"{named} of {about}{start}"
        given = frozen(case, x0)
        r = self.guarded(lambda: solve(problem, name, x0=x0, **options), seed, text)
        if r is None:
            return None
        self.solves += 1
        self.converged += r.converged
        self.by_method[named] += 1
        if frozen(case, x0) != given:
            self.wrong("input changed", seed, text)
        if seed % 10 == 0:
            again = self.guarded(lambda: solve(case.problem(), name, x0=x0, **options), seed, text)
            same = again is not None and all(
                np.array_equal(getattr(r, k), getattr(again, k), equal_nan=True)
                for k in ("w", "x", "primal", "dual", "epochs", "intercept")
            )
            if not same:
                self.wrong("not the same again", seed, text)
        return r

    def path(self, case, problem, seed, rng, options, about):
        if problem.penalty == "none":
            return
        alphas = 10 ** rng.uniform(-6, 1, 4)
        for name in registry.fitting(problem):
            text = f"path by {name} of {about}"
            call = partial(path, problem, alphas, name, **options)
            found = self.guarded(call, seed, text)
            for alpha, r in zip(alphas, found or [], strict=False):
                self.solves += 1
                self.check(case, r, options["tol"], alpha, seed, f"{text}, alpha={alpha}")

    def check(self, case, r, tol, alpha, seed, text, x0=None):
        text += f", {r.status.code}" + ("" if x0 is None else f", x0={type(x0).__name__}")
        with np.errstate(over="ignore"):
            P, D, room = case.values(r.w, r.x, r.intercept, alpha)
        room *= 64
        if not case.intercept and np.any(r.intercept != 0):
            self.wrong("intercept", seed, text)
        if D is None:
            self.wrong("x not feasible", seed, f"{text}, dual={r.dual}")
        if not (np.isfinite(r.primal) and np.isfinite(r.dual)):
            self.wrong("not finite", seed, f"{text}: P={r.primal} D={r.dual}")
            return P, D, room
        if not abs(P - r.primal) <= room:
            self.wrong("primal", seed, f"{text}: {r.primal} is {P}, room {float(room):.1e}")
        # D may be stated with a bound on its rounding, which leaves the gap within the tolerance
        bound = room + (tol * abs(P) if r.converged and r.gap <= tol * abs(r.primal) else 0.0)
        if D is not None and not -room <= D - r.dual <= bound:
            self.wrong("dual", seed, f"{text}: {r.dual} is {D}, room {float(room):.1e}")
        if D is not None and r.converged and not tol * abs(P) + room >= P - D:
            self.wrong("not converged", seed, f"{text}: gap {float((P - D) / abs(P)):.2e}")
        if r.gap < -room:
            self.wrong("negative gap", seed, f"{text}: {r.gap}, room {float(room):.1e}")
        if not r.converged and r.gap <= tol * abs(r.primal) and r.status.code != "callback":
            self.wrong("converged but not said", seed, f"{text}: gap {r.gap:.2e} P {r.primal}")
        if r.status.code == "precision" and self.blames_rounding(case, r, room):
            self.wrong("rounding is blamed", seed, f"{text}: gap {r.gap:.2e} P {r.primal}")
        if r.status.code == "max_epochs" and r.epochs < case_epochs(text):
            self.wrong("epochs", seed, f"{text}: stopped after {r.epochs}")
        return P, D, room

    def blames_rounding(self, case, r, room):
        """Whether the gap is more than rounding can make of it, of P(0) as well."""
        room += 64 * np.finfo(float).eps * at_zero(case, case.problem(), r)
        return r.gap > 1e-6 * (abs(r.primal) + abs(r.dual)) + room


def at_zero(case, problem, r):
    """P(0) with the best intercept, in extended precision."""
    w, x = np.zeros_like(r.w), np.zeros_like(r.x)
    b = problem.best_intercept(x) if case.intercept else r.intercept * 0.0
    return LONG(case.values(w, x, b, case.alpha)[0])


def case_epochs(text):
    return int(text.split("epochs=")[1].split(",")[0])
