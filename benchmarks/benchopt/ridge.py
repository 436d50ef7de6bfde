"""apcg in benchopt's benchmark_ridge: copy this file to its solvers/ as apcg.py.

It minimises (1/2)|X w + b - y|^2 + (lmbd/2)|w|^2, which is n times our P with
alpha = lmbd/n. The tolerance that benchopt lowers is a relative duality gap here.
"""

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

from apcg import ERM, solve


class Solver(BaseSolver):
    """`apcg.solve` with its defaults, the making of the problem included."""

    name = "apcg"
    requirements = ["pip::apcg"]
    sampling_strategy = "tolerance"
    # An answer is often far better than its tolerance: several in a row may be the same.
    stopping_criterion = SufficientProgressCriterion(patience=7, strategy="tolerance")
    references = [
        "Q. Lin, Z. Lu and L. Xiao, An accelerated proximal coordinate gradient method and its "
        "application to regularized empirical risk minimization, arXiv:1407.1296 (2014)"
    ]

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        """Keep the problem; the clock does not run yet."""
        self.X, self.y, self.lmbd, self.fit_intercept = X, y, lmbd, fit_intercept
        self.beta = np.zeros(X.shape[1] + fit_intercept)

    @staticmethod
    def get_next(tolerance):
        """A tenth of this one; benchopt starts at 3e38."""
        return min(tolerance, 1.0) / 10

    def run(self, tolerance):
        """Solve from the beginning."""
        alpha = self.lmbd / self.X.shape[0]
        p = ERM(self.X, self.y, "squared", "l2", alpha, intercept=self.fit_intercept)
        r = solve(p, tol=tolerance, max_epochs=10**6, random_state=0)
        self.beta = np.append(r.w, r.intercept) if self.fit_intercept else r.w

    def get_result(self):
        """The weights, and the intercept after them."""
        return {"beta": self.beta}
