"""A wheel that was just installed: do the estimators, the problem form and the command work?

python tools/smoke.py      # with the Python that has it; no compiler and no other package is needed
"""

import subprocess
import sys

import numpy as np
from sklearn.datasets import load_digits

from apcg import ERM, APCGClassifier, solve
from apcg.linear_model import LogisticRegression


def main() -> None:
    """Train in three ways; stop at the first that is wrong."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    r = solve(ERM(X, np.where(y == 8, 1, -1), loss="logistic", alpha=1e-5), random_state=0)
    assert r.converged
    assert r.gap <= 1e-6 * r.primal
    assert APCGClassifier("logistic", random_state=0).fit(X, y).score(X, y) > 0.95
    assert LogisticRegression().fit(X, y).score(X, y) > 0.95
    command = [sys.executable, "-m", "apcg", "train", "breast_cancer", "--loss", "logistic"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "converged" in said
    print("apcg works:", said.splitlines()[-1])


if __name__ == "__main__":
    main()
