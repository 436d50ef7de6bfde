"""Random L2 problems whose columns have scales from 1e-8 to 1e8, solved by `auto` as it comes.

    python benchmarks/fuzz_scales.py --problems 2000
    python benchmarks/fuzz_scales.py --problems 500 --outputs     # with K outputs

Wide and tall, with and without an intercept, every loss. Certificates are computed again in
extended precision (`fuzz.Fuzz.check`). Besides: no answer is worse than w = 0 with its best
intercept, and a run that did not converge says why.
"""

from __future__ import annotations

import argparse
import signal
import time

import numpy as np
from fuzz import Fuzz, _alarm
from fuzz_many import OutputsCase, random_classes
from fuzz_problems import LONG, Case, Phi, random_loss, random_weights

from apcg import losses, solve

L2 = (0.0, 1.0, -np.inf, np.inf)


def scaled_data(rng):
    """Wide or tall; independent, of low rank, with noise, or far from 0; columns of any scale."""
    wide = rng.random() < 0.6
    n, d = (rng.integers(6, 60), rng.integers(60, 300)) if wide else (
        rng.integers(40, 300), rng.integers(2, 40))  # fmt: skip
    rank = rng.integers(2, min(n, d) + 1)
    X, kind = rng.standard_normal((n, d)), rng.integers(4)
    if kind in (1, 2):
        low = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
        X = low if kind == 1 else low + 0.1 * X
    if kind == 3:
        X = X + rng.standard_normal(d) * 10 ** rng.uniform(0, 3)
    return X, 10 ** (8 * np.sqrt(rng.random()) * rng.uniform(-1, 1, d))


def random_scaled(rng):
    """A problem of one output."""
    X, scales = scaled_data(rng)
    n, d = X.shape
    loss, phi = random_loss(rng)
    z = X @ rng.standard_normal(d) / np.sqrt(d) + rng.random() * rng.standard_normal(n)
    y = np.where(z > np.median(z), 1.0, -1.0) if loss.margin else z * 10 ** rng.uniform(-2, 2)
    alpha = 1 / n if rng.random() < 0.5 else float(10 ** rng.uniform(-8, 1))
    weight = random_weights(rng, n) if rng.random() < 0.5 else None
    free = bool(rng.random() < 0.5)
    return Case(X * scales, y, weight, loss, phi, "l2", L2, {}, alpha, free)


def random_scaled_outputs(rng):
    """A problem of K outputs: classes, or columns of y."""
    X, scales = scaled_data(rng)
    (n, d), K = X.shape, int(rng.integers(3, 5))
    z = X @ rng.standard_normal((d, K)) / np.sqrt(d) + rng.random() * rng.standard_normal((n, K))
    if rng.random() < 0.6:
        loss, phi, y = random_classes(rng, z, n, K)
    else:
        loss, phi = [
            (losses.Logistic(), Phi(None)),
            (losses.Squared(), Phi((0.0, 0.0, 1.0, -np.inf, np.inf))),
            (losses.Huber(1.0), Phi((0.0, 0.0, 1.0, -1.0, 1.0))),
            (losses.SmoothedHinge(1.0), Phi((1.0, 0.0, 1.0, 0.0, 1.0))),
        ][rng.integers(4)]
        y = np.where(z > np.median(z, axis=0), 1.0, -1.0) if loss.margin else z
    alpha = 1 / n if rng.random() < 0.5 else float(10 ** rng.uniform(-8, 1))
    free = bool(rng.random() < 0.5)
    return OutputsCase(X * scales, y, None, loss, phi, "l2", L2, {}, alpha, free)


class Scales(Fuzz):
    """`auto` at its defaults, compared with w = 0."""

    def __init__(self, make=random_scaled):
        super().__init__(("auto",), make)
        self.worst, self.seconds, self.unsolved = 0.0, 0.0, []

    def problem(self, seed):
        """Solve one problem and look at the answer."""
        case = self.make(np.random.default_rng(seed))
        try:
            problem = case.problem()
        except ValueError as error:
            self.refused[str(error)[:60]] += 1
            return
        self.problems += 1
        about = f"auto of {problem!r}, intercept={case.intercept}, epochs=1000,"
        start = time.process_time()
        r = self.guarded(lambda: solve(problem, random_state=seed), seed, about)
        took = time.process_time() - start
        if r is None:
            return
        self.seconds, self.solves = self.seconds + took, self.solves + 1
        self.converged += r.converged
        self.by_method[r.trace.notes[-1].split(":")[0]] += 1
        P, _, room = self.check(case, r, 1e-6, case.alpha, seed, about)
        zero = at_zero(case, problem, r)
        self.worst = max(self.worst, float(P / zero) if zero > 0 else 0.0)
        if not zero + room >= P:
            self.wrong("worse than w = 0", seed, f"{about}: {float(P):g}, {float(zero):g} at 0")
        if not r.converged:
            self.unsolved.append(r.status.code)
            if r.status.code == "precision" and "columns of X have norms from" not in r.status:
                self.wrong("does not say why", seed, f"{about}: {r.status}")

    def blames_rounding(self, case, r, room):
        """Beside P(0) a gap may be rounding, too."""
        zero = at_zero(case, case.problem(), r)
        return super().blames_rounding(case, r, room + 64 * np.finfo(float).eps * zero)


def at_zero(case, problem, r):
    """P(0) with the best intercept, in extended precision."""
    w, x = np.zeros_like(r.w), np.zeros_like(r.x)
    b = problem.best_intercept(x) if case.intercept else r.intercept * 0.0
    return LONG(case.values(w, x, b, case.alpha)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--outputs", action="store_true", help="problems with K outputs")
    args = parser.parse_args()
    signal.signal(signal.SIGPROF, _alarm)
    fuzz = Scales(random_scaled_outputs if args.outputs else random_scaled)
    for seed in range(args.seed, args.seed + args.problems):
        fuzz.problem(seed)
    print(f"{fuzz.problems} problems, {fuzz.converged} converged, {fuzz.seconds:.1f} s of CPU")
    print("others:", {code: fuzz.unsolved.count(code) for code in sorted(set(fuzz.unsolved))})
    print("by:", dict(fuzz.by_method))
    print(f"P over P(0): {fuzz.worst:.16g} at most")
    print("problems refused:", dict(fuzz.refused))
    print("violations:", dict(fuzz.kinds) or "none")
    raise SystemExit(bool(fuzz.kinds))


if __name__ == "__main__":
    main()
