"""The server of ranks: it has loaded all libraries, and forks a rank of an MPI job wherever mpirun starts `rank.py`.

python -m tests.ranks SOCKET      until its input ends
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

from tests.processes import PRELOADED, run_here


def forked_rank(path: str) -> list[list[str]] | None:
    """Serve until the input ends, then return None; in each forked rank return what it is to run."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(64)
    Path(path + ".new").rename(path)
    ranks: dict[int, tuple[int, socket.socket]] = {}  # by a descriptor that becomes readable when the rank ends
    while True:
        ready, _, _ = select.select([sys.stdin, listener, *ranks, *(asker for _, asker in ranks.values())], [], [])
        if sys.stdin in ready:
            return None
        for ended in [number for number, (_, asker) in ranks.items() if number in ready or asker in ready]:
            pid, asker = ranks.pop(ended)
            with contextlib.suppress(ProcessLookupError):
                if ended not in ready:  # who asked was killed
                    os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with contextlib.suppress(OSError), asker:
                asker.sendall(f"{code}\n".encode())
            os.close(ended)
        if listener in ready:
            asker, _ = listener.accept()
            length, streams, _, _ = socket.recv_fds(asker, 8, 3)
            request = asker.recv(int.from_bytes(length, "little"), socket.MSG_WAITALL)
            if not (pid := os.fork()):
                words, folder, environment, cores = json.loads(request)
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                for number in (*ranks, *streams):
                    os.close(number)
                for one in (listener, asker, *(other for _, other in ranks.values())):
                    one.close()
                os.sched_setaffinity(0, cores)
                return [words, folder, environment]
            for stream in streams:
                os.close(stream)
            asker.sendall(f"{pid}\n".encode())
            ranks[os.pidfd_open(pid)] = pid, asker


if __name__ == "__main__":
    for name in PRELOADED:
        importlib.import_module(name)
    asked = forked_rank(sys.argv[1])
    if asked is not None:
        run_here(*asked)
