"""apcg in benchopt's benchmark_linear_svm_binary_classif_no_intercept: copy it to solvers/apcg.py.

It minimises C sum_i max(0, 1 - y_i x_i'w) + (1/2)|w|^2, which is C n times our P with
alpha = 1/(C n). The tolerance that benchopt lowers is a relative duality gap here.
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

    def set_objective(self, X, y, C):
        """Keep the problem; the clock does not run yet."""
        self.X, self.y, self.C = X, y, C
        self.beta = np.zeros(X.shape[1])

    @staticmethod
    def get_next(tolerance):
        """A tenth of this one; benchopt starts at 3e38."""
        return min(tolerance, 1.0) / 10

    def run(self, tolerance):
        """Solve from the beginning."""
        p = ERM(self.X, self.y, "hinge", "l2", 1 / (self.C * self.X.shape[0]))
        self.beta = solve(p, tol=tolerance, max_epochs=10**6, random_state=0).w

    def get_result(self):
        """The weights."""
        return {"beta": self.beta}
