"""Regression with outliers, and intervals: a Huber loss, quantiles, support vectors; calibration.

python examples/scikit_learn/robust.py
python -m apcg.patch examples/scikit_learn/robust.py    # the same program, solved by apcg
"""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import HuberRegressor, LogisticRegressionCV, QuantileRegressor, Ridge
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC, LinearSVR

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
y = X @ [3.0, -2.0, 1.0, 0.0] + rng.normal(size=300)
y[::10] += 30.0
for model in (Ridge(), HuberRegressor(), LinearSVR(max_iter=100_000)):
    print(f"{type(model).__name__}:", np.round(model.fit(X, y).coef_, 1).tolist())
for q in (0.1, 0.5, 0.8):
    below = y <= QuantileRegressor(quantile=q, alpha=0.0).fit(X, y).predict(X)
    print(f"quantile {q}: {below.mean():.2f} of the samples are below")
stack = StackingRegressor([("ridge", Ridge()), ("huber", HuberRegressor())], Ridge()).fit(X, y)
print(f"stacked: R2 {stack.score(X, y):.3f}")

X, labels = load_breast_cancer(return_X_y=True)
train, test, y_train, y_test = train_test_split(scale(X), labels, random_state=0)
svm = CalibratedClassifierCV(LinearSVC(), cv=3).fit(train, y_train)
search = LogisticRegressionCV(Cs=5, scoring="neg_log_loss").fit(train, y_train)
for name, model in (("calibrated svm", svm), ("logistic, C chosen", search)):
    print(f"{name}: Brier score {brier_score_loss(y_test, model.predict_proba(test)[:, 1]):.3f}")
