"""Files that were changed on the way, or are none: a sentence, whatever the library would do with them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from parallel_mix.errors import InputError
from parallel_mix.store import checksums, guard
from parallel_mix.store.checksums import Checksums
from parallel_mix.store.hdf5_tables import hdf5_written_whole, opened
from tests.conftest import ROOT, parallel_mix

FIXTURES = ROOT / "tests" / "fixtures" / "before-checksums"


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of three and a half blocks."""
    monkeypatch.setattr(checksums, "BLOCK", 4096)
    path = tmp_path / "whole.h5"
    with hdf5_written_whole(path) as file:
        file["X"] = np.random.default_rng(0).normal(size=(200, 8))
        file.attrs["kind"] = "anything"
    return path


def test_what_was_written_is_read(whole: Path) -> None:
    assert Checksums.of(whole, "") is not None
    with opened(whole) as file:
        assert file["X"].shape == (200, 8)


def test_no_byte_can_be_changed_cut_or_added_without_a_word(whole: Path) -> None:
    good = whole.read_bytes()
    r = np.random.default_rng(1)
    places = [0, 1, 4095, 4096, *r.integers(len(good), size=60), *range(len(good) - 60, len(good))]
    for place in places:
        for bad in (
            good[:place] + bytes([good[place] ^ 16]) + good[place + 1 :],
            good[:place],
            good[:place] + good[place : place + 9] + good[place:],
        ):
            whole.write_bytes(bad)
            os.utime(whole, ns=(0, int(r.integers(2**60))))
            with pytest.raises(InputError, match=r"whole.h5 (is damaged|was changed).*make it again"), opened(whole):
                pass


def test_a_file_of_others_has_no_checksums(tmp_path: Path) -> None:
    for content in (b"", b"x", b"a" * 5000):
        (tmp_path / "other").write_bytes(content)
        assert Checksums.of(tmp_path / "other", "") is None


def strange(tmp_path: Path) -> Path:
    path = tmp_path / "strange.h5"
    with h5py.File(path, "w") as file:
        file["X"] = np.ones(3)
    return path


def test_a_file_on_which_the_library_crashes_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_touch", lambda name, item: os.kill(os.getpid(), signal.SIGSEGV))
    path = strange(tmp_path)
    for _ in range(2):
        with pytest.raises(InputError, match="the HDF5 library crashes on it"), opened(path):
            pass


def test_a_file_with_which_the_library_never_ends_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "DEADLINE", 0.3)
    monkeypatch.setattr(guard, "_touch", lambda name, item: time.sleep(60))
    path = strange(tmp_path)
    with pytest.raises(InputError, match="does not come to an end"), opened(path):
        pass
    began = time.monotonic()
    with pytest.raises(InputError, match="does not come to an end"), opened(path):
        pass
    assert time.monotonic() - began < 0.2, "it is not waited for again"


@pytest.mark.parametrize("error", [RuntimeError, TypeError, KeyError, ValueError, OSError, MemoryError, AttributeError])
def test_whatever_is_thrown_while_reading_is_a_sentence(tmp_path: Path, error: type[Exception]) -> None:
    with pytest.raises(InputError, match=r"strange.h5 is damaged.*make it again"), opened(strange(tmp_path)):
        raise error("Object visitation failed")


def test_what_we_say_ourselves_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^No\.$"), opened(strange(tmp_path)):
        raise InputError("No.")


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.h5")), ids=lambda path: path.stem)
def test_files_of_before_are_read_and_say_that_they_have_no_checksums(path: Path) -> None:
    done = parallel_mix("info", path)
    assert done.returncode == 0, done.stderr
    if path.stem != "table":
        assert "no checksums" in done.stdout
