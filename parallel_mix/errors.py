"""Every way a run can end other than well, each with its exit code and a full sentence."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace


class ParallelMixError(Exception):
    """A run that cannot go on; the message is what the user reads."""

    exit_code = 1


class InputError(ParallelMixError, ValueError):
    """The user's file, option or path is at fault: what, the value, what to do next."""

    exit_code = 2


class UsersFaultError(InputError):
    """The data, the disk or a function of the user's own is at fault, on whatever worker it shows."""


class UnknownNameError(InputError):
    """A column or dataset that was asked for is not there."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


class Stopped(ParallelMixError):
    """A signal asked for a stop; what was finished is in the checkpoint."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        self.exit_code = 130 if signum == signal.SIGINT else 75
        super().__init__(f"Stopped by {signal.Signals(signum).name}.")


class LostRanksError(ParallelMixError):
    """Processes of the job that have not been heard of: their host is down or cut off."""


class SupersededError(ParallelMixError):
    """A later attempt of the same run is under way: this one must write nothing more."""


class Finished(ParallelMixError):
    """There is nothing more to do, and that is well."""

    exit_code = 0


@dataclass(frozen=True)
class Failure:
    """An exception of a task, as a value that travels from the worker to rank 0."""

    task: int
    host: str
    worker: str
    error: str
    traceback: str
    users_fault: bool = False  # a `UsersFaultError`
    input_error: bool = False  # any `InputError`


class TaskError(ParallelMixError):
    """A task raised on a worker; carries the worker's own traceback."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        where = f"{failure.worker} (host {failure.host})"
        super().__init__(f"Task {failure.task} failed on {where}: {failure.error}.\n{failure.traceback}".rstrip())

    def renumbered(self, task: int) -> TaskError:
        """The failure with the number by which its task can be asked for alone."""
        return TaskError(replace(self.failure, task=task))
