"""Estimators and functions of scikit-learn that take arrays of any library, each as a function of a conversion."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, model_selection, naive_bayes

from sklearn import pipeline, preprocessing  # isort: skip
from sklearn.metrics import pairwise

Convert = Callable[[np.ndarray], Any]
Case = Callable[[Convert], Any]

_draw = np.random.default_rng(0)
X = (_draw.normal(size=(60, 5)) * [1, 3, 1, 1, 1]).astype("f")
Y = (X @ [1, 2, -1, 0.5, 0] + 0.1 * _draw.normal(size=60)).astype("f")
GUESS = (Y + 0.1 * X[:, 0]).astype("f")
PAIR, GUESSED_PAIR = (Y > 0).astype("i4"), (GUESS > 0.5).astype("i4")
CLASSES, GUESSED_CLASSES = np.digitize(Y, [-2, 2]).astype("i4"), np.digitize(GUESS, [-1, 3]).astype("i4")
CHANCE = (1 / (1 + np.exp(-GUESS))).astype("f")
WEIGHTS = np.abs(Y) + np.float32(0.1)
HOLED = np.where(np.arange(300).reshape(60, 5) % 17 == 3, np.float32("nan"), X)
POSITIVE = np.abs(X)


def _scaled(scaler: Any, x: np.ndarray = X, weights: np.ndarray | None = None) -> Case:
    def case(a: Convert) -> Any:
        fitted = scaler().fit(a(x)) if weights is None else scaler().fit(a(x), sample_weight=a(weights))
        moved = fitted.transform(a(x))
        return moved, fitted.inverse_transform(moved) if hasattr(fitted, "inverse_transform") else moved

    return case


def _in_two_parts(a: Convert) -> Any:
    fitted = preprocessing.StandardScaler().partial_fit(a(X[:30])).partial_fit(a(X[30:]))
    return fitted.mean_, fitted.var_


def _principal(solver: str, whiten: bool) -> Case:
    def case(a: Convert) -> Any:
        options = {"random_state": 0, "power_iteration_normalizer": "QR"}
        fitted = decomposition.PCA(3, svd_solver=solver, whiten=whiten, **options).fit(a(X))
        moved = fitted.transform(a(X))
        return fitted.explained_variance_, abs(fitted.components_), abs(moved), fitted.inverse_transform(moved)

    return case


def _probabilities(a: Convert) -> Any:
    fitted = decomposition.PCA(3, svd_solver="full").fit(a(X))
    return fitted.score_samples(a(X)), fitted.get_covariance(), fitted.get_precision()


def _regressed(model: Any, **weights: np.ndarray) -> Case:
    def case(a: Convert) -> Any:
        fitted = model().fit(a(X), a(Y), **{name: a(values) for name, values in weights.items()})
        return fitted.coef_, fitted.intercept_, fitted.predict(a(X)), fitted.score(a(X), a(Y))

    return case


def _classified(model: Any, classes: np.ndarray = CLASSES) -> Case:
    def case(a: Convert) -> Any:
        fitted = model().fit(a(X), a(classes))
        return fitted.predict(a(X)), fitted.predict_proba(a(X)) if hasattr(fitted, "predict_proba") else 0

    return case


def _discriminants(a: Convert) -> Any:
    fitted = discriminant_analysis.LinearDiscriminantAnalysis().fit(a(X), a(CLASSES))
    return fitted.coef_, fitted.intercept_, fitted.means_, abs(fitted.transform(a(X)))


def _searched(a: Convert) -> Any:
    found = model_selection.GridSearchCV(_ridge(), {"alpha": [0.1, 1.0, 10.0]}).fit(a(X), a(Y))
    return found.best_score_, found.best_estimator_.coef_


def _chained(a: Convert) -> Any:
    chain = pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(3), _ridge())
    return chain.fit(a(X), a(Y)).predict(a(X))


def _ridge() -> Any:
    return linear_model.Ridge(solver="svd")


def _of(function: Any, *arrays: np.ndarray, **options: Any) -> Case:
    """The function of these arrays; options that are arrays are converted too."""

    def case(a: Convert) -> Any:
        named = {name: a(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}
        return function(*map(a, arrays), **named)

    return case


def _metrics(names: str, *arrays: np.ndarray, label: str = "", **options: Any) -> dict[str, Case]:
    """The metrics of these names that this version of scikit-learn has."""
    found = {name: getattr(metrics, name) for name in names.split() if hasattr(metrics, name)}
    return {name + label: _of(function, *arrays, **options) for name, function in found.items()}


_OF_NUMBERS = (
    "r2_score mean_squared_error mean_absolute_error root_mean_squared_error explained_variance_score "
    "mean_absolute_percentage_error mean_pinball_loss mean_tweedie_deviance median_absolute_error"
)
_OF_CLASSES = "f1_score precision_score recall_score jaccard_score"
_OF_PAIRS = "euclidean_distances linear_kernel polynomial_kernel rbf_kernel cosine_similarity cosine_distances"
_OF_POSITIVE_PAIRS = "additive_chi2_kernel chi2_kernel paired_euclidean_distances paired_cosine_distances"

CASES: dict[str, Case] = {
    "StandardScaler": _scaled(preprocessing.StandardScaler),
    "StandardScaler, holes": _scaled(preprocessing.StandardScaler, HOLED),
    "StandardScaler, weights": _scaled(preprocessing.StandardScaler, X, WEIGHTS),
    "StandardScaler, in two parts": _in_two_parts,
    "MinMaxScaler": _scaled(preprocessing.MinMaxScaler),
    "MinMaxScaler, holes": _scaled(lambda: preprocessing.MinMaxScaler(clip=True), HOLED),
    "MaxAbsScaler": _scaled(preprocessing.MaxAbsScaler),
    "MaxAbsScaler, holes": _scaled(preprocessing.MaxAbsScaler, HOLED),
    **{f"Normalizer, {norm}": _scaled(partial(preprocessing.Normalizer, norm)) for norm in ("l1", "l2", "max")},
    "Binarizer": _scaled(preprocessing.Binarizer),
    "PolynomialFeatures": _scaled(preprocessing.PolynomialFeatures),
    "KernelCenterer": _scaled(preprocessing.KernelCenterer, X @ X.T),
    "LabelEncoder": lambda a: preprocessing.LabelEncoder().fit_transform(a(CLASSES + 3)),
    **{f"PCA, {solver}": _principal(solver, False) for solver in ("full", "covariance_eigh", "randomized")},
    "PCA, whitened": _principal("full", True),
    "PCA, probabilities": _probabilities,
    "PCA, by share": lambda a: decomposition.PCA(0.9, svd_solver="full").fit(a(X)).explained_variance_ratio_,
    "Ridge": _regressed(_ridge),
    "Ridge, weights": _regressed(_ridge, sample_weight=WEIGHTS),
    "RidgeClassifier": _classified(lambda: linear_model.RidgeClassifier(solver="svd"), PAIR),
    "LinearDiscriminantAnalysis": _discriminants,
    "LinearDiscriminantAnalysis, classes": _classified(discriminant_analysis.LinearDiscriminantAnalysis),
    "GaussianNB": _classified(naive_bayes.GaussianNB),
    "train_test_split": lambda a: model_selection.train_test_split(a(X), a(PAIR), random_state=0),
    "train_test_split, by class": lambda a: model_selection.train_test_split(a(X), random_state=0, stratify=a(PAIR)),
    "cross_val_predict": lambda a: model_selection.cross_val_predict(_ridge(), a(X), a(Y)),
    "GridSearchCV": _searched,
    "make_pipeline": _chained,
    **_metrics(_OF_NUMBERS, Y, GUESS),
    **_metrics(_OF_NUMBERS, Y, GUESS, label=", weights", sample_weight=WEIGHTS),
    **_metrics("max_error", Y, GUESS),
    **_metrics("mean_squared_log_error mean_gamma_deviance mean_poisson_deviance", WEIGHTS, WEIGHTS * np.float32(1.5)),
    **_metrics("accuracy_score zero_one_loss hamming_loss confusion_matrix", CLASSES, GUESSED_CLASSES),
    **_metrics("accuracy_score", CLASSES, GUESSED_CLASSES, label=", weights", sample_weight=WEIGHTS),
    **_metrics(_OF_CLASSES, PAIR, GUESSED_PAIR),
    **_metrics(_OF_CLASSES, CLASSES, GUESSED_CLASSES, label=", mean", average="macro"),
    **_metrics("roc_curve precision_recall_curve roc_auc_score average_precision_score log_loss", PAIR, CHANCE),
    **{name: _of(getattr(pairwise, name), X[:20], X[20:40]) for name in _OF_PAIRS.split()},
    **{name: _of(getattr(pairwise, name), POSITIVE[:20], POSITIVE[20:40]) for name in _OF_POSITIVE_PAIRS.split()},
}
