"""scikit-learn's linear models under their own names, by the solvers of apcg."""

from .huber import HuberRegressor
from .logistic import LogisticRegression, LogisticRegressionCV
from .nets import ElasticNet, Lasso, MultiTaskElasticNet, MultiTaskLasso
from .nets_cv import ElasticNetCV, LassoCV, MultiTaskElasticNetCV, MultiTaskLassoCV
from .paths import enet_path, lasso_path
from .quantile import QuantileRegressor
from .ridge import Ridge, RidgeClassifier
from .ridge_cv import RidgeClassifierCV, RidgeCV
from .svm import LinearSVC, LinearSVR

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "enet_path",
    "lasso_path",
]
