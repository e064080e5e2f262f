"""The one EM loop: sums of sufficient statistics over blocks of rows, and parameters from these sums.

    E step    statistics = sum over blocks of  model.summarize(rows of the block, their weights, parameters)
    M step    parameters = model.update(statistics, parameters)

Statistics are values that add: of two halves of the rows they are the sum of each half's, whoever computes them. So the
loop runs a large fit with its rows spread over workers, and, on a backend without workers, a small one whole inside a
task. Parameters and statistics are arrays with names, and the parameters are the checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parallel_mix.backends.base import Backend
from parallel_mix.errors import ParallelMixError
from parallel_mix.models.core.run import HowFar, QuietRun, Run, State
from parallel_mix.models.core.sources import RowSource, blocks_of

Array = NDArray[np.float64]
Arrays = dict[str, Any]
ROWS_A_BLOCK = 4096
"""Rows whose statistics a worker sums up at a time. (Those of `sources` are read at a time.)"""
LOG_LIKELIHOOD = "log_likelihood"
"""The name of the statistic by which the loop ends; every model has it."""


class Model(Protocol):
    """What differs between mixtures: their statistics, and the parameters of largest likelihood given these."""

    def summarize(self, rows: Array, weights: Array | None, parameters: Arrays) -> Arrays:
        """The statistics of some rows, `log_likelihood` among them: each an array or a number that adds."""

    def update(self, statistics: Arrays, parameters: Arrays) -> Arrays:
        """The parameters that follow from the statistics of all rows; the present ones where they say nothing."""


@dataclass(frozen=True)
class EmFit:
    """Where the loop ended."""

    parameters: Arrays
    log_likelihoods: Array
    """Of the parameters before each iteration, in natural units, all rows and weights together."""
    converged: bool
    """False where the limit of iterations ended it."""


@dataclass(frozen=True)
class SharedRows:
    """What tells a worker where the rows are; it reads those of the blocks that it is asked for."""

    source: RowSource

    def load(self) -> RowsAtHand:
        return RowsAtHand(self.source)


class RowsAtHand:
    """The blocks that a worker was asked for, which it has for the next iterations."""

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self._blocks: dict[tuple[int, int], tuple[Array, Array | None]] = {}

    def block(self, block: tuple[int, int]) -> tuple[Array, Array | None]:
        """Rows and weights of a block."""
        if block not in self._blocks:
            self._blocks[block] = self.source.rows(*block), self._weights(block)
        return self._blocks[block]

    def _weights(self, block: tuple[int, int]) -> Array | None:
        return None if self._all_weights is None else self._all_weights[slice(*block)]

    @cached_property
    def _all_weights(self) -> Array | None:
        return self.source.weights()


def summarize_block(rows: RowsAtHand, block: tuple[int, int], model: Model, parameters: Arrays) -> Arrays:
    """The statistics of one block."""
    return model.summarize(*rows.block(block), parameters)


def add_statistics(one: Arrays, other: Arrays) -> Arrays:
    """The statistics of two disjoint sets of rows together."""
    return {name: value + other[name] for name, value in one.items()}


class EmLoop:
    """The state of one fit: its parameters so far, how the likelihood rose, and how to go on from a checkpoint."""

    def __init__(self, model: Model, parameters: Arrays, tolerance: float, most_iterations: int) -> None:
        self.model, self.parameters = model, parameters
        self.tolerance, self.most_iterations = tolerance, most_iterations
        self.log_likelihoods: list[float] = []
        self.converged = False

    def run_on(self, backend: Backend, source: RowSource, run: Run | None = None) -> EmFit:
        """Go on until an iteration raises the log-likelihood of a row by less than the tolerance, on average.

        The rows are shared with the workers here; a log-likelihood belongs to the parameters that its E step began
        with.
        """
        run = run or QuietRun()
        self._take_up(run.restored())
        backend.share(SharedRows(source))
        blocks, weights = blocks_of(source.shape[0], ROWS_A_BLOCK), source.weights()
        mass = float(source.shape[0] if weights is None else weights.sum())
        while not self.converged and len(self.log_likelihoods) < self.most_iterations:
            kernel = partial(summarize_block, model=self.model, parameters=self.parameters)
            statistics = backend.map_reduce(kernel, blocks, add_statistics)
            self.log_likelihoods.append(float(statistics[LOG_LIKELIHOOD]))
            if not np.isfinite(self.log_likelihoods[-1]):
                raise ParallelMixError(
                    f"The log-likelihood is {self.log_likelihoods[-1]} in iteration {len(self.log_likelihoods)} of EM: "
                    "a component has lost its rows, or the data are too far apart for numbers."
                )
            self.parameters = self.model.update(statistics, self.parameters)
            rise = np.diff(self.log_likelihoods[-2:])
            self.converged = bool(rise.size and rise[0] < self.tolerance * mass)
            run.report(self._how_far)
            run.offer(self._state)
        return EmFit(self.parameters, np.array(self.log_likelihoods), self.converged)

    def _how_far(self) -> HowFar:
        count, latest = len(self.log_likelihoods), self.log_likelihoods[-1]
        return float(count), float(self.most_iterations), f"EM, iteration {count}, log-likelihood {latest:.6g}"

    def _state(self) -> State:
        named = {f"parameters/{name}": value for name, value in self.parameters.items()}
        kept = {"done": float(len(self.log_likelihoods)), "log_likelihoods": np.array(self.log_likelihoods)}
        return {**kept, "converged": self.converged, **named}

    def _take_up(self, state: State | None) -> None:
        if state is None:
            return
        prefix = "parameters/"
        self.parameters = {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}
        self.log_likelihoods = [float(value) for value in state["log_likelihoods"]]
        self.converged = bool(state["converged"])
