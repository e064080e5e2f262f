"""Votes of neighbours, counted by hand; many numbers of neighbours at once, asked for in any order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from parallel_mix import AffinityKNNClassifier, KNNClassifier, KRIKNNClassifier, KRRKNNClassifier
from parallel_mix.models.similarity import neighbour_classifiers
from parallel_mix.models.similarity.classifiers import PairwiseClassifier
from parallel_mix.models.similarity.neighbour_classifiers import VectorKNNClassifier

R = np.random.default_rng(0)
X, NEW = R.normal(size=(50, 3)), R.normal(size=(20, 3))
Y = np.array(["a", "b", "b", "c", "c", "c"])[R.integers(0, 6, 50)]
GAPS, NEW_GAPS = (np.sqrt(((one[:, None] - X) ** 2).sum(axis=2)) for one in (X, NEW))
ORDERS = [(1, 4, 9, 50), (50, 9, 4, 1), (9, 1, 50, 4), (4, 9, 4, 1, 80)]


def vote(gaps: np.ndarray, k: int) -> str:
    """The class of most of the k nearest; of equal ones the class of most training points."""
    near = Counter(Y[np.argsort(gaps, kind="stable")[:k]])
    everywhere = Counter(Y)
    return str(max(near, key=lambda name: (near[name], everywhere[name])))


@pytest.mark.parametrize("ks", ORDERS)
@pytest.mark.parametrize("kind", ["distances", "similarities", "vectors"])
def test_each_number_of_neighbours_has_its_own_votes(kind: str, ks: tuple[int, ...]) -> None:
    model: PairwiseClassifier
    if kind == "vectors":
        model, new = VectorKNNClassifier().fit(X, Y), NEW
    elif kind == "distances":
        model, new = KNNClassifier(input="distances").fit(GAPS, Y), NEW_GAPS
    else:
        model, new = KNNClassifier().fit(-GAPS, Y), -NEW_GAPS
    predictions = model.predict_settings(new, [{"n_neighbors": k} for k in ks])
    expected = [[vote(gaps, k) for gaps in NEW_GAPS] for k in ks]
    assert predictions.tolist() == expected
    assert len({tuple(row) for row in expected}) > 3, "otherwise this would say nothing"


@pytest.mark.parametrize("classifier", [KNNClassifier, AffinityKNNClassifier, KRIKNNClassifier, KRRKNNClassifier])
@pytest.mark.parametrize("ks", ORDERS[1:])
def test_settings_are_answered_in_the_order_in_which_they_are_asked(
    classifier: type[PairwiseClassifier], ks: tuple[int, ...]
) -> None:
    model = classifier().fit(np.exp(-(GAPS**2)), Y)
    similar, settings = np.exp(-(NEW_GAPS**2)), [{"n_neighbors": k} for k in ks]
    predictions = model.predict_settings(similar, settings)
    for setting, told in zip(settings, predictions, strict=True):
        np.testing.assert_array_equal(model.predict_settings(similar, [setting])[0], told)


@pytest.mark.parametrize("kind, solver, noise", [(KRIKNNClassifier, "interpolation_weights", 1e-8),
                                                 (KRRKNNClassifier, "regression_weights", 1e-11)])  # fmt: skip
def test_ties_are_not_decided_by_what_a_solver_leaves(
    kind: type, solver: str, noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Similarities of few values have many ties; the last digits of another processor decided some of them."""
    A = np.round(np.random.default_rng(4).uniform(0, 1, (160, 160)), 1)
    S = np.minimum(A, A.T)
    S[range(160), range(160)] = 1.0
    y, settings = np.arange(80) % 2, [(k, ridge) for k in (2, 4) for ridge in (0.001, 1.0)]

    def told() -> list[list[int]]:
        return [kind(k, ridge=ridge).fit(S[:80, :80], y).predict(S[80:, :80]).tolist() for k, ridge in settings]

    exact, solved = told(), getattr(neighbour_classifiers, solver)
    r = np.random.default_rng(5)

    def roughly(*arguments: Any) -> np.ndarray:
        weights = solved(*arguments)
        return np.asarray(weights * (1.0 + noise * r.normal(size=weights.shape)))

    monkeypatch.setattr(neighbour_classifiers, solver, roughly)
    assert told() == exact
    monkeypatch.setattr(kind, "_rounding", 0.0)
    assert told() != exact, "there are ties"
