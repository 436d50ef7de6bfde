"""Mutations of the methods: what they claim, what they spend, when they stop."""

from __future__ import annotations

from .mutant import Mutant

MUTANTS = [
    # ---- methods/distributed/sums.py ----------------------------------------------------------
    Mutant("methods/distributed/sums.py", "an x that does not balance is certified",
           "balanced, slack = not p.intercept or self._balance(), _SLACK",
           "balanced, slack = True, _SLACK", "test_distributed.py", only="one_machine and hinge"),
    Mutant("methods/distributed/sums.py", "the x of shards is not scaled",
           'self.tell("scale", *[1 / (excess * (1 + slack))] * 2)', "pass", "test_distributed.py",
           only="beyond_the_bounds"),
    # ---- methods/dual/driver.py ---------------------------------------------------------------
    Mutant("methods/dual/driver.py", "sums are never made anew",
           "if self.passed // REFRESH <", "if False and self.passed // REFRESH <",
           "test_best_seen.py", only="anew"),
    # ---- methods/in_parts/sweeps.py -----------------------------------------------------------
    Mutant("methods/in_parts/sweeps.py", "weights of the first rows for all",
           "p.weights if p.weights.size == 1 else p.weights[at]",
           "p.weights if p.weights.size == 1 else p.weights[: at.size]", "test_in_parts.py",
           only="sweeps_over or penalties"),
    # ---- methods/interior/cones.py ------------------------------------------------------------
    Mutant("methods/interior/cones.py", "t does not follow",
           "first = 2 * w[:, :1] * along", "first = 0 * w[:, :1] * along", "test_interior_k.py",
           only="gap_closes and group"),
    Mutant("methods/interior/cones.py", "a norm for a product",
           "made[:, :1] = _inner(x, y)", "made[:, :1] = _inner(x, x)", "test_interior_k.py",
           only="gap_closes and group"),
    # ---- methods/interior/general.py ----------------------------------------------------------
    Mutant("methods/interior/general.py", "x is not scaled into the bounds of g*",
           "if not over > 1:\n                break", "break", "test_interior_k.py",
           only="gap_closes and hinge and l1"),
    Mutant("methods/interior/general.py", "tiny numbers in the place of zeros",
           "self._shaped(self._penalty.moving)", "(1 + 0 * self._shaped(self._penalty.moving))",
           "test_interior_k.py", only="zeros"),
    Mutant("methods/interior/general.py", "work is not counted",
           "self._cost += self._each", "self._cost += 0.0", "test_interior_k.py",
           only="counts_as_passes"),
    Mutant("methods/interior/general.py", "steps to the boundary and beyond",
           "PART))", "1.5))", "test_interior_k.py", only="gap_closes and hinge and l1"),
    Mutant("methods/interior/general.py", "products run ahead of the gap",
           "if not rows.count:", "if False:", "test_interior_k.py", only="run_ahead"),
    Mutant("methods/interior/general.py", "one matrix for outputs that are apart",
           "return problem.separable and (problem.K == 1 or problem.loss.by_output)",
           "return problem.separable and problem.K == 1", "test_interior_k.py", only="are_apart"),
    # ---- methods/interior/interior_l1.py ------------------------------------------------------
    Mutant("methods/interior/interior_l1.py", "columns that matter are left out",
           "self._over.max() > 0 and self._anew()", "False", "test_interior_l1.py",
           only="left_out"),
    Mutant("methods/interior/interior_l1.py", "x is not scaled",
           "x = x / (excess * (1 + spare))", "pass", "test_interior_l1.py", only="are_feasible"),
    # ---- methods/interior/kkt.py --------------------------------------------------------------
    Mutant("methods/interior/kkt.py", "no refinement",
           "range(self._tuning.refined)", "range(0)", "test_interior_l1.py", only="equations"),
    # ---- methods/interior/pieces.py -----------------------------------------------------------
    Mutant("methods/interior/pieces.py", "the other slope of a kink",
           "-slope - epsilon", "-slope + epsilon", "test_interior_l1.py", only="linear_program"),
    # ---- methods/interior/rows_k.py -----------------------------------------------------------
    Mutant("methods/interior/rows_k.py", "slopes without the label",
           "np.asarray(self._pairs.a - self.s * self._e)", "np.asarray(self._pairs.a)",
           "test_interior_k.py", only="gap_closes and smoothed"),
    Mutant("methods/interior/rows_k.py", "one piece of two",
           "lengths, low = np.array([high, -low]), 0.0",
           "lengths, low = np.array([high, 0.0]), 0.0", "test_interior_k.py",
           only="gap_closes and epsilon"),
    Mutant("methods/interior/rows_k.py", "slopes of classes do not sum to zero",
           "for _ in range(2):", "for _ in range(1):", "test_interior_k.py", only="sum_to_zero"),
    # ---- methods/interior/systems_k.py --------------------------------------------------------
    Mutant("methods/interior/systems_k.py", "the class left out has what the others have",
           "zip((1.0, -1.0), places", "zip((1.0, 1.0), places", "test_interior_k.py",
           only="both_systems"),
    Mutant("methods/interior/systems_k.py", "the class left out is the least likely one",
           "theta.argmin(axis=1)", "theta.argmax(axis=1)", "test_interior_k.py",
           only="unlikely"),
    Mutant("methods/interior/general.py", "steps by rows that miss the rows are taken",
           "if system.short > SHORT:", "if False:", "test_interior_k.py", only="are_wrong"),
    Mutant("methods/interior/systems_k.py", "what all classes get is forgotten",
           "short[:d] -= self._sums[:, :free] * same[:, None]", "pass", "test_interior_k.py",
           only="gap_closes and smoothed"),
    # ---- methods/newton/bounded.py ------------------------------------------------------------
    Mutant("methods/newton/bounded.py", "w leaves its bounds",
           "w = np.clip(at.w + t * way, self._lower, self._upper)", "w = at.w + t * way",
           "test_bounded.py", only="nnls"),
    # ---- methods/newton/ids.py ----------------------------------------------------------------
    Mutant("methods/newton/ids.py", "predictions in the order of ids",
           "z[self._X.order] = found.z", "z[:] = found.z", "test_newton_ids.py",
           only="order_of_the_rows"),
    Mutant("methods/newton/ids.py", "weights in the order of ids",
           "self._place = self._X.place[:d]", "self._place = np.arange(d)", "test_newton_ids.py",
           only="shuffled or long_double or other_losses"),
    # ---- methods/newton/many_outputs.py -------------------------------------------------------
    Mutant("methods/newton/many_outputs.py", "only a factor gives a step",
           "if not moved:  # without", "if False:  # without", "test_outputs_guard.py",
           only="without_a_factor"),
    # ---- methods/paper/adaptive/resting.py ----------------------------------------------------
    Mutant("methods/paper/adaptive/resting.py", "never expired",
           "return passes >= self._until", "return False", "test_certificate_edges.py",
           only="left_out"),
    # ---- methods/paper/direct.py --------------------------------------------------------------
    Mutant("methods/paper/direct.py", "own objects keep mu = 1",
           "if left == 1 and self._rate.saw(self._value(), self.n, 1):", "if False:",
           "test_zeros.py", only="own_objects_adapt"),
    # ---- methods/reductions/row_space.py ------------------------------------------------------
    Mutant("methods/reductions/row_space.py", "a look that failed is tried for ever",
           "self.stuck = self._patience < 0", "pass", "test_span.py", only="without_digits"),
    # ---- methods/reductions/smoothing.py ------------------------------------------------------
    Mutant("methods/reductions/smoothing.py", "samples left out stay out",
           "self._width *= self._tuning.wider", "self._width *= 1.0", "test_smoothing.py"),
    Mutant("methods/reductions/smoothing.py", "a smoothed loss without its square",
           "return k, epsilon, self.gamma, lower, upper", "return k, epsilon, 0.0, lower, upper",
           "test_smoothing.py"),
    # ---- methods/sparse/columns/packed.py -----------------------------------------------------
    Mutant("methods/sparse/columns/packed.py", "float32 for any tolerance",
           "self.exact = target.tol < tuning.narrow", "self.exact = False", "test_working_set.py",
           only="float32_is_too_coarse"),
    Mutant("methods/sparse/columns/packed.py", "float32 after looks that failed",
           "self.exact |= self._failed >= self.tuning.failures", "pass",
           "test_working_set.py", only="float32_is_too_coarse"),
    # ---- methods/sparse/gram.py ---------------------------------------------------------------
    Mutant("methods/sparse/gram.py", "a budget does not end a model",
           "if is_over(self.work):", "if False:", "test_working_set.py", only="inner_work"),
    # ---- methods/sparse/groups/model.py -------------------------------------------------------
    Mutant("methods/sparse/groups/model.py", "a dear model is never left",
           "and self.work > self._room:", "and False:", "test_group_model.py", only="left_early"),
    Mutant("methods/sparse/groups/model.py", "a budget does not end a model of groups",
           "if is_over(self.work):", "if False:", "test_group_model.py", only="budget_ends"),
    # ---- methods/sparse/groups/squares.py -----------------------------------------------------
    Mutant("methods/sparse/groups/squares.py", "x of an earlier stage is certified",
           "(self._share / p.alpha)) > 1:", "(self._share / p.alpha)) > 1e9:", "test_weakened.py",
           only="earlier_stage"),
    Mutant("methods/sparse/groups/squares.py", "an x that does not balance is certified",
           "if p.imbalance(x) > 1:\n                    return",
           "if False:\n                    return", "test_weakened.py", only="balance_is_no"),
    # ---- methods/sparse/run.py ----------------------------------------------------------------
    Mutant("methods/sparse/run.py", "rounding is blamed",
           "self.stuck = rounding or not self.alone", "self.stuck = True", "test_working_set.py",
           only="blame_rounding"),
    Mutant("methods/sparse/run.py", "it never gives up",
           "return self._progress.idle > self.tuning.patience", "return False",
           "test_working_set.py", only="says_when"),
    Mutant("methods/sparse/run.py", "a start outside the bounds",
           "not problem.g.contains(at.w)", "False", "test_working_set.py",
           only="outside_the_bounds"),
    Mutant("methods/sparse/run.py", "theta without bound",
           "if not math.isfinite(theta):", "if False:", "test_any_scale.py", only="a_stage"),
    Mutant("methods/sparse/run.py", "inner work is free",
           "self.cost += model.work / each", "pass", "test_working_set.py", only="inner_work"),
    # ---- _kernels/newton/small.pyx ------------------------------------------------------------
    Mutant("_kernels/newton/small.pyx", "half of a gap",
           "p.gap += 0.5 * p.g[j] * (p.g[j] / p.ridge[j])",
           "p.gap += 0.05 * p.g[j] * (p.g[j] / p.ridge[j])", "test_small.py", only="l2_is"),
    Mutant("_kernels/newton/small.pyx", "H of all rows at each step",
           "return left > 1.0 + H_ns(p.d) / look_ns(p.d)", "return True", "test_small.py",
           only="few_matrices"),
]  # fmt: skip
