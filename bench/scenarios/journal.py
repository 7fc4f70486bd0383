"""The journal against raw loops that give the same promise for the same bytes."""

import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import crc32c

from bench.harness import Rate, Scenario, rate
from lance_sdk.journal import Durability, Journal, JournalConfig, SlotKind, inspect

_PAYLOAD = bytes(range(256)) * 4
_FRAME = struct.Struct("<II")
_SEGMENT = 4 << 20
_FAST = 20_000
"""Frames where no call waits for the disk."""
_SYNCED = 200
"""Frames where each call waits for the disk."""
_BATCH = 100
"""Frames in a batch that is flushed."""


def _append(journal: Journal, count: int, every: int = 0) -> None:
    for number in range(1, count + 1):
        journal.append(_PAYLOAD)
        if every and number % every == 0:
            journal.flush()
    for _ in journal.read_from(journal.next_fsn - 1):
        journal.ack(journal.next_fsn - 1)


def _into_maps(folder: Path, count: int) -> None:
    """Copy and checksum into mapped, reserved files: what any journal has to do at least."""
    size = len(_PAYLOAD)
    done = number = 0
    while done < count:
        path = folder / f"raw-{number}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.posix_fallocate(fd, 0, _SEGMENT)
        view, offset = memoryview(mmap.mmap(fd, _SEGMENT)), 24
        os.close(fd)
        while offset + 8 + size <= _SEGMENT and done < count:
            end = offset + 8 + size
            view[offset + 8 : end] = _PAYLOAD
            _FRAME.pack_into(view, offset, crc32c.crc32c(view[offset + 8 : end]), size)
            offset, done = end, done + 1
        path.unlink()
        number += 1


def _with_write(folder: Path, count: int, every: int) -> None:
    """Write and ``fdatasync``: the same promise without mapping."""
    fd = os.open(folder / "raw", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.posix_fallocate(fd, 0, _SEGMENT)
    for number in range(1, count + 1):
        os.write(fd, _FRAME.pack(crc32c.crc32c(_PAYLOAD), len(_PAYLOAD)) + _PAYLOAD)
        if number % every == 0:
            os.fdatasync(fd)
    os.close(fd)


def _sides(
    durability: Durability, count: int, every: int
) -> Callable[[], AbstractContextManager[tuple[Rate, Rate]]]:
    @contextmanager
    def sides() -> Iterator[tuple[Rate, Rate]]:
        with tempfile.TemporaryDirectory(dir=".") as name:
            folder = Path(name)
            config = JournalConfig(durability=durability, segment_bytes=_SEGMENT)
            with Journal.open(folder / "slot", config) as journal:
                yield (
                    rate(count, lambda: _append(journal, count, every)),
                    rate(count, lambda: _raw(folder, count, every)),
                )

    return sides


def _raw(folder: Path, count: int, every: int) -> None:
    if every:
        _with_write(folder, count, every)
    else:
        _into_maps(folder, count)


@contextmanager
def _in_memory() -> Iterator[tuple[Rate, Rate]]:
    with (
        tempfile.TemporaryDirectory(dir=".") as name,
        Journal.open(None, JournalConfig(segment_bytes=_SEGMENT)) as journal,
    ):
        yield (
            rate(_FAST, lambda: _append(journal, _FAST)),
            rate(_FAST, lambda: _into_maps(Path(name), _FAST)),
        )


def _recovery(size: int) -> Callable[[], AbstractContextManager[tuple[Rate, Rate]]]:
    @contextmanager
    def sides() -> Iterator[tuple[Rate, Rate]]:
        with tempfile.TemporaryDirectory(dir=".") as name:
            slot, count = Path(name) / "slot", (32 << 20) // size
            with Journal.open(slot, JournalConfig(segment_bytes=_SEGMENT)) as journal:
                for _ in range(count):
                    journal.append(bytes(size))
            total = sum(each.stat().st_size for each in slot.glob("*.sfl"))
            yield rate(total, lambda: _recover(slot, count)), rate(total, lambda: _checksum(slot))

    return sides


def _recover(slot: Path, count: int) -> None:
    if inspect(slot, SlotKind.LWP).frames != count:
        raise ValueError(slot)


def _checksum(slot: Path) -> None:
    for path in slot.glob("*.sfl"):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            crc32c.crc32c(memoryview(view))


SCENARIOS = (
    Scenario(
        name="journal/append-in-memory",
        unit="frames/s",
        other="memcpy and crc32c into mapped files",
        sides=_in_memory,
    ),
    Scenario(
        name="journal/append-memory",
        unit="frames/s",
        other="memcpy and crc32c into mapped files",
        sides=_sides(Durability.MEMORY, _FAST, 0),
    ),
    Scenario(
        name="journal/append-periodic",
        unit="frames/s",
        other="memcpy and crc32c into mapped files",
        sides=_sides(Durability.PERIODIC, _FAST, 0),
    ),
    Scenario(
        name="journal/append-flush",
        unit="frames/s",
        other=f"write and fdatasync every {_BATCH} frames",
        sides=_sides(Durability.FLUSH, 10 * _BATCH, _BATCH),
    ),
    Scenario(
        name="journal/append-append",
        unit="frames/s",
        other="write and fdatasync every frame",
        sides=_sides(Durability.APPEND, _SYNCED, 1),
    ),
    Scenario(
        name="journal/recover-1k",
        unit="bytes/s",
        other="one crc32c pass over the same files",
        sides=_recovery(1024),
    ),
    Scenario(
        name="journal/recover-64k",
        unit="bytes/s",
        other="one crc32c pass over the same files",
        sides=_recovery(65536),
    ),
)
