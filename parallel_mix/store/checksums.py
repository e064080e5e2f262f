"""Checksums of a file's bytes, one for each block of a fixed size, behind its content.

HDF5 reads no farther than its own end, so it does not see them. They are compared before any library touches the file:
what was changed on the way is told, and no library has to survive it.

    content | a checksum of 8 bytes for each block | foot: mark, version, bytes a block, bytes of content, checksum of
    the checksums and of the foot before it
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import xxhash

from parallel_mix.errors import UsersFaultError

MARK, VERSION = b"parallel-mix sums", 1
FOOT = struct.Struct(f"<{len(MARK)}sBIQ")
DIGEST_BYTES = 8
BLOCK = 1_048_576


def checksums_of(content: bytes) -> bytes:
    """What is to stand behind the content."""
    view = memoryview(content)
    sums = b"".join(xxhash.xxh3_64_digest(view[at : at + BLOCK]) for at in range(0, len(view), BLOCK))
    foot = FOOT.pack(MARK, VERSION, BLOCK, len(view))
    return sums + foot + xxhash.xxh3_64_digest(sums + foot)


def compare_checksums(path: Path, mend: str) -> bool:
    """Refuse a file whose bytes are not those that were written; False for a file without checksums."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        end = FOOT.size + DIGEST_BYTES
        if size < end:
            return False
        file.seek(size - end)
        foot, seal = file.read(FOOT.size), file.read(DIGEST_BYTES)
        mark, version, block, length = FOOT.unpack(foot)
        if mark != MARK:
            return False
        if version > VERSION:
            raise UsersFaultError(f"{path} is damaged, or has checksums of a later parallel-mix: {mend}.")
        sums_bytes = -(-length // block) * DIGEST_BYTES if block else -1
        if length + sums_bytes + end != size:
            raise UsersFaultError(f"{path} is damaged: it is not as long as it was written; {mend}.")
        file.seek(length)
        sums = file.read(sums_bytes)
        if xxhash.xxh3_64_digest(sums + foot) != seal:
            raise UsersFaultError(f"{path} is damaged: its checksums were changed; {mend}.")
        file.seek(0)
        for number, content in enumerate(_blocks(file, length, block)):
            if xxhash.xxh3_64_digest(content) != sums[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]:
                first = number * block
                raise UsersFaultError(
                    f"{path} is damaged: bytes {first:,} to {first + len(content):,} are not those that were written; "
                    f"{mend}."
                )
    return True


def _blocks(file: BinaryIO, length: int, block: int) -> Iterator[memoryview]:
    room = memoryview(bytearray(block))
    for at in range(0, length, block):
        content = room[: min(block, length - at)]
        file.readinto(content)  # type: ignore[attr-defined]
        yield content
