"""The server of forks: it has loaded all libraries, and forks a process for each command that it is asked for.

python -m tests.fork_server SOCKET      until its input ends

It has begun no threads of OpenMP, which would not survive a fork: it loads what brings them, and computes nothing by
it.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

PRELOADED = [
    "h5py",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "scipy.cluster.hierarchy",
    "scipy.spatial",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.svm",
    "sklearn.tree",
    "parallel_mix.evaluate.crossval",
    "parallel_mix.families.hmac.file",
    "parallel_mix.models.clusters.clustering",
    "parallel_mix.models.hlm.incremental",
    "parallel_mix.models.hmac.prediction",
    "parallel_mix.models.distances.pairwise",
    "parallel_mix.runs.job",
    "tests.warmed",
]


def asked_of_a_fork(path: str) -> tuple[Sequence[str], str, Mapping[str, str]] | None:
    """Serve until the input ends, then return None; in each fork return words, folder and environment."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(64)
    Path(path + ".new").rename(path)
    forks: dict[int, tuple[int, socket.socket]] = {}  # by a descriptor that becomes readable when the fork ends
    while True:
        ready, _, _ = select.select([sys.stdin, listener, *forks, *(asker for _, asker in forks.values())], [], [])
        if sys.stdin in ready:
            for pid, _ in forks.values():
                os.kill(pid, signal.SIGKILL)
            return None
        for ended in [number for number, (_, asker) in forks.items() if number in ready or asker in ready]:
            pid, asker = forks.pop(ended)
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
                for number in (*forks, *streams):
                    os.close(number)
                for one in (listener, asker, *(other for _, other in forks.values())):
                    one.close()
                os.sched_setaffinity(0, cores)
                return words, folder, environment
            for stream in streams:
                os.close(stream)
            forks[os.pidfd_open(pid)] = pid, asker
            with contextlib.suppress(OSError):  # who asked was killed: that is seen next
                asker.sendall(f"{pid}\n".encode())


def run(words: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
    """Run the command line program in this process, as if it had been started in a folder and an environment."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    own = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:] = own + [folder if place == "" else place for place in sys.path]
    sys.argv = ["parallel-mix", *words]
    if os.environ.get("PARALLEL_MIX_TESTS_TOY"):
        import tests.toy  # noqa: F401
    from parallel_mix.cli import main

    main(words)


def end(error: BaseException | None) -> NoReturn:
    """End this process with the exit code and the words of the interpreter, but at once.

    The interpreter would clear its memory first, which takes as long as many a command.
    """
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    else:
        code = int(error is not None)
        if error is not None:
            sys.excepthook(type(error), error, error.__traceback__)
    sys.stdout.flush()
    sys.stderr.flush()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.Finalize()
    os._exit(code)


if __name__ == "__main__":
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    asked = asked_of_a_fork(sys.argv[1])
    if asked is not None:
        try:
            run(*asked)
        except BaseException as error:
            end(error)
        end(None)
