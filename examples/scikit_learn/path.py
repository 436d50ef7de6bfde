"""Which features matter for diabetes: the path of the lasso, cross-validation, stability.

python examples/scikit_learn/path.py
python -m apcg.patch examples/scikit_learn/path.py    # the same program, solved by apcg
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import ElasticNetCV, Lasso, LassoCV, RidgeCV, lasso_path
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data = load_diabetes()
X, y, names = StandardScaler().fit_transform(data.data), data.target, data.feature_names
alphas, coefs, _ = lasso_path(X, y - y.mean(), alphas=[30.0, 10.0, 3.0, 1.0, 0.3])
for alpha, w in zip(alphas, coefs.T, strict=True):
    print(f"alpha {alpha:4.1f}:", " ".join(n for n, c in zip(names, w, strict=True) if c))
for model in (LassoCV(cv=5), ElasticNetCV(l1_ratio=[0.5, 0.9], cv=5), RidgeCV(cv=5)):
    score = cross_val_score(model, X, y, cv=5).mean()
    print(f"{type(model).__name__}: alpha {model.fit(X, y).alpha_:.3f}, R2 {score:.3f}")
chosen = make_pipeline(SelectFromModel(Lasso(alpha=2.0)), Lasso(alpha=0.5)).fit(X, y)
print("chosen:", np.array(names)[chosen[0].get_support()].tolist(), f"{chosen.score(X, y):.3f}")
