"""`HMAC`, the estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.core.run import Run
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.prediction import predict_hmac
from parallel_mix.models.hmac.result import HmacResult, HmacSettings


class HMAC(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Hierarchical mode association clustering (Li, Ray & Lindsay 2007; in parallel: dissertation ch. 5).

    Points belong together when they climb to the same mode of a Gaussian kernel density; as the bandwidth grows modes
    merge, which gives a hierarchy.

    Parameters
    ----------
    bandwidths : sequence of float, optional
        Rising bandwidths in data units. By default `levels` of them, equally spaced over `range`.
    levels : int
        Number of bandwidths where none are given.
    range : (float, float)
        Smallest and largest bandwidth, in largest standard deviations of a column.
    standardize : bool
        Divide each column by its standard deviation first.
    nested : bool
        Each level climbs from the modes of the one below, so that levels form a tree. If false, each level climbs
        from all points, and levels are independent.
    approach : {1, 2, 3}
        1: every step of all ascents in parallel. 2: every ascent in parallel. 3: every ascent in parallel, of rows that
        are taken slice by slice, so that no worker holds others; for one to three columns.
    density : {"auto", "exact", "field", "tree"}
        "exact": sums over all rows. "field": values on a grid, for one to three columns: much faster for many rows.
        "tree": sums over the rows nearby. By default a field for 10,000 rows or more, where it can be, else the tree
        for 1,000 rows or more.
    backend : Backend, optional
        Where to run; by default on all cores of this machine.
    run : Run, optional
        Keeps checkpoints and shows progress; by default nothing does.

    Attributes
    ----------
    labels_ : (n) labels at the default level, the most persistent clustering.
    default_level_ : its number.
    levels_ : list of `Level`, each with bandwidth, modes, log_density, labels, sizes, parent; modes and densities are
        in the units of the data.
    modes_ : (m, d) modes at the default level.
    bandwidths_ : (L) bandwidths.
    result_ : all of it, as it is stored.
    """

    def __init__(
        self,
        bandwidths: Any = None,
        *,
        levels: int = 20,
        range: tuple[float, float] = (0.1, 2.0),
        standardize: bool = False,
        nested: bool = True,
        approach: int = 2,
        density: str = "auto",
        backend: Backend | None = None,
        run: Run | None = None,
    ) -> None:
        self.bandwidths = bandwidths
        self.levels = levels
        self.range = range
        self.standardize = standardize
        self.nested = nested
        self.approach = approach
        self.density = density
        self.backend = backend
        self.run = run

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of X at every bandwidth."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if weight is not None and not weight.any():
            raise ValueError("The weights are all zero.")
        bandwidths = None if self.bandwidths is None else tuple(float(b) for b in self.bandwidths)
        low, high = self.range
        settings = HmacSettings(
            bandwidths, self.levels, (low, high), self.standardize, self.nested, self.approach, self.density
        )
        self._source = HeldRows(X.copy(), weight)
        self.result_: HmacResult = self._on_backend(lambda b: fit_hmac(self._source, settings, b, self.run))
        result = self.result_
        self.levels_ = [level.outward(result.frame) for level in result.levels]
        self.bandwidths_ = result.bandwidths
        self.default_level_ = result.default_level
        chosen = self.levels_[result.default_level]
        self.labels_ = chosen.labels
        self.modes_ = chosen.modes
        return self

    def predict(self, X: Any, level: int | None = None) -> np.ndarray:
        """Cluster of each new point: that of the mode it climbs to; -1 where no training point's climb ended there."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        at = self.default_level_ if level is None else level
        labels: np.ndarray = self._on_backend(lambda b: predict_hmac(self.result_, self._source, X, at, b))
        return labels

    def _on_backend(self, work: Any) -> Any:
        if self.backend is not None and not isinstance(self.backend, Backend):
            raise ValueError(
                f"backend={self.backend!r} is no backend: give one that runs, such as "
                "parallel_mix.backends.dask.DaskBackend(workers=4), or None for all cores of this machine."
            )
        if self.backend is not None:
            return work(self.backend)
        with SerialBackend() as backend:
            return work(backend)
