"""Pieces of work for `bench.profiles.ablation`, which takes a compiled function from each in turn.

Each returns the seconds of processor time that it took, without what only prepares it.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count, cycle
from pathlib import Path
from time import process_time
from typing import Any, Final, TypeAlias, cast

from lance_sdk import producer
from lance_sdk._protocol.produce.batcher import Batcher, BatchLimits
from lance_sdk.delivery import Delivery
from lance_sdk.journal import Durability, Journal, JournalConfig
from lance_sdk.journal._slot import scan
from lance_server.listeners.fluvio.values import to_log
from lance_server.storage.contract import Write, opened
from lance_server.storage.pwritev import PageCacheStorage, PwritevStorage
from lance_server.storage.wal import WalStorage
from lance_server.testing import SessionPeer
from lance_spec.codec import buffers
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, Flag, RecordType
from lance_spec.fluvio.batches import FluvioRecord, pack_batches
from lance_spec.frames import FrameSplitter, encode_header
from lance_spec.messages.lwp import Fetch
from lance_spec.records import (
    decode_records,
    encode_records,
    part_records,
    record_bounds,
    scan_records,
)

Work: TypeAlias = Callable[[], float]
_FRAMES: Final = 64
"""Frames of 1 KiB in each read."""
_READS: Final = 20
_TOPICS: Final = 256
_KIB64: Final = 64 * 1024
_ANSWER_HEADER: Final = 60
"""Bytes before the data of a FetchResponse."""
_VALUE: Final = b"x" * 100
_RAW: Final = int(RecordType.RAW_DATA)


class _Server:
    """A session over a log on the disk, that this process feeds."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._ids = count(1 << 40 | 1)
        self._payload = [b"x" * 98] * 10
        self.peer = SessionPeer(disk=cast("Any", PageCacheStorage()), data_dir=folder)

    def ingest(self) -> float:
        """Store the frames of one read, and take their acknowledgements."""
        peer = self.peer
        data = b"".join([peer.ingest(next(self._ids), self._payload) for _ in range(_FRAMES)])
        begun = process_time()
        peer.session.receive_data(data, 0.0)
        peer.log.scheduler.run_soon()
        peer.work()
        peer.session.advance(0.0)
        peer.session.data_to_send()
        return process_time() - begun

    def fetch(self) -> float:
        """Fetch what was stored, 64 KiB at a time."""
        peer, offset, end = self.peer, 0, self.peer.log.end()
        begun = process_time()
        while offset < end:
            request = peer.control(Command.FETCH, Fetch(0, offset, _KIB64).encode())
            peer.session.receive_data(request, 0.0)
            answers = peer.session.data_to_send()
            if not answers:  # it is read by a worker
                peer.work()
                peer.session.advance(0.0)
                answers = peer.session.data_to_send()
            offset += sum(map(len, answers)) - _ANSWER_HEADER
        return process_time() - begun


@contextmanager
def _ingest(folder: Path) -> Iterator[Work]:
    server = _Server(folder)
    yield lambda: sum(server.ingest() for _ in range(_READS))


@contextmanager
def _commit(folder: Path) -> Iterator[Work]:
    """Commit 1 KiB, with its sidecar entry, to each of many topics through the write-ahead log."""
    folder.mkdir()
    storage, places = WalStorage(PwritevStorage(), folder), count()
    with ExitStack() as stack:
        stack.callback(storage.release)
        names = [f"{topic}.{kind}" for topic in range(_TOPICS) for kind in ("lnc", "batches")]
        fds = [stack.enter_context(opened(storage, folder / name, create=True)) for name in names]

        def commit() -> float:
            place = next(places)
            pairs = cycle(((bytes(1024), 1024 * place), (bytes(64), 64 * place)))
            writes = [Write(fd, *each) for fd, each in zip(fds, pairs, strict=False)]
            begun = process_time()
            storage.commit(writes)
            took = process_time() - begun
            if (work := storage.pending_work()) is not None:
                work()
            return took

        yield lambda: sum(commit() for _ in range(_READS))


@contextmanager
def _fetch(folder: Path, *, closed: bool) -> Iterator[Work]:
    server = _Server(folder)
    for _ in range(_READS):
        server.ingest()
    if closed:
        server.peer.log.engine.topic(0).partition.roll()
        server.peer.log.scheduler.run_soon()
        server.peer.work()
        server.ingest()
    yield lambda: sum(server.fetch() for _ in range(10))


@contextmanager
def _send(folder: Path) -> Iterator[Work]:
    del folder
    limits = BatchLimits(
        max_bytes=_KIB64, max_records=10_000, linger=1.0, capacity=1 << 30, delivery_timeout=60.0
    )

    def work() -> float:
        begun, batcher = process_time(), Batcher(limits)
        for _ in range(30_000):
            add = producer.add_record
            made = None if add is None else add(batcher, _VALUE, _RAW, Delivery)
            if made is None:
                index = batcher.add(_VALUE, _RAW)
                if index < 0:
                    index = batcher.append(_VALUE, _RAW, 0.0)
                Delivery(batcher.last, index)
            while (batch := batcher.next_sealed()) is not None:
                batcher.release(batch)
        return process_time() - begun

    yield work


def _repeated(step: Callable[[], object], times: int) -> float:
    begun = process_time()
    for _ in range(times):
        step()
    return process_time() - begun


def _on_records(
    step: Callable[[bytearray], object],
) -> Callable[[Path], AbstractContextManager[Work]]:
    @contextmanager
    def given(folder: Path) -> Iterator[Work]:
        del folder
        data = bytearray(encode_records([_VALUE] * (_KIB64 // 105)))
        yield lambda: _repeated(lambda: step(data), 100)

    return given


@contextmanager
def _journal(folder: Path) -> Iterator[Work]:
    config = JournalConfig(segment_bytes=1 << 20, durability=Durability.MEMORY)
    with Journal.open(folder, config) as journal:
        for _ in range(900):
            journal.append(bytes(1024))
        segment = max(folder.glob("*.sf*"), key=lambda each: each.stat().st_size)
        view = memoryview(segment.read_bytes())
        yield lambda: _repeated(lambda: scan.follow(view, scan.FIRST_FRAME), 100)


@contextmanager
def _take_fluvio(folder: Path) -> Iterator[Work]:
    """Make records of the log of a batch of Fluvio."""
    del folder
    records = [FluvioRecord(_VALUE, None, 10**12)] * (_KIB64 // 105)
    (batch,) = pack_batches(records)
    yield lambda: _repeated(lambda: to_log(batch.records, len(records), 10**12, 1 << 20), 100)


@contextmanager
def _cut(folder: Path) -> Iterator[Work]:
    """Cut frames of 1 KiB and compare their checksums."""
    del folder
    payload = encode_records([bytes(98)] * 10)
    frame = encode_header(SPECIFIED, Flag.BATCH_MODE, payload=payload) + payload

    def work() -> float:
        splitter = FrameSplitter((SPECIFIED,))
        splitter.receive_data(frame)
        return _repeated(lambda: splitter.receive_data(_FRAMES * frame), 100)

    yield work


@contextmanager
def _read(folder: Path) -> Iterator[Work]:
    """Read a part of a file into a new buffer, as answers and Spark's readers do."""
    folder.mkdir()
    storage = PwritevStorage()
    with opened(storage, folder / "data", create=True) as fd:
        storage.write(fd, bytes(1 << 20), 0)

        def read() -> None:
            storage.read_into(fd, memoryview(buffers.unfilled(1 << 20)), 0)

        yield lambda: _repeated(read, 100)


KEPT = "keep"
"""Whether a process that makes large buffers keeps what it has freed."""
_COMMITS: Final = """
import sys, time
from lance_spec.codec.buffers import keep_freed
if sys.argv[1] == "keep":
    keep_freed(64 << 20, 32 << 20)
pieces, begun = [bytes(1024)] * 1024, time.process_time()
for _ in range(200):
    made = [b"".join(pieces) for _ in range(2)]
    del made
print(time.process_time() - begun)
"""


@contextmanager
def _join(folder: Path) -> Iterator[Work]:
    """Join 1 MiB twice and free both, as a commit does, in a process of its own."""
    del folder

    def work() -> float:
        command = [sys.executable, "-c", _COMMITS, KEPT]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    yield work


WORK: Final[dict[str, Callable[[Path], AbstractContextManager[Work]]]] = {
    "ingest": _ingest,
    "commit to 256 topics": _commit,
    "fetch": lambda folder: _fetch(folder, closed=True),
    "fetch from the open segment": lambda folder: _fetch(folder, closed=False),
    "send": _send,
    "judge one batch": _on_records(scan_records),
    "decode": _on_records(decode_records),
    "lay out columns": _on_records(lambda data: part_records(bytearray(data))),
    "find boundaries": _on_records(record_bounds),
    "open a journal": _journal,
    "take a batch of Fluvio": _take_fluvio,
    "cut frames of 1 KiB": _cut,
    "read 1 MiB of a file": _read,
    "join 1 MiB, twice": _join,
}
