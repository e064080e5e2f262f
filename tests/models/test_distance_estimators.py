"""Estimators on precomputed distances, as scikit-learn uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from parallel_mix import GeneralizedKMeans, HLMClassifier, KernelHLMClassifier, VertexSubstitution, WardDistance
from parallel_mix.backends.serial import SerialBackend
from tests.conftest import blobs

X = blobs(150, 3, 4)
Y = np.array(["a", "b", "c"])[np.arange(150) % 3]
X[Y == "b"] += 3.0
D = cdist(X, X)
CLUSTERERS = [VertexSubstitution(4, restarts=3), GeneralizedKMeans(4), WardDistance(4)]
CLASSIFIERS = [HLMClassifier(2, restarts=3), HLMClassifier((1, 2, 0), restarts=2, folds=3), KernelHLMClassifier()]


@pytest.mark.parametrize("estimator", CLUSTERERS, ids=lambda estimator: type(estimator).__name__)
def test_clusterers(estimator: Any) -> None:
    labels = clone(estimator).fit_predict(D)
    model = clone(estimator).fit(D)
    np.testing.assert_array_equal(labels, model.labels_)
    assert model.inertia_ == pytest.approx(D[np.arange(150), model.medoid_indices_[labels]].sum())
    assert (np.diff(np.bincount(labels)) <= 0).all()
    assert list(model.predict(D[model.medoid_indices_])) == [0, 1, 2, 3]
    twice = np.repeat(np.arange(150), 2)
    if not isinstance(estimator, GeneralizedKMeans):
        weighted = clone(estimator).fit(D, sample_weight=np.full(150, 2.0)).inertia_
        assert weighted == pytest.approx(2.0 * model.inertia_, rel=0.02)
    assert len(clone(estimator).fit(D[np.ix_(twice, twice)]).labels_) == 300


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=["mixture", "selection", "kernel"])
def test_classifiers(estimator: Any) -> None:
    model = clone(estimator).fit(D, Y)
    assert list(model.classes_) == ["a", "b", "c"]
    p = model.predict_proba(D)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.score(D, Y) > 0.5
    scores = cross_val_score(clone(estimator), D, Y, cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    many = {} if isinstance(estimator, KernelHLMClassifier) else {"restarts": 200}  # work enough to be handed out
    with SerialBackend(1) as one:
        same = clone(estimator).set_params(backend=one, **many).fit(D, Y)
    np.testing.assert_array_equal(same.predict_proba(D), clone(estimator).set_params(**many).fit(D, Y).predict_proba(D))


def test_a_grid_over_components() -> None:
    search = GridSearchCV(HLMClassifier(restarts=2), {"n_components": [1, 3], "shape": ["common", "class"]}, cv=3)
    assert search.fit(D, Y).best_params_["n_components"] in (1, 3)


@pytest.mark.parametrize("estimator", [*CLUSTERERS, CLASSIFIERS[0], CLASSIFIERS[2]], ids=lambda e: type(e).__name__)
def test_bad_distances_are_sentences(estimator: Any) -> None:
    for odd, words in (
        (D[:5], "no square matrix"),
        (-D, "Negative values"),
        (D * np.nan, "NaN"),
        (D * 1e150, "squares"),
    ):
        with pytest.raises(ValueError, match=words):
            clone(estimator).fit(odd, Y[: len(odd)])
    fitted = clone(estimator).fit(D, Y)
    with pytest.raises(ValueError, match="150 features"):
        fitted.predict(D[:, :7])


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (HLMClassifier(clustering="vhs"), "no clustering 'vhs'"),
        (HLMClassifier(shape="any"), "no shape 'any'"),
        (HLMClassifier(-1), "numbers of 1 or more"),
        (HLMClassifier(()), "numbers of 1 or more"),
        (HLMClassifier(restarts=0), "1 restarts or more"),
        (HLMClassifier((1, 2), folds=1), "2 folds or more"),
        (KernelHLMClassifier(scale=-1.0), "above 0"),
        (VertexSubstitution(3, restarts=0), "1 restart or more"),
    ],
)
def test_bad_parameters_are_sentences(estimator: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        estimator.fit(D, Y)


def test_classes_and_rows_without_weight() -> None:
    w = np.where(Y == "c", 0.0, 1.0)
    model = HLMClassifier(2, restarts=2).fit(D, Y, sample_weight=w)
    p = model.predict_proba(D)
    assert p.shape == (150, 3)
    np.testing.assert_allclose(p[:, 2], 0.0)
    assert set(model.predict(D)) == {"a", "b"}
    assert len(WardDistance(4).fit(D, sample_weight=w).medoid_indices_) == 4
    skew = D * np.random.default_rng(0).uniform(1.0, 1.5, D.shape)
    for estimator in (WardDistance(4), HLMClassifier(2, clustering="ward")):
        with pytest.raises(ValueError, match="symmetric"):
            estimator.fit(skew, Y)


def test_a_shape_by_hand_decides_the_scale() -> None:
    b = [KernelHLMClassifier(shape=shape).fit(D, Y).model_.b[0] for shape in (1.0, 4.0)]
    assert b[0] == pytest.approx(4.0 * b[1])


@pytest.mark.parametrize(
    "estimator", [VertexSubstitution(2, restarts=2), KernelHLMClassifier()], ids=lambda e: type(e).__name__
)
def test_scikit_learns_own_checks(estimator: Any) -> None:
    failed = check_estimator(estimator, on_fail=None)
    names = {check["check_name"]: str(check["exception"]) for check in failed if check["status"] == "failed"}
    names.pop("check_clustering", None)  # clusters vectors, whatever the tags say
    assert not names, names
