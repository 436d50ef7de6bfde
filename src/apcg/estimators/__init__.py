"""scikit-learn estimators: linear classifiers and regressors, with a certificate."""

from .classifier import APCGClassifier
from .cv import APCGClassifierCV, APCGRegressorCV
from .regressor import APCGRegressor

__all__ = ["APCGClassifier", "APCGClassifierCV", "APCGRegressor", "APCGRegressorCV"]
