"""Mutations of the plan: which method begins, and which follows."""

from __future__ import annotations

from .mutant import Mutant

MUTANTS = [
    # ---- methods/plan/case.py -----------------------------------------------------------------
    Mutant("methods/plan/case.py", "working sets without L1",
           "bool(self.problem.interval.a.any())", "True", "test_working_set.py",
           only="auto_takes_it"),
    Mutant("methods/plan/case.py", "many samples in their span",
           "p.d >= t.wide * p.n_samples", "True", "test_plan_rules.py", only="begin_with"),
    Mutant("methods/plan/case.py", "wide problems are tall",
           "return p.d <= t.widest and p.n >=", "return p.n >=", "test_plan_rules.py"),
    # ---- methods/plan/plan.py -----------------------------------------------------------------
    Mutant("methods/plan/plan.py", "a plan inside another one is not looked at",
           "said.estimate if self._passes < self._latest else None", "said.estimate",
           "test_interior_k.py", only="penalty_for_each"),
    Mutant("methods/plan/plan.py", "stuck is the end of K outputs",
           "        stuck = said.stuck\n", "        stuck = False\n", "test_outputs_guard.py",
           only="stuck_is_replaced"),
    Mutant("methods/plan/plan.py", "stuck is the end",
           "if self._on_kept_rows or stuck:", "if self._on_kept_rows:", "test_working_set.py",
           only="auto_goes_on"),
    Mutant("methods/plan/plan.py", "a start without a right digit",
           "lost = not certificate.gap <= LOST * abs(certificate.primal)", "lost = False",
           "test_any_scale.py", only="takes_over"),
    Mutant("methods/plan/plan.py", "a step more than there is room for",
           "self._passes + self._step >= self._latest", "self._passes >= self._latest",
           "test_bounded.py", only="leave_room"),
    # ---- methods/plan/rules.py ----------------------------------------------------------------
    Mutant("methods/plan/rules.py", "working sets go round for ever",
           "case.tuning.tried *", "1e9 *", "test_interior_l1.py", only="go_round"),
    Mutant("methods/plan/rules.py", "an own penalty gets coordinates",
           "when=lambda c: c.of_norms,", "when=lambda c: False,", "test_plan_table.py"),
    # ---- methods/plan/watch.py ----------------------------------------------------------------
    Mutant("methods/plan/watch.py", "leaves at the tolerance",
           "if not (possible and gap > self._tol):", "if not possible:", "test_plan_rules.py"),
    Mutant("methods/plan/watch.py", "no margin",
           "return min(rest, most) > margin * cost", "return min(rest, most) > 0 * cost",
           "test_plan_rules.py"),
    Mutant("methods/plan/watch.py", "leaves too early",
           "if spent < trusted:", "if False:", "test_plan_rules.py"),
    Mutant("methods/plan/watch.py", "a rate that rises",
           "if then <= gap:", "if False:", "test_plan_rules.py"),
    Mutant("methods/plan/watch.py", "smoothing for data that is not noisy",
           "self.smooths = crowded and", "self.smooths = True and", "test_smoothing.py"),
    Mutant("methods/plan/watch.py", "fast sweeps of K outputs are left",
           "left * self._pass > MARGIN * self._cost", "left * self._pass > 0 * self._cost",
           "test_plan_rules.py", only="k_outputs"),
    Mutant("methods/plan/watch.py", "sweeps of K outputs are left before their rate is known",
           "passes * self._pass < EARLIEST * self._cost", "passes * self._pass < 0 * self._cost",
           "test_plan_rules.py", only="k_outputs"),
    Mutant("methods/plan/watch.py", "sweeps of K outputs whose gap rises go on",
           "            return before[1] < math.inf\n        rate",
           "            return False\n        rate", "test_plan_rules.py", only="k_outputs"),
    Mutant("methods/plan/watch.py", "slow sweeps go on",
           'return "interior" if interior else ""', 'return ""', "test_interior_k.py",
           only="auto_leaves"),
    Mutant("methods/plan/watch.py", "Newton's method goes round",
           "/ sweep if jumps else math.inf", "/ sweep if False else math.inf", "test_interior_k.py",
           only="goes_round"),
]  # fmt: skip
