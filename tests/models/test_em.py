"""The EM loop, with a plain Gaussian mixture as its user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from parallel_mix.backends.base import Backend
from parallel_mix.backends.inline import InlineBackend
from parallel_mix.models.core import em
from parallel_mix.models.core.em import EmFit, EmLoop, add_statistics
from parallel_mix.models.core.run import QuietRun, State
from parallel_mix.models.core.sources import HeldRows
from tests.conftest import blobs

FLOOR = 1e-6


class PlainMixture:
    """A Gaussian mixture whose components have a variance for each column."""

    def summarize(self, rows: Any, weights: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        p, means, variances = (parameters[name] for name in ("priors", "means", "variances"))
        squares = ((rows[:, None, :] - means) ** 2 / variances + np.log(2 * np.pi * variances)).sum(axis=2)
        joint = np.log(p) - squares / 2
        log_density = logsumexp(joint, axis=1)
        w = np.ones(len(rows)) if weights is None else weights
        r = np.exp(joint - log_density[:, None]) * w[:, None]
        return {
            "log_likelihood": float(w @ log_density),
            "mass": r.sum(axis=0),
            "first": r.T @ rows,
            "second": r.T @ rows**2,
        }

    def update(self, statistics: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        mass = statistics["mass"]
        means = statistics["first"] / mass[:, None]
        variances = statistics["second"] / mass[:, None] - means**2 + FLOOR
        return {"priors": mass / mass.sum(), "means": means, "variances": variances}


def start(X: np.ndarray, k: int = 3) -> dict[str, Any]:
    return {"priors": np.full(k, 1 / k), "means": X[:k].copy(), "variances": np.tile(X.var(axis=0), (k, 1))}


def fitted(X: np.ndarray, backend: Backend, w: np.ndarray | None = None, run: Any = None, most: int = 200) -> EmFit:
    return EmLoop(PlainMixture(), start(X), 1e-9, most).run_on(backend, HeldRows(X, w), run)


def test_it_comes_to_the_parameters_of_scikit_learn_from_the_same_start() -> None:
    X = blobs(300, 2, 3)
    fit = fitted(X, InlineBackend())
    begin = start(X)
    theirs = GaussianMixture(
        3, covariance_type="diag", tol=1e-12, max_iter=len(fit.log_likelihoods), reg_covar=FLOOR,
        weights_init=begin["priors"], means_init=begin["means"], precisions_init=1 / begin["variances"],
    ).fit(X)  # fmt: skip
    assert fit.converged
    assert np.allclose(fit.parameters["means"], theirs.means_, atol=1e-5)
    assert np.allclose(fit.parameters["variances"], theirs.covariances_, rtol=1e-4)


def test_the_likelihood_never_falls() -> None:
    fit = fitted(blobs(400, 3, 4), InlineBackend())
    assert (np.diff(fit.log_likelihoods) > -1e-9 * abs(fit.log_likelihoods[0])).all()


def test_statistics_of_two_parts_add_to_those_of_all_rows() -> None:
    X, model = blobs(100, 2), PlainMixture()
    whole = model.summarize(X, None, start(X))
    parts = add_statistics(model.summarize(X[:30], None, start(X)), model.summarize(X[30:], None, start(X)))
    assert all(np.allclose(whole[name], parts[name], rtol=1e-12) for name in whole)


def test_a_row_of_weight_two_is_a_row_given_twice() -> None:
    X = blobs(120, 2)
    w = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    order = np.concatenate([np.arange(120), np.arange(0, 120, 3)])
    one = fitted(X, InlineBackend(), w)
    other = EmLoop(PlainMixture(), start(X), 1e-9, 200).run_on(InlineBackend(), HeldRows(X[order]))
    assert all(np.allclose(one.parameters[name], other.parameters[name], rtol=1e-6) for name in one.parameters)


def test_every_backend_gives_the_same_bits(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(em, "ROWS_A_BLOCK", 32)
    X = blobs(300, 2)
    here, there = fitted(X, InlineBackend(), most=7), fitted(X, backend, most=7)
    assert not here.converged
    assert here.log_likelihoods.tobytes() == there.log_likelihoods.tobytes()
    assert all(here.parameters[name].tobytes() == there.parameters[name].tobytes() for name in here.parameters)


class Killed(Exception):
    pass


class KilledAfter(QuietRun):
    """Keeps the latest state, and ends the fit after some iterations."""

    def __init__(self, iterations: int) -> None:
        self.left, self.state = iterations, None

    def offer(self, state: Any) -> None:
        self.state, self.left = state(), self.left - 1
        if not self.left:
            raise Killed


class Resumed(QuietRun):
    def __init__(self, state: State) -> None:
        self.state = state

    def restored(self) -> State:
        return self.state


@pytest.mark.parametrize("iterations", [1, 4])
def test_a_fit_that_was_killed_goes_on_to_the_same_end(iterations: int) -> None:
    X, killed = blobs(200, 2), KilledAfter(iterations)
    with pytest.raises(Killed):
        fitted(X, InlineBackend(), run=killed)
    assert killed.state is not None
    whole, resumed = fitted(X, InlineBackend()), fitted(X, InlineBackend(), run=Resumed(killed.state))
    assert whole.log_likelihoods.tobytes() == resumed.log_likelihoods.tobytes()
    assert all(whole.parameters[name].tobytes() == resumed.parameters[name].tobytes() for name in whole.parameters)
