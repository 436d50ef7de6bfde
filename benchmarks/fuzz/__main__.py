"""Random problems, each certificate computed again in extended precision.

    python benchmarks/fuzz --kind outputs --problems 1000
    python benchmarks/fuzz --kind all --problems 100
    python benchmarks/fuzz --kind one --seed 4711 --problems 1     # that problem again

`kinds` says what the kinds are. What does not agree is printed with the seed of its problem.
"""

from __future__ import annotations

import argparse
import math
import time

from kinds import KINDS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=(*KINDS, "all"), default="all")
    parser.add_argument("--problems", type=int, default=100, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop a kind after so many")
    args = parser.parse_args()
    wrong = 0
    for kind in KINDS if args.kind == "all" else (args.kind,):
        fuzz, start = KINDS[kind](), time.perf_counter()
        for seed in range(args.seed, args.seed + args.problems):
            fuzz.problem(seed)
            if time.perf_counter() - start > args.seconds:
                break
        wrong += sum(fuzz.kinds.values())
        print(f"{kind}: {fuzz.problems} problems to seed {seed}, {fuzz.solves} solves, "
              f"{fuzz.converged} converged, {sum(fuzz.refused.values())} refused; "
              f"violations: {dict(fuzz.kinds) or 'none'}. {fuzz.said()}", flush=True)  # fmt: skip
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
