"""The state of many ascents by modal EM, and how they go on together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.density.ascent_rule import cost_of_a_look, first_look, step_by_newton, step_plainly
from parallel_mix.kernels.density.kernel_sums import Array, unpack_moments

COARSE_COST = 0.5
"""The cost of a pair in single precision, in plain pairs."""
TURN_COST = 25_000.0
"""The cost of a turn besides its sums, in plain pairs: all the small steps of NumPy."""

MAX_ITERATIONS = 100_000
"""A slow passage between two places that were a mode and a saddle at a smaller bandwidth takes some ten thousand."""

MOMENTS_AT_ONCE = 1_048_576
"""Numbers in the second moments of ascents that go on together."""


class Ascents(NamedTuple):
    """The state of many ascents; all of it goes into a checkpoint."""

    points: Array  # (m, d) in bandwidths
    plain: Array  # (m, d) where to go on if a Newton finish fails
    log_density: Array  # (m) at the point before the last step
    last_step: Array  # (m) length of the last step of modal EM, plain or where the last Newton step began
    look_below: Array  # (m) a step shorter than this lets the ascent look at J
    work: Array  # (m) cost so far, in plain pairs: a point and a kernel, summed over in double precision
    iterations: np.ndarray  # (m) int32
    coarse: np.ndarray  # (m) bool: the next sums may be in single precision
    curved: np.ndarray  # (m) bool: the next sums are to come with second moments
    finishing: np.ndarray  # (m) bool: in a Newton finish
    unsure: np.ndarray  # (m) bool: came close to a saddle
    moving: np.ndarray  # (m) bool

    @classmethod
    def begin(cls, points: Array, log_density: Array, stepwise: bool = True) -> Ascents:
        """Ascents from `points`; `log_density` is a lower bound, or a guess, for each.

        Only where they are taken step by step (Approach I) is `plain` needed from one call to the next.
        """
        m = len(points)
        return cls(
            points=np.array(points, dtype=np.float64),
            plain=np.zeros((m if stepwise else 0, points.shape[1])),
            log_density=np.array(log_density, dtype=np.float64),
            last_step=np.full(m, np.nan),
            look_below=np.full(m, first_look(points.shape[1])),
            work=np.zeros(m),
            iterations=np.zeros(m, dtype=np.int32),
            coarse=np.zeros(m, dtype=bool),
            curved=np.zeros(m, dtype=bool),
            finishing=np.zeros(m, dtype=bool),
            unsure=np.zeros(m, dtype=bool),
            moving=np.ones(m, dtype=bool),
        )

    def turns(self) -> list[tuple[np.ndarray, bool, bool]]:
        """The ascents that are to go on, by what their next sums are: coarse, plain, curved."""
        now = np.flatnonzero(self.moving)
        coarse, curved = self.coarse[now], self.curved[now]
        most = max(MOMENTS_AT_ONCE // self.points.shape[1] ** 2, 1)
        turns = [
            (now[coarse], True, False),
            (now[~coarse & ~curved], False, False),
            (now[curved][:most], False, True),
        ]
        return [turn for turn in turns if turn[0].size]

    def count_work(self, which: np.ndarray, kernels: int, coarse: bool, curved: bool) -> None:
        """Count the work of one turn of some ascents, sums over so many kernels for each."""
        each = cost_of_a_look(self.points.shape[1]) if curved else 1.0
        self.work[which] += kernels * (each if not coarse else COARSE_COST) + TURN_COST / len(which)

    def advance(self, which: np.ndarray, sums: Array) -> None:
        """Take one step for the ascents `which`, from their sums over all kernels; with moments if they are curved."""
        d = self.points.shape[1]
        total = sums[:, d]
        step = sums[:, :d] / total[:, None]
        log_density = np.log(total) + sums[:, -1]
        if sums.shape[1] == d + 3:
            trace = np.maximum(sums[:, d + 1] / total - np.einsum("ij,ij->i", step, step), 0.0)
            step_plainly(self, which, step, log_density, trace, self.limit)
        else:
            covariance = unpack_moments(sums, d) / total[:, None, None] - step[:, :, None] * step[:, None, :]
            step_by_newton(self, which, step, log_density, covariance, self.limit)

    def state(self) -> dict[str, Any]:
        """The state as arrays with names, for a checkpoint."""
        return {f"ascents/{name}": getattr(self, name) for name in self._fields}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ascents:
        """The ascents whose state a checkpoint kept."""
        return cls(*[state[f"ascents/{name}"] for name in cls._fields])

    def take(self, which: np.ndarray) -> Ascents:
        """The state of some of the ascents, none of them in a Newton finish, to be sent away; `plain` stays here."""
        state = {name: values[which] for name, values in self._asdict().items() if name != "plain"}
        return Ascents(**state, plain=self.plain[:0])

    def put(self, which: np.ndarray, others: Ascents) -> None:
        """Take over the state of some ascents that were sent away."""
        for name, values in self._asdict().items():
            if name != "plain":
                values[which] = getattr(others, name)

    @property
    def limit(self) -> int:
        """The most iterations of an ascent."""
        return MAX_ITERATIONS

    @property
    def capped(self) -> np.ndarray:
        """Which ascents were ended by the iteration limit."""
        return hit_the_limit(self.iterations)


def hit_the_limit(iterations: np.ndarray) -> np.ndarray:
    """Which of these numbers of iterations are the limit."""
    ended: np.ndarray = iterations >= MAX_ITERATIONS
    return ended
