"""What the ranks find out together about themselves; all of them call these, and wait for each other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parallel_mix.backends.mpi import MpiBackend


def facts_of_all(backend: MpiBackend, facts: Any) -> list[Any]:
    """What each rank has to say, on every rank."""
    return list(backend.comm.allgather(facts))


def round_trips(backend: MpiBackend, sizes: tuple[int, ...], times: int = 10) -> list[tuple[float, ...]]:
    """Shortest time of a message there and back, for each size, from rank 0 to each other rank."""
    comm, own = backend.comm, backend.rank
    found: list[tuple[float, ...]] = []
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
        found.append(tuple(best))
    return found
