"""Mutations of newer rooms: interior points for K, bounds, ids, disk, shards, small problems."""

from __future__ import annotations

from mutant import Mutant

INTERIOR, BOUNDED, IDS = "test_interior_k.py", "test_bounded.py", "test_newton_ids.py"
NONE, DISK = "test_no_penalty.py", "test_on_disk.py"
RUN, ROWS, CONES = (f"methods/interior/{name}.py" for name in ("general", "rows_k", "cones"))
SHARDS, PARTS, SMALL = "test_distributed.py", "test_in_parts.py", "test_small.py"
SUMS, KERNEL = "methods/distributed/sums.py", "_kernels/newton/small.pyx"
SYSTEMS, READER = "methods/interior/systems_k.py", "data/mapped/reader.py"

MUTANTS = [
    Mutant(RUN, "x is not scaled into the bounds of g*",
           "if not over > 1:\n                break", "break", INTERIOR,
           only="gap_closes and hinge and l1"),
    Mutant(RUN, "tiny numbers in the place of zeros", "self._shaped(self._penalty.moving)",
           "(1 + 0 * self._shaped(self._penalty.moving))", INTERIOR, only="zeros"),
    Mutant(RUN, "work is not counted", "self._cost += self._each", "self._cost += 0.0", INTERIOR,
           only="counts_as_passes"),
    Mutant(RUN, "steps to the boundary and beyond", "PART))", "1.5))", INTERIOR,
           only="gap_closes and hinge and l1"),
    Mutant(ROWS, "slopes without the label", "np.asarray(self._pairs.a - self.s * self._e)",
           "np.asarray(self._pairs.a)", INTERIOR, only="gap_closes and smoothed"),
    Mutant(ROWS, "one piece of two", "lengths, low = np.array([high, -low]), 0.0",
           "lengths, low = np.array([high, 0.0]), 0.0", INTERIOR, only="gap_closes and epsilon"),
    Mutant(CONES, "t does not follow", "first = 2 * w[:, :1] * along",
           "first = 0 * w[:, :1] * along", INTERIOR, only="gap_closes and group"),
    Mutant(CONES, "a norm for a product", "made[:, :1] = _inner(x, y)",
           "made[:, :1] = _inner(x, x)", INTERIOR, only="gap_closes and group"),
    Mutant(SYSTEMS, "the last class has what the others have",
           "-dq.sum(axis=1, keepdims=True)", "dq.sum(axis=1, keepdims=True)", INTERIOR,
           only="both_systems"),
    Mutant(SYSTEMS, "what all classes get is forgotten",
           "short[:d] -= self._sums[:, :free] * same[:, None]", "pass", INTERIOR,
           only="gap_closes and smoothed"),
    Mutant("methods/plan/watch.py", "slow sweeps go on",
           'return "interior" if interior else ""', 'return ""', INTERIOR, only="auto_leaves"),
    Mutant("methods/newton/bounded.py", "w leaves its bounds",
           "w = np.clip(at.w + t * way, self._lower, self._upper)", "w = at.w + t * way", BOUNDED,
           only="nnls"),
    Mutant("methods/newton/ids.py", "predictions in the order of ids",
           "z[self._X.order] = found.z", "z[:] = found.z", IDS, only="other_losses",
           why="a look that could end the run is computed anew, without these predictions"),
    Mutant("methods/newton/ids.py", "weights in the order of ids",
           "self._place = self._X.place[:d]", "self._place = np.arange(d)", IDS,
           only="shuffled or long_double or other_losses"),
    Mutant("problems/no_penalty.py", "other labels keep the box",
           "if not problem.reach:\n        return", "if True:\n        return", NONE,
           only="other_labels"),
    Mutant("problems/no_penalty.py", "an alpha without a penalty", "        if alpha > 0:\n",
           "        if False:\n", NONE, only="alpha_of"),
    Mutant(READER, "checksums of labels are not compared",
           "if zlib.crc32(_raw(out)) != file.crc32:", "if False:", DISK),
    Mutant(READER, "files that were cut", "if size != expected:", "if False:", DISK),
    # ---- shards, parts, small problems --------------------------------------------------------
    Mutant(SUMS, "an x that does not balance is certified",
           "balanced, slack = not p.intercept or self._balance(), _SLACK",
           "balanced, slack = True, _SLACK", SHARDS, only="one_machine and hinge"),
    Mutant("methods/in_parts/sweeps.py", "weights of the first rows for all",
           "p.weights if p.weights.size == 1 else p.weights[at]",
           "p.weights if p.weights.size == 1 else p.weights[: at.size]", PARTS,
           only="sweeps_over or penalties"),
    Mutant(KERNEL, "half of a gap", "gap += 0.5 * g[j] * (g[j] / ridge[j])",
           "gap += 0.05 * g[j] * (g[j] / ridge[j])", SMALL, only="l2_is"),
    Mutant("methods/plan/watch.py", "Newton's method goes round", "/ sweep if jumps else math.inf",
           "/ sweep if False else math.inf", INTERIOR, only="goes_round"),
    Mutant("methods/sparse/groups/model.py", "a dear model is never left",
           "and self.work > room_ns:", "and False:", "test_group_model.py", only="left_early"),
    Mutant("methods/sparse/groups/run.py", "inner work is free", "self.cost += model.work / each",
           "pass", INTERIOR, only="slow_for_it"),
]  # fmt: skip
