"""A path, and alpha by cross-validation.

`path` solves for many alphas, each from the answer before. `APCGRegressorCV` chooses one by
cross-validation. The picture has the weights along the path, and the scores of the folds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from apcg import ERM, APCGRegressorCV, path

X, y = load_diabetes(return_X_y=True)
X, y = scale(X), scale(y)
alphas = np.logspace(0, -4, 40)
answers = path(ERM(X, y, "squared", "l1"), alphas, tol=1e-8)
print("all converged:", all(r.converged for r in answers))

model = APCGRegressorCV("squared", penalty="l1", alphas=alphas, cv=5, random_state=0).fit(X, y)
print(f"best alpha {model.alpha_:.2g}, R^2 {model.best_score_:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.semilogx(alphas, [r.w for r in answers])
left.set_xlabel("alpha")
left.set_ylabel("weights")
mean, spread = model.scores_.mean(axis=1), model.scores_.std(axis=1)
right.semilogx(model.alphas_, mean, color="#3f51b5")
right.fill_between(model.alphas_, mean - spread, mean + spread, color="#3f51b5", alpha=0.2)
right.axvline(model.alpha_, color="#b2182b", ls="--")
right.set_xlabel("alpha")
right.set_ylabel("R^2 of the folds")
figure.savefig("path.png", dpi=110)
