"""Pictures of many points: an image of bins, and styles that stay from level to level."""

from __future__ import annotations

import numpy as np
import pytest

from parallel_mix import HMAC
from parallel_mix.plots.hmac_figures import principal_coordinates
from parallel_mix.plots.maps import FAINTEST, Cloud, draw_bins
from parallel_mix.plots.palette import colour_of, largest_part
from tests.conftest import blobs

pytest.importorskip("matplotlib")


def cloud_of(Z: np.ndarray, rows: int) -> Cloud:
    """The points in parts of so many rows."""
    return Cloud.of(lambda: ((a, Z[a : a + rows]) for a in range(0, len(Z), rows)))


@pytest.mark.parametrize("rows", [1_000, 300])
def test_a_bin_has_the_colour_of_most_of_its_points_and_is_as_opaque_as_there_are_many(rows: int) -> None:
    from matplotlib.figure import Figure

    r = np.random.default_rng(3)
    Z, numbers = r.uniform(-2, 5, (1_000, 2)), r.integers(-1, 3, 1_000)
    axes = Figure().add_subplot()
    fullest = draw_bins(axes, cloud_of(Z, rows), lambda a, b: numbers[a:b], bins=9)
    image, low, width = np.asarray(axes.images[0].get_array()), Z.min(axis=0), np.ptp(Z, axis=0) / 9
    places = [tuple(np.minimum((z - low) // width, 8).astype(int)) for z in Z]
    most = max(places.count(place) for place in set(places))
    for place in set(places):
        inside = [int(number) for number, other in zip(numbers, places, strict=True) if other == place]
        ahead = max(sorted(set(inside)), key=inside.count)
        red = int(colour_of(ahead)[1:3], 16) / 255
        assert image[place[1], place[0], 0] == red
        assert image[place[1], place[0], 3] == pytest.approx(
            FAINTEST + (1 - FAINTEST) * np.log(len(inside)) / np.log(most)
        )
    assert (image[..., 3] > 0).sum() == len(set(places))
    for style in set(numbers.tolist()):
        counts = {
            place: sum(n == style and p == place for n, p in zip(numbers, places, strict=True)) for place in places
        }
        there = tuple(((np.array(fullest[style]) - low) // width).astype(int))
        assert counts[there] == max(counts.values())


def test_points_of_one_place_are_one_bin() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    draw_bins(axes, cloud_of(np.ones((5, 2)), 2), lambda a, b: np.zeros(b - a, dtype=np.int64), bins=4)
    assert (np.asarray(axes.images[0].get_array())[..., 3] > 0).sum() == 1


@pytest.mark.parametrize("scale", [1.0, 1e200])
def test_principal_coordinates_of_parts(scale: float) -> None:
    Z = np.random.default_rng(5).normal(size=(1_000, 3)) @ np.diag([1.0, 3.0, 2.0]) + 7.0
    mean, axes, share = principal_coordinates(cloud_of(Z * scale, 130))
    values, vectors = np.linalg.eigh(np.cov(Z, rowvar=False))
    assert mean / scale == pytest.approx(Z.mean(axis=0))
    assert np.abs(axes) == pytest.approx(np.abs(vectors[:, [2, 1]].T))
    assert share == pytest.approx(values[[2, 1]] / values.sum())


@pytest.mark.parametrize("nested", [True, False])
def test_the_largest_part_of_a_cluster(nested: bool) -> None:
    result = HMAC(levels=6, nested=nested).fit(blobs(400, 2, 6, 9)).result_
    for level in range(5):
        below, above = result.levels[level], result.levels[level + 1]
        large = int((below.sizes >= 5).sum())
        expected = [np.bincount(above.labels[below.labels == k]).argmax() for k in range(large)]
        assert largest_part(result, level, least=5)[:large].tolist() == expected
