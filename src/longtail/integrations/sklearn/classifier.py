r"""Logit adjustment around any scikit-learn classifier (LA eq. 9 with a target, LADE eq. 4).

    f_y + τ·(log t_y − log c_y),        f = log predict_proba of the classifier inside

c is the prior its scores carry: that of the training labels with their sample weights, times its
class weights (`carried`). t is the target. τ = 1 is the exact move for a classifier whose
probabilities are right; one that is too sure of itself needs more, so by default τ is chosen on
out-of-fold scores.

Carries: the target, if τ is 1 or was chosen; c^(1−τ)·t^τ for another τ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from longtail.core import Prior, Scores
from longtail.core.arrays import Floats, Numbers
from longtail.core.softmax import softmax
from longtail.integrations.sklearn import adjustment, multi_label, training_set
from longtail.integrations.sklearn.carried import class_logits
from longtail.posthoc import LogitAdjustment, chain_affine
from longtail.posthoc.tau import Criterion
from longtail.shift import PriorEstimate, estimate_prior


class LogitAdjustedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for a target prior, around one that was trained under another.

    The classifier inside is fitted on all samples. Its scores are then moved from the prior they
    carry to the target, so that `predict_proba` speaks about the target, and `predict` takes the
    most likely class there: with the uniform target, the one that is best for balanced accuracy.

    Args:
        estimator: A classifier with `predict_proba` or `decision_function`, or a pipeline that
            ends in one. Decision values are no logits, and are calibrated first.
        tau: How far to move; 1 is the exact move, "auto" chooses by cross-validation.
        target: The prior to move to. "uniform"; "prior", that of the training labels, which undoes
            class weights and leaves other classifiers as they are, for probabilities best with
            criterion="nll"; one probability or count for each of `classes_`, or a mapping from
            labels; of several labels one probability of yes each, or `LabelOdds`; "estimate", that
            of the samples given to `predict` and `predict_proba`, estimated anew on every call: see
            `estimate_target`.
        cv: Out of how many folds τ is chosen, or a splitter, or an iterable of splits. A class may
            have fewer samples than there are folds.
        criterion: What τ is best for: "accuracy_under_target", "nll", "brier" or "ece".
        calibration: Before the move, on out-of-fold scores: "temperature"; "bias_corrected", a
            temperature and a bias a class, which takes no account of sample weights; None. "auto"
            is bias-corrected for decision values and for an estimated target, else a temperature
            if τ is chosen and None if it is given.
        carried: The prior that the scores of the estimator carry. "train", from the training
            labels, sample weights and class weights, or measured where weights met a model that can
            fit its samples regardless of them, as forests do; "measure", fitted on out-of-fold
            scores, for one that resamples; one probability or count a class, for a frozen one.
        n_jobs: How many folds are fitted at once.
        random_state: Of the folds, and of every random state in the estimator that is not set.

    Attributes:
        estimator_: The fitted classifier inside; `n_features_in_` and `feature_names_in_` are its.
        classes_: The labels, sorted, of which `class_count_` says how many training samples each
            has and `prior_` their prior, by their weights if they have any.
        carried_: The prior that the scores of `estimator_` carry.
        target_: The prior moved to, by `tau_`; None if each call estimates its own.
        calibrator_: What is done to the scores before the move; None for nothing.
        adjuster_: The move. Where τ was chosen, `adjuster_.choice` says how sure that is.
        out_of_fold_scores_: What τ was chosen on, calibrated and not yet moved; None without need.
        estimators_: Of several labels, the classifier of each, which has all of these; `carried_`
            and `target_` are `LabelOdds` then, and `classes_` lists those of each.

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import balanced_accuracy_score
    >>> X, y = make_classification(6000, n_classes=3, n_informative=4, weights=[0.9, 0.08],
    ...                            flip_y=0, random_state=0)
    >>> plain = LogisticRegression().fit(X[:3000], y[:3000])
    >>> adjusted = LogitAdjustedClassifier(LogisticRegression(), random_state=0)
    >>> adjusted.fit(X[:3000], y[:3000]).carried_
    Prior([0.9, 0.08, 0.02])
    >>> [balanced_accuracy_score(y[3000:], m.predict(X[3000:])) for m in (plain, adjusted)]
    [0.5, 0.7]
    """

    # The classifiers of each label; none if each sample has one class.
    estimators_: tuple[LogitAdjustedClassifier, ...] = ()

    def __init__(
        self,
        estimator: Any,
        *,
        tau: adjustment.Tau = "auto",
        target: adjustment.Target = "uniform",
        cv: Any = 5,
        criterion: Criterion = "accuracy_under_target",
        calibration: adjustment.Calibration = "auto",
        carried: adjustment.Carried = "train",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.tau = tau
        self.target = target
        self.cv = cv
        self.criterion = criterion
        self.calibration = calibration
        self.carried = carried
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any
    ) -> LogitAdjustedClassifier:
        """Fit the estimator on all samples, and what its scores need on out-of-fold ones.

        Args:
            X: Whatever the estimator takes: array, sparse matrix, data frame, list of texts.
            y: One label a sample; or a matrix of 0 and 1 of two columns or more, a column a label
                that a sample may have beside others.
            sample_weight: Handed on to the estimator, or to the last step of a pipeline; an error
                if that takes none. The prior is that of the weighted labels.
            **fit_params: Handed on to the estimator's fit; what has one entry a sample is cut to
                each fold. Under scikit-learn's metadata routing, what the estimator requests.
        """
        options = adjustment.Options.of(self)
        self.__dict__.pop("estimators_", None)
        if multi_label.is_label_matrix(y):
            return self._fit_labels(X, y, sample_weight, fit_params)
        y = training_set.checked_labels(y)
        X, y = indexable(X, y)
        metadata = training_set.routed(self, sample_weight, fit_params)
        labels = training_set.TrainingLabels.of(y, metadata.weights)
        data = training_set.TrainingSet(X, y, labels, metadata)
        estimator, seed = training_set.seeded(self.estimator, self.random_state)
        self.estimator_ = data.fit(estimator)
        training_set.check_trained_on(self.estimator_, labels)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.classes_, self.class_count_, self.prior_ = labels.classes, labels.counts, labels.prior
        self.target_ = adjustment.target_prior(self.target, self.prior_, self.classes_)
        fitted = adjustment.fit_adjustment(
            self.estimator_, estimator, data, self.target_, options, seed
        )
        self.carried_, self.calibrator_ = fitted.carried, fitted.calibrator
        self.out_of_fold_scores_, self.tau_ = fitted.scores, fitted.move.tau
        self._move_by(fitted.move)
        return self

    def _fit_labels(
        self, X: Any, y: Any, sample_weight: Any, fit_params: dict[str, Any]
    ) -> LogitAdjustedClassifier:
        """Fit a classifier on each column of y."""
        each, labels = multi_label.fit_labels(self, X, y, sample_weight, fit_params)
        self.estimators_ = tuple(each)
        first, self._label_type = self.estimators_[0], labels.dtype
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        facts: dict[str, Any] = {"classes_": [each.classes_ for each in self.estimators_]}
        for name in ("carried_", "target_"):  # odds, where those of one class a sample are priors
            facts[name] = multi_label.odds_of([getattr(e, name) for e in self.estimators_])
        self.__dict__.update(facts)
        return self

    def to_scores(self, X: Any, y: Any = None) -> Scores:
        """The adjusted scores with what they carry, and labels if y is given: for `lt.metrics`."""
        if self.estimators_:
            return multi_label.label_scores(self.estimators_, X, y)
        scores = self._calibrated_scores(X)
        if y is not None:
            scores = replace(scores, labels=training_set.codes_of(y, self.classes_))
        if self.target_ is not None:
            return self.adjuster_(scores)
        return self._move_to(self._estimate(scores, intervals=False).prior)(scores)

    def estimate_target(self, X: Any) -> PriorEstimate:
        """The label prior of unlabelled samples, which is the target from now on.

        For target="estimate". Without it every call of `predict` and `predict_proba` estimates the
        prior of the samples it is given, so that what is said of one depends on the others.
        """
        if not isinstance(self.target, str) or self.target != "estimate":
            raise ValueError(
                f'estimate_target needs a classifier made with target="estimate", this one has '
                f"target={self.target!r:.60}"
            )
        estimate = self._estimate(self._calibrated_scores(X), intervals=True)
        self.target_ = estimate.prior
        self._move_by(self._move_to(estimate.prior))
        return estimate

    def _move_to(self, target: Prior) -> LogitAdjustment:
        return LogitAdjustment(self.carried_, self.tau_, target)

    def _move_by(self, move: LogitAdjustment) -> None:
        """Keep the move, and with a known target what it and the calibrator do in one step."""
        self.adjuster_ = move
        steps = [move] if self.calibrator_ is None else [self.calibrator_, move]
        whole = chain_affine(steps, self.carried_, len(self.classes_))
        self._step = None if self.target_ is None else whole

    def _calibrated_scores(self, X: Any) -> Scores:
        """What the estimator says, before the move."""
        check_is_fitted(self)
        logits = class_logits(self.estimator_, X)
        names = [str(label) for label in self.classes_]
        # Decision values may sum to anything.
        scores = Scores(logits, None, self.carried_, self.class_count_, names, _are_logits=True)
        return scores if self.calibrator_ is None else self.calibrator_(scores)

    def _estimate(self, scores: Scores, intervals: bool) -> PriorEstimate:
        validation, calibrate = self.out_of_fold_scores_, self.calibrator_ is None
        return estimate_prior(scores, "em", validation, calibrate=calibrate, intervals=intervals)

    def decision_function(self, X: Any) -> Floats:
        """The adjusted logits; of two classes, that of the second less that of the first.

        Of several labels the logits of yes, a column a label.
        """
        if self.estimators_:
            return np.stack([each.decision_function(X) for each in self.estimators_], axis=1)
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities under the target: softmax of the adjusted logits.

        Of several labels the probabilities of yes, a column a label.
        """
        if self.estimators_:
            return np.stack([each.predict_proba(X)[:, 1] for each in self.estimators_], axis=1)
        return softmax(self._logits(X))

    def _logits(self, X: Any) -> Floats:
        """Those of `to_scores`, by one scale and one shift where these are known since fit."""
        step = getattr(self, "_step", None)
        if step is None:
            return np.asarray(self.to_scores(X).logits)
        return np.asarray(class_logits(self.estimator_, X) * step.scale + step.shift)

    def predict(self, X: Any) -> Numbers:
        """The most likely label of each sample under the target; of several labels 0 or 1 each."""
        if self.estimators_:
            said = np.stack([each.predict(X) for each in self.estimators_], axis=1)
            return said.astype(self._label_type, copy=False)
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def get_metadata_routing(self) -> MetadataRouter:
        """Who is asked for metadata: the estimator for its fit, the splitter for its split."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router = router.add(estimator=self.estimator, method_mapping=fit)
        return router.add(splitter=self.cv, method_mapping=split)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.non_deterministic = inner.input_tags, inner.non_deterministic
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.multi_label = True
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        return tags
