"""From options to a running backend, and back to a clean end on every process."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module

from parallel_mix import compile_notice
from parallel_mix.backends.base import Backend
from parallel_mix.backends.stop import StopFlag
from parallel_mix.config import CommonOptions
from parallel_mix.errors import InputError, LostRanksError, ParallelMixError, Stopped
from parallel_mix.extras import install_line, need


def run_on_backend(options: CommonOptions, work: Callable[[Backend], None], needs: str) -> None:
    """Call `work` with the backend the options ask for; the other ranks of an MPI job serve it meanwhile.

    All ranks import the module that the work `needs`, and load its compiled code, while MPI starts; later they would
    wait for each other.
    """
    from parallel_mix.backends.mpi_launch import launched_by_mpi, launched_rank, launched_size
    from parallel_mix.runs.rank_checks import refuse_lone_copies

    if options.only_task is not None:
        from parallel_mix.backends.one_task import OneTask

        if launched_rank() > 0:
            return
        work(OneTask(options.only_task))
        return
    if options.backend in (None, "mpi", "serial"):
        refuse_lone_copies()
    if options.slurm_workers and options.backend not in (None, "dask"):
        raise InputError("--slurm-workers are Dask workers: leave out --backend, or give --backend dask.")
    name = options.backend or ("dask" if options.slurm_workers else None) or ("mpi" if launched_by_mpi() else "serial")
    if options.quiet:
        compile_notice.say = lambda text: None
    stop = StopFlag()
    stop.listen()
    if name == "mpi":
        need("mpi", "--backend mpi")
        if launched_rank() == 0:  # it reads what the others are to read
            from parallel_mix.store.guard import before_mpi

            before_mpi()
        import_module("parallel_mix.runs.job")
        getattr(import_module(needs), "warm_up", lambda: None)()
        _run_on_mpi(options, stop, work)
        return
    if launched_by_mpi() and launched_size() > 1:
        raise InputError(
            f"--backend {name} under mpirun would run the whole job on every rank: leave out one of the two."
        )
    with _open(name, options, stop) as backend:
        work(backend)


def _open(name: str, options: CommonOptions, stop: StopFlag) -> Backend:
    if name == "serial":
        from parallel_mix.backends.serial import SerialBackend

        return SerialBackend(options.threads, stop)
    need("dask", "--backend dask")
    from parallel_mix.backends.dask import DaskBackend

    scheduler = (options.scheduler, options.scheduler_file)
    return DaskBackend(options.workers, options.threads, *scheduler, stop=stop, slurm_workers=options.slurm_workers)


def _run_on_mpi(options: CommonOptions, stop: StopFlag, work: Callable[[Backend], None]) -> None:
    try:
        from parallel_mix.backends.mpi import MpiBackend
        from parallel_mix.backends.mpi_launch import abort_on_exception, end_launcher, import_mpi
        from parallel_mix.runs.rank_checks import check_ranks, facts_of

        MPI = import_mpi()
    except ImportError as error:
        raise InputError(
            f"mpi4py finds no MPI library ({error}): load your site's, or {install_line('mpi-runtime')}."
        ) from None
    abort_on_exception()
    backend = MpiBackend(options.threads, stop)
    stop.deferred = True  # a rank that left now would leave the others waiting
    if backend.rank > 0:
        backend.serve(partial(facts_of, backend, options))
        return
    try:
        check_ranks(backend, options)
        if stop.signum:
            raise Stopped(stop.signum)
        stop.deferred = False
        work(backend)
    except LostRanksError as error:
        sys.stderr.write(f"parallel-mix: {error}\n")
        sys.stderr.flush()
        end_launcher()
        os._exit(error.exit_code)  # MPI would wait for those that are lost
    except ParallelMixError:
        backend.close()
        raise
    except BaseException:
        traceback.print_exc()
        MPI.COMM_WORLD.Abort(1)
    backend.close()
