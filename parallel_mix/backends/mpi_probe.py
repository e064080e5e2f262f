"""Measurements that all ranks make together; each rank calls these, and waits for the others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parallel_mix.backends.mpi import MpiBackend


def facts_of_all(backend: MpiBackend, facts: Any) -> list[Any]:
    """The facts of each rank, in the order of ranks, on every rank."""
    return list(backend.comm.allgather(facts))


def round_trips(backend: MpiBackend, sizes: tuple[int, ...], times: int = 10) -> list[tuple[float, ...]]:
    """The shortest seconds of a message there and back, from rank 0 to each other rank, for each size in bytes."""
    comm, own = backend.comm, backend.rank
    trips: list[tuple[float, ...]] = []
    for rank in range(1, backend.ranks):
        if own not in (0, rank):
            continue
        best = []
        for size in sizes:
            room, seconds = bytearray(size), []
            for _ in range(times):
                began = time.perf_counter()
                if own == 0:
                    comm.Send(room, dest=rank)
                    comm.Recv(room, source=rank)
                else:
                    comm.Recv(room, source=0)
                    comm.Send(room, dest=0)
                seconds.append(time.perf_counter() - began)
            best.append(min(seconds))
        trips.append(tuple(best))
    return trips
