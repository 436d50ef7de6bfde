"""A table that nobody scaled.

The features of the wine data run from tenths to more than a thousand. scikit-learn's solver
stops there with a warning; the same class of `apcg.linear_model` converges, and says how far
from the optimum it can be. The picture shows both objectives.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import sklearn.linear_model
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from apcg.linear_model import LogisticRegression

X, y = load_wine(return_X_y=True)
sizes = X.std(axis=0).round(1)
print("sizes of the features from", sizes.min(), "to", sizes.max())


def objective(model):
    """C times the losses, and half the squared weights."""
    p = model.predict_proba(X)[np.arange(len(y)), y]
    return -np.log(p).sum() + np.sum(model.coef_**2) / 2


ours = LogisticRegression().fit(X, y)  # no warning
print(ours.status_)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    limits = [10, 30, 100, 300, 1000, 3000]
    fits = [sklearn.linear_model.LogisticRegression(max_iter=k).fit(X, y) for k in limits]
theirs = [objective(model) for model in fits]
ratio = theirs[2] / objective(ours)
print(f"scikit-learn at its default max_iter of 100: {ratio:.2f} times the optimum")

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.semilogx(limits, theirs, "o-", color="#777777", label="scikit-learn, by max_iter")
ax.axhline(objective(ours), color="#b2182b", label="apcg, certified")
ax.set_xlabel("max_iter")
ax.set_ylabel("objective")
ax.legend(frameon=False)
figure.savefig("objective.png", dpi=110)
