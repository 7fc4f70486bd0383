"""The real file system: what is left where the kernel refuses, and what the error says."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lance_sdk.journal import (
    Category,
    Durability,
    Journal,
    JournalConfig,
    Rejection,
    SlotUnusable,
)
from lance_sdk.journal.dead_letters import DeadLetterFile
from lance_sdk.journal.files import RealFiles


@contextmanager
def files_have_at_most(size: int) -> Iterator[None]:
    """Let the kernel refuse what is written beyond so many bytes of a file (setrlimit(2))."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_small_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """The old content stays, nothing is left beside it, and the error names the file."""
    file = tmp_path / "side-file"
    RealFiles().replace(file, b"old")
    with files_have_at_most(10), pytest.raises(OSError, match=r"side-file'$"):
        RealFiles().replace(file, bytes(100))
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_dead_letter_that_does_not_fit_leaves_no_trace(tmp_path: Path) -> None:
    """What stands in the file stays whole, and the error names it."""
    file = DeadLetterFile(tmp_path, 1 << 20)
    rejection = Rejection(category=Category.UNKNOWN, message="m", first_fsn=4, last_fsn=4)
    file.write(rejection, b"whole")
    before = file.path.read_bytes()
    with (
        files_have_at_most(len(before) + 10),
        pytest.raises(OSError, match=r"dead-letters\.jsonl'$"),
    ):
        file.write(rejection, b"too much")
    assert file.path.read_bytes() == before


def test_a_file_where_a_slot_should_be_is_an_error(tmp_path: Path) -> None:
    """It stays as it is."""
    (tmp_path / "slot").write_bytes(b"mine")
    with pytest.raises(SlotUnusable, match="slot as a slot: File exists; choose a folder"):
        Journal.open(tmp_path / "slot", JournalConfig())
    assert (tmp_path / "slot").read_bytes() == b"mine"


def test_what_two_losses_of_power_tore_is_no_gap(tmp_path: Path) -> None:
    """Segments that never reached the disk account for their numbers, also beside one set aside."""
    slot = tmp_path / "slot"
    config = JournalConfig(segment_bytes=4096, background=False, durability=Durability.FLUSH)
    torn = bytes(2000) + b"torn" * 9 + bytes(2060)

    def lose(number: int, content: bytes) -> None:
        (slot / f"sf-{number:016x}.sfl").write_bytes(content)

    with Journal.open(slot, config) as journal:
        for _ in range(4):
            journal.append(bytes(900))
    lose(1, bytes(4096))
    lose(2, torn)
    Journal.open(slot, config).close()
    with Journal.open(slot, config) as journal:
        journal.append(bytes(900))
    lose(3, torn)
    with Journal.open(slot, config) as journal:
        journal.append(bytes(900))
    with Journal.open(slot, config) as journal:
        assert [fsn for fsn, _ in journal.read_from(0)] == [0, 1, 2, 3, 5]
