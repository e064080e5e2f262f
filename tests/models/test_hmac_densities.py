"""HMAC with the density from a field or from leaves: against the oracle, exact sums, and itself elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac import density_choice, field_climbing
from parallel_mix.models.hmac.points import measure_frame
from parallel_mix.models.hmac.prediction import predict_hmac
from parallel_mix.models.hmac.result import HmacSettings
from tests.conftest import blobs
from tests.models.test_hmac_oracle import DATA, FEW_LEVELS, SAME_PARTITION, beyond_boundary, fit, oracle

pytest.importorskip("finufft", reason="a field needs finufft")
DENSITIES = ("field", "tree")
SETS = {
    **{name: DATA[name] for name in ("moons, 2", "circles, 2", "blobs, 2", "blobs, 3")},
    "line, 1": lambda: blobs(150, 1, 5, 2),
    "constant column": lambda: np.column_stack([blobs(120, 2, 3, 4), np.full(120, 7.0)]),
    "equal rows": lambda: np.repeat(blobs(40, 2, 3, 4), 3, axis=0),
}


CASES = [(density, name) for density, sets in (("field", SETS), ("tree", {**SETS, **DATA})) for name in sets]


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize(("density", "name"), CASES)
def test_the_same_clusters_as_the_oracle(density: str, name: str, nested: bool) -> None:
    X = {**SETS, **DATA}[name]()
    result = fit(X, density=density, nested=nested, **FEW_LEVELS)
    assert result.settings.density == density
    for level, labels in enumerate(oracle(X, result.bandwidths, nested=nested)):
        rows = beyond_boundary(result, level)
        assert rows.mean() > 0.95
        assert adjusted_rand_score(labels[rows], result.levels[level].labels[rows]) == 1.0, f"level {level}"


@pytest.mark.parametrize(
    ("density", "d"), [("field", 1), ("field", 2), ("field", 3), ("tree", 1), ("tree", 4), ("tree", 9)]
)
def test_modes_and_densities_are_those_of_exact_sums(density: str, d: int) -> None:
    X = blobs(2_000, d, 6, d)
    w = np.random.default_rng(0).uniform(0.2, 2.0, len(X))
    for weights in (None, w):
        one, other = (fit(X, w=weights, density=kind) for kind in (density, "exact"))
        for a, b in zip(one.levels, other.levels, strict=True):
            rows = np.setdiff1d(np.arange(len(X)), np.concatenate([a.boundary, b.boundary]))
            assert adjusted_rand_score(a.labels[rows], b.labels[rows]) == 1.0
            modes, first = np.unique(a.labels[rows], return_index=True)
            same = b.labels[rows][first]  # modes of nearly the same density may be numbered otherwise
            np.testing.assert_allclose(a.modes[modes], b.modes[same], atol=1e-3 * a.bandwidth)
            np.testing.assert_allclose(a.log_density[modes], b.log_density[same], atol=1e-4)


@pytest.mark.parametrize("density", DENSITIES)
def test_workers_change_no_bit(density: str, backend: Backend) -> None:
    X = blobs(900, 2, 5, 1) if density == "tree" else blobs(5_000, 2, 5, 1)
    for nested in (True, False):
        one = fit(X, density=density, nested=nested, **FEW_LEVELS)
        other = fit(X, backend, density=density, nested=nested, **FEW_LEVELS)
        for a, b in zip(one.levels, other.levels, strict=True):
            for name in ("modes", "log_density", "labels", "iterations", "boundary", "parent"):
                assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("change", SAME_PARTITION)
def test_what_must_not_change_the_answer(change: str, density: str) -> None:
    X = blobs(160, 3, 4, 9)
    Z, order = SAME_PARTITION[change](X, np.random.default_rng(3).permutation(len(X)))
    unit = {"times 1e200": 1e200, "times 1e-200": 1e-200}.get(change, 1.0)
    bandwidths = unit * np.array([0.6, 0.9, 1.4, 2.5])
    one = fit(X, density=density, bandwidths=(0.6, 0.9, 1.4, 2.5))
    other = fit(Z, density=density, bandwidths=tuple(bandwidths))
    for a, b in zip(one.levels, other.levels, strict=True):
        assert adjusted_rand_score(a.labels[order], b.labels) == 1.0


def test_rows_of_almost_no_weight_far_from_the_others_climb_on_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.concatenate([blobs(200, 2, 3, 5), [[40.0, 40.0], [40.6, 40.0], [40.0, 40.5]]])
    w = np.ones(len(X))
    w[-3:] = 1e-9
    ascend, climbed = field_climbing.ascend_on_tree, []
    monkeypatch.setattr(field_climbing, "ascend_on_tree", lambda *a: climbed.append(len(a[0])) or ascend(*a))
    one, other = (fit(X, w=w, density=density, bandwidths=(0.7, 1.5)) for density in ("field", "exact"))
    assert climbed[0] == 3
    for a, b in zip(one.levels, other.levels, strict=True):
        assert adjusted_rand_score(a.labels, b.labels) == 1.0


def chosen(n: int, d: int, far: float = 10.0, **options: Any) -> tuple[str, str]:
    """The density of so many rows, and what is said of it."""
    X = np.random.default_rng(0).normal(size=(n, d))
    X[0] = far
    source = HeldRows(X)
    settings, remark = density_choice.decided(source, HmacSettings((1.0,), **options), measure_frame(source, False))
    return settings.density, remark


def test_what_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(10_000, 2) == ("field", "")
    assert chosen(9_999, 2) == ("tree", "")
    assert chosen(10_000, 4) == ("tree", "")
    assert chosen(999, 4) == ("exact", "")
    assert chosen(10_000, 2, approach=1) == ("exact", "")
    assert chosen(10_000, 2, density="exact") == ("exact", "")
    assert chosen(10_000, 2, far=1e9) == ("tree", "")
    assert chosen(50, 2, density="tree") == ("tree", "")
    monkeypatch.setattr(density_choice, "find_spec", lambda name: None)
    density, remark = chosen(10_000, 2)
    assert density == "tree"
    assert "finufft, which is not installed: pip install" in remark
    assert chosen(10_000, 4) == ("tree", ""), "it would not have been asked for"


def test_where_there_can_be_no_field_it_is_a_sentence() -> None:
    with pytest.raises(InputError, match="one to three columns, not 5"):
        fit(blobs(50, 5), density="field")
    for density in DENSITIES:
        with pytest.raises(InputError, match="Approach 1 is by exact sums"):
            fit(blobs(50, 2), density=density, approach=1)
    with pytest.raises(InputError, match="some rows lie far out"):
        fit(np.concatenate([blobs(50, 3), [[1e9, 0, 0]]]), density="field", bandwidths=(1.0,))
    with pytest.raises(InputError, match="one of auto, exact, field"):
        HmacSettings(density="grid")


@pytest.mark.parametrize("density", ["exact", "tree"])
def test_where_numbers_have_too_few_digits_it_is_a_sentence(density: str) -> None:
    """Beyond, steps were lost in rounding: other modes, and nothing said so."""
    X = blobs(60, 2)
    for far in (1e11, -1e11, 1e308):
        with pytest.raises(InputError, match=r"Column 2 reaches .* too few digits"):
            fit(np.concatenate([X, [[0.0, far]]]), density=density, bandwidths=(0.5,))
    with pytest.raises(InputError, match="too few digits"):
        fit(X, density=density, bandwidths=(1e-320,))
    for weight in (1e308, 1e-320):
        with pytest.raises(InputError, match="The weights add to"):
            fit(X, w=np.full(60, weight), density=density, bandwidths=(0.5,))
    one, other = (fit(np.concatenate([X, [[0.0, far]]]), density=density, bandwidths=(0.5,)) for far in (1e3, 1e7))
    assert (one.levels[0].labels == other.levels[0].labels).all()


@pytest.mark.parametrize("density", ["exact", "tree"])
def test_a_row_far_out_hides_none_of_those_that_share_its_leaf(density: str) -> None:
    """Of so wide a leaf sums in single precision tell nothing, nor that they do not."""
    r = np.random.default_rng(0)
    X = np.concatenate([r.normal(size=(150, 2)) + centre for centre in (0.0, 3.0, 6.0)])
    without = fit(X, density=density, bandwidths=(0.5, 1.0))
    for far in (1e9, 4.9e9):
        result = fit(np.concatenate([X, [[far, 0.0]]]), density=density, bandwidths=(0.5, 1.0))
        for one, other in zip(without.levels, result.levels, strict=True):
            assert len(other.sizes) == len(one.sizes) + 1
            assert adjusted_rand_score(one.labels, other.labels[:-1]) == 1.0


@pytest.mark.parametrize("density", DENSITIES)
def test_the_densities_at_the_modes_are_those_of_the_definition(density: str) -> None:
    X = blobs(400, 2, 4, 8)
    result = fit(X, density=density, bandwidths=(0.15, 0.4, 1.1))
    Z = result.frame.inward(X)
    for level in result.levels:
        squares = ((level.modes[:, None] - Z) ** 2).sum(axis=2) / level.bandwidth**2
        exact = np.log(np.exp(-squares / 2.0).mean(axis=1))
        np.testing.assert_allclose(level.log_density, exact, atol=2e-4 if density == "tree" else 1e-5)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("nested", [True, False])
def test_new_points_climb_to_the_modes_of_exact_sums(nested: bool, density: str, backend: Backend) -> None:
    X = blobs(600, 2, 5, 1)
    new = np.concatenate([X[:50], np.random.default_rng(0).uniform(-12, 12, (100, 2)), [[300.0, -20.0], [1e6, 1e6]]])
    for level in (0, 3):
        found = []
        for kind in (density, "exact"):
            result = fit(X, density=kind, nested=nested, **FEW_LEVELS)
            labels = predict_hmac(result, HeldRows(X, None), new, level, backend)
            rows = np.setdiff1d(np.arange(50), np.concatenate([one.boundary for one in result.levels[: level + 1]]))
            np.testing.assert_array_equal(labels[rows], result.levels[level].labels[rows])
            found.append(labels)
        one, other = found
        if density == "field":
            np.testing.assert_array_equal(one, other)
        # On leaves modes of nearly the same density may be numbered otherwise.
        np.testing.assert_array_equal(one < 0, other < 0)
        assert adjusted_rand_score(one, other) == 1.0


@pytest.mark.parametrize("density", ["exact", *DENSITIES])
def test_of_no_new_points_there_are_no_labels(density: str, backend: Backend) -> None:
    X = blobs(600, 2, 5, 1)
    result = fit(X, density=density, **FEW_LEVELS)
    assert predict_hmac(result, HeldRows(X, None), X[:0], 1, backend).tolist() == []


def test_a_new_point_very_far_away_changes_nothing_for_the_others(backend: Backend) -> None:
    source, new = HeldRows(blobs(1_500, 3, 5)), np.random.default_rng(2).uniform(-8, 8, (200, 3))
    far = np.concatenate([[[-3e12, 0.0, 0.0]], new])
    for density in ("exact", "tree"):
        result = fit(source.X, density=density, bandwidths=(0.7,))
        alone = predict_hmac(result, source, new, 0, backend)
        assert (predict_hmac(result, source, far, 0, backend)[1:] == alone).all()
