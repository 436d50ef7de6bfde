"""Mutations of what guards an answer: scales, drift, Ctrl-C, memory, what once no test noticed."""

from __future__ import annotations

from mutant import Mutant

BEST, SCALE, CTRL_C = "test_best_seen.py", "test_any_scale.py", "test_ctrl_c.py"
ROOM, WEAK = "test_room.py", "test_weakened.py"
CERTIFICATE, SQUARES = "certify/certificate.py", "methods/sparse/groups/squares.py"
LOOK, PATH = "methods/dual/sweeps_k.py", "run/path.py"
INTERRUPTED = "estimators/interrupted.py"

MUTANTS = [
    # ---- once no test noticed -----------------------------------------------------------------
    Mutant(SQUARES, "x of an earlier stage is certified", "(self._share / p.alpha)) > 1:",
           "(self._share / p.alpha)) > 1e9:", WEAK, only="earlier_stage"),
    Mutant(SQUARES, "an x that does not balance is certified",
           "if p.imbalance(x) > 1:\n                    return",
           "if False:\n                    return", WEAK, only="balance_is_no"),
    Mutant("losses/classes.py", "steps that leave the domain", "max() < 0.5:",
           "max() < 5:", WEAK, only="stay_inside"),
    Mutant("penalties/groups.py", "a group may be larger by 1e-7",
           "return 0.0 if self.excess(v) <= 1 else",
           "return 0.0 if self.excess(v) <= 1 + 1e-7 else", WEAK, only="last_digits"),
    Mutant(CERTIFICATE, "parts are exact in any case", "all(c.exact for c in found)", "True", WEAK,
           only="of_parts"),
    Mutant(PATH, "sums of a run end a point of a path", "if not found.exact or (", "if (", WEAK,
           only="from_w_and_x"),
    Mutant("model/linear.py", "any number of intercepts", " and len(b) == w.shape[1]", "", WEAK,
           only="intercept_for_each"),
    # ---- drift --------------------------------------------------------------------------------
    Mutant(CERTIFICATE, "the w of a look is forgotten",
           "return pair if pair.gap < alone.gap else alone", "return alone", BEST, only="pair"),
    Mutant("methods/dual/driver.py", "sums are never made anew",
           "if self.passed // REFRESH <", "if False and self.passed // REFRESH <", BEST,
           only="anew"),
    # ---- scales -------------------------------------------------------------------------------
    Mutant("penalties/groups.py", "squares of groups underflow", "squares < _LEAST",
           "squares < 0", SCALE, only="norms_lose"),
    Mutant("penalties/groups.py", "squares of groups overflow", "squares > _MOST",
           "squares > np.inf", SCALE, only="norms_lose"),
    Mutant(CERTIFICATE, "D above P is believed", "return found.gap < -room", "return False",
           SCALE, only="above_the_primal"),
    Mutant(CERTIFICATE, "rounding is none", "return found.gap < -room", "return True", SCALE,
           only="rounding"),
    Mutant("methods/sparse/run.py", "theta without bound", "if not math.isfinite(theta):",
           "if False:", SCALE, only="a_stage"),
    Mutant("methods/plan/plan.py", "a start without a right digit",
           "lost = not certificate.gap <= LOST * abs(certificate.primal)", "lost = False", SCALE,
           only="takes_over"),
    # ---- Ctrl-C -------------------------------------------------------------------------------
    Mutant(PATH, "Ctrl-C loses the path", "        if not answers:\n            raise",
           "        raise", CTRL_C, only="between_two"),
    Mutant(PATH, "Ctrl-C is swallowed by a path", "if interrupted or found.status.code ==",
           "if found.status.code ==", CTRL_C, only="first_answer"),
    Mutant(INTERRUPTED, "the other classes are solved", "        if pressed:\n            return\n",
           "", CTRL_C, only="against_the_rest"),
    Mutant("estimators/search.py", "Ctrl-C loses the search",
           "search_so_far(self, folds, plan, grid)", "pass", CTRL_C, only="model_of_a_fold"),
    # ---- memory -------------------------------------------------------------------------------
    Mutant("problems/erm.py", "K outputs of any size",
           "memory.check_outputs(self.n_samples, self.d, self.K)", "pass", ROOM, only="refused"),
    Mutant("estimators/classifier.py", "any number of classes",
           "if len(classes) > 2:\n            memory", "if False:\n            memory", ROOM,
           only="refused"),
]  # fmt: skip
