"""The interface of all backends: `share`, `map` and `map_reduce`, and nothing else.

A kernel is a function `kernel(context, task) -> result` of module level (or a `functools.partial` of one): it travels
by name to each worker once a call, the context once a run. What a worker computes depends on the task alone, never on
how many workers there are, so every backend gives the same bits.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Any, Protocol, Self

from parallel_mix.backends.stop import StopFlag
from parallel_mix.backends.usage import Usage
from parallel_mix.errors import Failure, Stopped, TaskError, UsersFaultError

Kernel = Callable[[Any, Any], Any]
Nodes = dict[tuple[int, int], Any]


class Tasks(Protocol):
    """Tasks by number: a list, or what makes each when it is handed out; there may be more of them later."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class Recipe(Protocol):
    """The way a worker makes the context by itself, when it joins and each time it is replaced."""

    def load(self) -> Any:
        """The context, made by the worker that calls this."""


class Backend(ABC):
    """A set of workers. `size` is the number of tasks that run at the same time."""

    name: str
    size: int
    shares_memory = True
    """Whether workers were forked from this process or are its threads, so that what it holds costs them nothing."""
    shares_files = True
    """Whether workers see the files that this process writes beside its output."""
    limits_memory = False
    """Whether workers that hold too much are ended, where mapped files count, too, that they share with others."""

    def __init__(self, stop: StopFlag | None = None) -> None:
        self.stop = stop or StopFlag()
        self.on_wait: Callable[[], None] = lambda: None
        self._first_call: float | None = None
        self._left = 0  # tasks of the present call that nobody has been given
        self._want: Any = None  # what the task that is being handed out wants at hand
        self._holders: dict[Any, Any] = {}  # by want, the worker that had a task of that want last

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A clone of an estimator runs where the estimator does."""
        return self

    @abstractmethod
    def share(self, recipe: Recipe) -> None:
        """Give every worker the context that `recipe` loads; it replaces the one shared before."""

    @abstractmethod
    def _begin(self, kernel: Kernel) -> None:
        """Start a call: results of an abandoned earlier call are forgotten."""

    @abstractmethod
    def _submit(self, index: int, task: Any) -> bool:
        """Hand out a task, or return False where every worker has enough queued.

        What the task `wants` (`self._want`, where it is not None) is what the worker in `self._holders` has at hand: a
        preference, never a condition.
        """

    @abstractmethod
    def _wait(self) -> list[tuple[int, Any]]:
        """The results that have come in since the last call, none perhaps; it waits a tenth of a second at most."""

    def usage(self) -> list[Usage]:
        """The usage of each worker until now: tasks, seconds, bytes."""
        return []

    @property
    def seconds(self) -> float:
        """Seconds since the first task was handed out."""
        return 0.0 if self._first_call is None else time.monotonic() - self._first_call

    def end_of_reading(self) -> None:
        """Count from here, as workers only looked at the input so far: `seconds` begins anew, signals stop at once."""
        self._first_call = None
        self.stop.deferred = False
        if self.stop.signum:
            raise Stopped(self.stop.signum)

    def close(self) -> None:  # noqa: B027 (a backend without resources needs nothing here)
        """End the workers."""

    def patiently(self, action: Callable[[], Any]) -> None:
        """Do something that may take long (such as writing to disk), while all hear that rank 0 is alive."""
        outcome: list[BaseException] = []

        def act() -> None:
            """Do it, and keep what it raises."""
            try:
                action()
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.1)
            self.on_wait()
            self._stay_in_touch()
        if outcome:
            raise outcome[0]

    @property
    def only_task(self) -> int | None:
        """The number of the only task to be done (`--only-task`), by this thread under a debugger; None: all tasks."""
        return None

    def run_only_task(self, kernel: Kernel, tasks: Tasks) -> None:
        """Do the only task that is to be done of these, and end the run there."""
        raise AssertionError("this backend does all tasks")

    def inline(self) -> Backend:
        """A backend that is this thread without workers, for work that is done sooner than handed out."""
        from parallel_mix.backends.inline import InlineBackend

        return InlineBackend(self.stop)

    def _stay_in_touch(self) -> None:  # noqa: B027 (only ranks leave where they hear nothing)
        """Let the workers hear of rank 0."""

    def map(self, kernel: Kernel, tasks: Tasks, wants: Callable[[Any], Any] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield `(task_index, result)` as tasks finish; `tasks` may grow while this is iterated.

        `wants` says of a task what it wants its worker to have at hand (rows, named by their range): a worker that had
        a task of the same want before is preferred, in later calls too.
        """
        self._first_call = self._first_call or time.monotonic()
        self._begin(kernel)
        sent = received = 0
        following: list[Any] = []  # the task to hand out next, made once
        finished: list[tuple[int, Any]] = []
        while True:
            full = False
            while sent < len(tasks) and not full:
                self._left = len(tasks) - sent
                following = following or [tasks[sent]]
                self._want = None if wants is None else wants(following[0])
                full = not self._submit(sent, following[0])
                if not full:
                    sent, following = sent + 1, []
            for index, result in finished:  # workers are busy again while the caller looks at these
                if isinstance(result, Failure):
                    raise UsersFaultError(result.error) if result.users_fault else TaskError(result)
                received += 1
                yield index, result
            if self.stop.signum:
                raise Stopped(self.stop.signum)
            if received == sent == len(tasks):
                return
            finished = self._wait() if full or received < sent == len(tasks) else []
            self.on_wait()

    def map_reduce(self, kernel: Kernel, tasks: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
        """Return the sum of all results over the fixed binary tree on the task indices.

        Each worker gets a contiguous range and returns the sums of the largest subtrees inside it: the shape of the
        sum depends on `len(tasks)` alone. In the next sum over as many tasks a worker is given its range again, where
        it can be: it has the rows.
        """
        total = len(tasks)
        if total == 0:
            raise ValueError("map_reduce needs at least one task.")
        count = min(self.size, total)
        cuts = [-(-total * number // count) for number in range(count + 1)]
        # From the last, which may be the shortest, to the first, which rank 0 gets: it starts earlier.
        ranges = [(lo, hi, total, list(tasks[lo:hi])) for lo, hi in reversed(list(pairwise(cuts)))]
        nodes: Nodes = {}
        for _, sums in self.map(SubtreeSums(kernel, add), ranges, wants=range_of):
            nodes.update(sums)
        return join_subtrees(nodes, (0, total), add)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def range_of(task: tuple[int, int, int, list[Any]]) -> tuple[int, int, int]:
    """The want of a task of a sum: its range of tasks, which stands for the rows behind them."""
    return task[:3]


@dataclass(frozen=True)
class SubtreeSums:
    """The kernel of a reduction: sums of the largest subtrees that lie within a range of tasks."""

    kernel: Kernel
    add: Callable[[Any, Any], Any]

    def __call__(self, context: Any, task: tuple[int, int, int, list[Any]]) -> Nodes:
        low, high, total, tasks = task
        nodes: Nodes = {}

        def subtree(a: int, b: int) -> Any:
            """The sum of the results of tasks a..b, by halves."""
            if b - a == 1:
                try:
                    return self.kernel(context, tasks[a - low])
                except Exception as error:
                    error.parallel_mix_task = a  # type: ignore[attr-defined]
                    raise
            middle = (a + b) // 2
            left = subtree(a, middle)
            return self.add(left, subtree(middle, b))

        def visit(a: int, b: int) -> None:
            """Add up the largest subtrees of tasks a..b that lie within this worker's range."""
            if b <= low or a >= high:
                return
            if low <= a and b <= high:
                nodes[a, b] = subtree(a, b)
                return
            middle = (a + b) // 2
            visit(a, middle)
            visit(middle, b)

        visit(0, total)
        return nodes


def join_subtrees(nodes: Nodes, bounds: tuple[int, int], add: Callable[[Any, Any], Any]) -> Any:
    """Add the subtrees of all workers up to the sum of all tasks within the bounds."""
    if bounds in nodes:
        return nodes[bounds]
    a, b = bounds
    middle = (a + b) // 2
    return add(join_subtrees(nodes, (a, middle), add), join_subtrees(nodes, (middle, b), add))
