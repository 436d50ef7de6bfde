"""`APCGClassifier`: linear classification, two classes, many at once, or one against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import losses
from .._base import memory
from .._base import validation as check
from .._base.types import Answer, Array, Bounds, ClassWeights, MatrixLike, Seed, Stored
from .._base.validation import Index, Vector, answers_other_names
from ..data import check_sparse
from ..penalties import Penalty
from ..problems.erm import ERM
from .linear import FLOATS, Linear, Plan, checked_weights, find_loss
from .progress import Task, with_callbacks

#: What `multi_class` may be.
MODES = ("auto", "multinomial", "ovr", "crammer_singer")


def _has_probabilities(estimator: Classifier) -> bool:
    loss = estimator.loss
    if loss == "logistic" or isinstance(loss, losses.Logistic):
        return True
    raise AttributeError(f"probabilities are for loss='logistic', and loss is {loss!r}.")


def _classes(labels: Array) -> tuple[Array, Index]:
    """The classes in order, and the number of each label's class.

    Two whole numbers, as most labels are, take no sort and no look at what kind of labels it is.
    """
    if labels.dtype.kind in "biuf":
        two = np.array([labels.min(), labels.max()])
        codes = labels == two[1]
        if two[0] < two[1] and np.all(two == np.floor(two)) and np.all(codes | (labels == two[0])):
            return two, codes.astype(np.intp)
    check_classification_targets(labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    return classes, numbers


class Classifier(LinearClassifierMixin, Linear):
    """What `APCGClassifier` and its CV form share."""

    def _validated(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Stored, Array, Index, Vector | None]:
        """X, the classes, the number of each sample's class, and weights or None."""
        check_sparse(X, "X")  # before scikit-learn converts it
        samples, labels = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, order="C")
        with np.errstate(invalid="ignore"):  # scikit-learn asks whether numbers are whole
            classes, codes = _classes(labels)
        weights = checked_weights(sample_weight, samples)
        return samples, classes, codes, weights

    def _weights(self, classes: Array, codes: Index, weights: Vector | None) -> Vector | None:
        """The weights of the samples times those of their classes; None if all are 1.

        "balanced" counts samples by their weights, so that weights still equal repetition.
        """
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            total = np.bincount(codes, weights, minlength=len(classes))
            with np.errstate(divide="ignore"):
                each = np.where(total > 0, total.sum() / (len(classes) * total), 0.0)
        else:
            each = compute_class_weight(self.class_weight, classes=classes, y=classes[codes])
        return np.asarray(each[codes] if weights is None else each[codes] * weights)

    def _check_classes(self, classes: Array, codes: Index, weights: Vector | None) -> None:
        present = np.bincount(codes, weights, minlength=len(classes)) > 0
        if present.sum() < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least two classes, got only one class"
                f" with samples of positive weight: {classes[present].tolist()!r}."
            )
        if not present.all():
            raise ValueError(
                f"no sample of the class {classes[~present][0]!r} has a positive weight; leave "
                "those samples out."
            )

    def _plan(
        self,
        X: Stored,
        classes: Array,
        codes: Index,
        weights: Vector | None,
        alpha: float,
        base: ERM | None = None,
    ) -> Plan:
        """One problem for two classes or for all at once, else one against the rest for each."""
        weights = self._weights(classes, codes, weights)
        self._check_classes(classes, codes, weights)
        loss = find_loss(self.loss, losses.names(margin=True), gamma=self.gamma)
        joint = self._joint_loss(loss, len(classes))
        if joint is not None:
            return self._joint_plan(X, classes, codes, weights, joint, alpha, base)
        if base is not None and base.K > 1:  # of all classes, and this fold has two
            base = None
        if len(classes) > 2:
            memory.check_outputs(X.shape[0], X.shape[1], len(classes))
        positive = [1] if len(classes) == 2 else range(len(classes))
        labels = [np.where(codes == k, 1.0, -1.0) for k in positive]
        first = self._problem(X, labels[0], weights, loss, alpha, base)
        problems = [first, *(first.with_labels(y, weights) for y in labels[1:])]
        names = [f"class {classes[k]!s} against the rest" for k in positive]

        def describe(answers: Sequence[Answer]) -> dict[str, Any]:
            return {
                "classes_": classes,
                "multi_class_": "ovr",
                "coef_": np.array([r.w for r in answers]),
                "intercept_": np.array([r.intercept for r in answers]),
                "dual_coef_": np.array([r.x for r in answers]),
            }

        return Plan(problems, names, describe)

    def _joint_loss(self, loss: losses.Loss, K: int) -> losses.OutputsLoss | None:
        """The loss over all classes; None if there are two, or one is set against the rest."""
        mode = check.choice(self.multi_class, "multi_class", MODES)
        logistic = isinstance(loss, losses.Logistic)
        if mode == "multinomial" and not logistic:
            raise ValueError(f"multi_class='multinomial' is for loss='logistic', got {loss!r}.")
        hinge = isinstance(loss, losses.Hinge | losses.SmoothedHinge)
        if mode == "crammer_singer" and not hinge:
            raise ValueError(
                "multi_class='crammer_singer' is for loss='hinge' or loss='smoothed_hinge', got "
                f"{loss!r}."
            )
        if K == 2 or mode == "ovr" or (mode == "auto" and not logistic):
            return None
        if logistic:
            return losses.Multinomial(K)
        return losses.MulticlassHinge(loss.gamma / 2, K)  # with two classes, the same loss

    def _joint_plan(
        self,
        X: Stored,
        classes: Array,
        codes: Index,
        weights: Vector | None,
        loss: losses.OutputsLoss,
        alpha: float,
        base: ERM | None,
    ) -> Plan:
        """One problem over all classes."""
        if base is not None and len(classes) != base.K:  # a class is not in this fold
            base = None
        problem = self._problem(X, codes, weights, loss, alpha, base)
        mode = "multinomial" if isinstance(loss, losses.Multinomial) else "crammer_singer"

        def describe(answers: Sequence[Answer]) -> dict[str, Any]:
            (r,) = answers
            return {
                "classes_": classes,
                "multi_class_": mode,
                "coef_": np.ascontiguousarray(r.w.T),
                "intercept_": np.array(np.broadcast_to(r.intercept, len(classes))),
                "dual_coef_": np.ascontiguousarray(r.x.T),
            }

        return Plan([problem], [f"all {len(classes)} classes"], describe)

    def _scores(
        self, X: Stored, y: Array, W: Array, b: Array, sample_weight: Vector | None = None
    ) -> Vector:
        """The accuracy on valid data of the one model that W and b are."""
        z = X @ W.T + b
        found = self.classes_[z.argmax(axis=1) if len(W) > 1 else (z[:, 0] > 0).astype(int)]
        return np.array([np.average(found == y, weights=sample_weight)])

    @staticmethod
    def _scored_by(scoring: object) -> bool:
        """Whether `_scores` has this score."""
        return scoring is None or scoring == "accuracy"

    @staticmethod
    def _scorable(y: Array, sample_weight: Vector | None = None) -> bool:
        """Whether `_scores` are numbers."""
        return len(y) > 0 if sample_weight is None else bool(np.any(sample_weight > 0))

    def decision_function(self, X: MatrixLike) -> Array:
        """a' w + b for each sample, and for each class if there are more than two.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples by features.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) in the order of `classes_`
        """
        check_sparse(X, "X")
        scores: Array = super().decision_function(X)
        return scores

    @available_if(_has_probabilities)
    def predict_proba(self, X: MatrixLike) -> Array:
        """The probabilities of the classes, for loss="logistic" only.

        With more than two classes the softmax of the decisions, or with multi_class="ovr" those of
        one against the rest, scaled to sum to one.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples by features.

        Returns
        -------
        array of shape (n_samples, n_classes), in the order of `classes_`
        """
        check_is_fitted(self)
        shares: Array
        if self.multi_class_ == "multinomial":
            shares = softmax(self.decision_function(X), axis=1)
        else:
            shares = self._predict_proba_lr(X)
        return shares

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: MatrixLike) -> Array:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples by features.

        Returns
        -------
        array of shape (n_samples, n_classes), in the order of `classes_`
        """
        scores: Array = self.decision_function(X)
        logs: Array
        if self.multi_class_ == "multinomial":
            logs = log_softmax(scores, axis=1)
        elif scores.ndim == 1:
            logs = -np.logaddexp(0.0, np.column_stack([scores, -scores]))
        else:
            each = -np.logaddexp(0.0, -scores)
            logs = each - np.logaddexp.reduce(each, axis=1, keepdims=True)
        return logs


class APCGClassifier(Classifier):
    """A linear classifier, trained to a certified distance from the optimum.

    minimize  the mean of phi(y_i (a_i' w + b)) + alpha g(w),  y_i = -1 or 1

    The intercept b has no penalty. With more than two classes see `multi_class`.

    Parameters
    ----------
    loss : {"smoothed_hinge", "hinge", "squared_hinge", "logistic"}, default="smoothed_hinge"
        phi. "logistic" has probabilities. Or an object of `apcg.losses`.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        g: (1/2)|w|^2, |w|_1, or l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2. Or an object of
        `apcg.penalties`.
    alpha : float, default=1e-4
        The weight of the penalty. For the C of LogisticRegression and LinearSVC it is
        1/(C n_samples), or 1/(C sum of the weights).
    l1_ratio : float, default=0.5
        For "elasticnet".
    positive : bool or (lower, upper), default=False
        Keep w >= 0, or within bounds, a number or one for each feature; the intercept is free.
    gamma : float, default=1.0
        For "smoothed_hinge": how smooth. 0 would be the hinge.
    multi_class : {"auto", "multinomial", "ovr", "crammer_singer"}, default="auto"
        With more than two classes: "multinomial", for "logistic", is the softmax, one problem over
        all classes; "crammer_singer", for "hinge" and "smoothed_hinge", is
        max_k (z_k + [k != y]) - z_y or its smoothed form; "ovr" is one problem for each class
        against the rest. "auto" is "multinomial" for "logistic" and "ovr" for the others. Two
        classes are one problem of margins, whatever this says.
    fit_intercept : bool, default=True
        Whether predictions have a constant b.
    tol : float, default=1e-6
        The relative duality gap to stop at: the objective is then within this of the optimum.
    max_epochs : int, default=1000
        Passes over the data. If tol is not reached by then, a ConvergenceWarning says so.
    method : str, default="auto"
        As in `apcg.solve`.
    class_weight : dict or "balanced", default=None
        The weight of a sample is multiplied by that of its class. "balanced" makes the weights of
        all classes equal in sum.
    warm_start : bool, default=False
        Begin where the last fit ended, if classes and features are as many.
    random_state : int, RandomState, Generator or None, default=None
        The order of the coordinates. An integer gives the same result every time.
    verbose : int, default=0
        1 says what "auto" chose and why, and shows a progress bar on a terminal.
    n_jobs : int, default=None
        Threads. Problems of one class against the rest are shared out among them, and their
        results stay the same. One problem is solved as by `apcg.solve` with n_jobs.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features), or (n_classes, n_features) for more than two
    intercept_ : array of shape (1,) or (n_classes,)
    dual_coef_ : array of shape (1, n_samples) or (n_classes, n_samples)
        The dual point x that certifies the result; see docs/estimators.md.
    multi_class_ : {"multinomial", "ovr", "crammer_singer"}
        What was solved; "ovr" for two classes.
    duality_gap_ : float, or array of shape (n_classes,)
        The objective is at most this far from the optimum.
    n_iter_ : int
        Passes over the data; of more than one problem, the most.
    status_ : str, or list of them
        Why it stopped; `status_.code` for programs.
    trace_ : `apcg.Trace`, or list of them
        The record of the checks, with `to_pandas()` and `plot()`.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,), if X has names for its columns

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from apcg import APCGClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), APCGClassifier(loss="logistic", random_state=0))
    >>> model.fit(X, y).score(X, y) > 0.98
    True
    >>> model[-1].status_.code
    'converged'
    """

    @answers_other_names
    def __init__(
        self,
        loss: str | losses.Loss = "smoothed_hinge",
        *,
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        l1_ratio: float = 0.5,
        positive: bool | Bounds = False,
        gamma: float = 1.0,
        multi_class: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 1000,
        method: str = "auto",
        class_weight: ClassWeights | str | None = None,
        warm_start: bool = False,
        random_state: Seed = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.gamma = gamma
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.method = method
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> APCGClassifier:
        """Train.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples by features, dense or sparse, float32 or float64. Not copied if it is CSR or
            C-ordered.
        y : array of shape (n_samples,)
            The class of each sample: numbers or strings.
        sample_weight : array of shape (n_samples,), default=None
            Non-negative numbers; integers equal repetition of rows.

        Returns
        -------
        self
        """
        X, classes, codes, weights = self._validated(X, y, sample_weight)
        plan = self._plan(X, classes, codes, weights, self.alpha)
        same = np.array_equal(getattr(self, "classes_", ()), classes)
        starts = self._starts(plan) if same else [None] * len(plan.problems)
        self._finish(plan, starts, Task.root(self, len(plan.problems), X, y, weights))
        return self
