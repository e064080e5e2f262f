"""A damaged file is a sentence, whatever the library throws that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parallel_mix.errors import ParallelMixError, UsersFaultError
from parallel_mix.store.checksums import DifferentError

MEND = "make it again, or take a copy that is whole"


@contextmanager
def reading(path: Path, what: str = "", mend: str = MEND) -> Iterator[None]:
    """Read from a file, and nothing else: any error but our own sentences says that the file is at fault.

    `what` is the part that is read, where that is known; `mend` is what to do about it.
    """
    try:
        yield
    except ParallelMixError:
        raise
    except DifferentError as error:
        raise UsersFaultError(f"{path} is damaged: {error}; {mend}.") from None
    except UnicodeDecodeError as error:
        raise UsersFaultError(f"{path} is damaged, or holds text that is not UTF-8: {mend}.") from error
    except MemoryError as error:
        raise UsersFaultError(f"{path} is damaged, or larger than memory: {mend}.") from error
    except Exception as error:
        part = f"{what} cannot be read" if what else "a part of it is missing or cannot be read"
        raise UsersFaultError(f"{path} is damaged: {part}; {mend}.") from error
