"""The objectives of scikit-learn's linear models, written out: what their documentation says."""

import numpy as np
from scipy.special import logsumexp


def _scores(model, X):
    return X @ np.atleast_2d(model.coef_).T + model.intercept_


def _penalty(w, l1_ratio):
    return l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * np.sum(w**2)


def _signs(model, y):
    """-1 and 1: a column for each row of coef_."""
    rows = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    return np.where(y[:, None] == rows, 1.0, -1.0)


def logistic(model, X, y, s):
    """C sum_i s_i loss_i + penalty, over C sum s."""
    z, total = _scores(model, X), model.C * s.sum()
    if z.shape[1] == 1:
        each = np.logaddexp(0, -_signs(model, y)[:, 0] * z[:, 0])
    else:
        each = logsumexp(z, axis=1) - z[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    w = model.coef_
    if model.solver == "liblinear":  # the intercept is a coefficient like the others
        w = np.append(w, np.atleast_1d(model.intercept_) / model.intercept_scaling)
    return s @ each / s.sum() + _penalty(w, model.l1_ratio) / total


def svc(model, X, y, s):
    """The same for LinearSVC; one against the rest, the sum over the classes."""
    z, total = _scores(model, X), model.C * s.sum()
    off = np.maximum(0, 1 - _signs(model, y) * z)
    each = off**2 if model.loss == "squared_hinge" else off
    w = np.append(model.coef_, np.atleast_1d(model.intercept_) / model.intercept_scaling)
    return (s @ each).sum() / s.sum() + _penalty(w, float(model.penalty == "l1")) / total


def svr(model, X, y, s):
    """The same for LinearSVR."""
    off = np.maximum(0, np.abs(_scores(model, X)[:, 0] - y) - model.epsilon)
    each = off**2 if model.loss.startswith("squared") else off
    w = np.append(model.coef_, np.atleast_1d(model.intercept_) / model.intercept_scaling)
    return s @ each / s.sum() + _penalty(w, 0.0) / (model.C * s.sum())


def ridge(model, X, y, s):
    """sum_i s_i |r_i|^2 + alpha |w|^2, over 2 sum s."""
    r = _scores(model, X) - (y if y.ndim == 2 else y[:, None])
    w = np.atleast_2d(model.coef_)
    return (s @ r**2).sum() / (2 * s.sum()) + np.sum(model.alpha * (w.T**2)) / (2 * s.sum())


def net(model, X, y, s):
    """Half the mean square + the penalty; over rows of W for the multi-task models."""
    r = _scores(model, X) - (y if y.ndim == 2 else y[:, None])
    w = np.atleast_2d(model.coef_)
    if type(model).__name__.startswith("MultiTask"):
        g = model.l1_ratio * np.linalg.norm(w, axis=0).sum() + (1 - model.l1_ratio) / 2 * np.sum(
            w**2
        )
    else:
        g = _penalty(w, model.l1_ratio)
    return (s @ r**2).sum() / (2 * s.sum()) + model.alpha * g


def huber(model, X, y, s):
    """sum_i s_i (sigma + sigma H(r_i/sigma)) + alpha |w|^2, over sum s."""
    u = np.abs(_scores(model, X)[:, 0] - y) / model.scale_
    each = np.where(u <= model.epsilon, u**2, 2 * model.epsilon * u - model.epsilon**2)
    total = model.scale_ * (s @ (1 + each)) + model.alpha * np.sum(model.coef_**2)
    return total / s.sum()


def quantile(model, X, y, s):
    """sum_i s_i pinball_i over sum s, and alpha |w|_1."""
    r = y - X @ model.coef_ - model.intercept_
    each = np.maximum(model.quantile * r, (model.quantile - 1) * r)
    return s @ each / s.sum() + model.alpha * np.abs(model.coef_).sum()
