"""Group commits through io_uring: all files of a flush at once, each by one durable write."""

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from lance_server.storage.contract import Write
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.uring._abi import Operation
from lance_server.storage.uring.ring import Ring, Submission

_ENTRIES: Final = 64
_BUFFERS: Final = 16
_BUFFER_SIZE: Final = 64 * 1024


class UringStorage(PwritevStorage):
    """Positioned I/O whose commits go through io_uring.

    All writes of a commit but the largest are submitted together; the thread does the largest
    itself meanwhile, which spares the kernel a worker, and then awaits the others. So the disk
    sees the syncs of several files at once. Small ones are copied into registered buffers, large
    ones are written from where they are. Each thread has a ring of its own: several commits may
    be in flight.

    Raises:
        OSError: the kernel does not offer io_uring, or not to this process.
    """

    name = "io_uring"

    def __init__(self) -> None:
        self._local = threading.local()
        with _new_ring() as probe:
            self._shown = repr(probe)

    def __repr__(self) -> str:
        return f"<UringStorage {self._shown}>"

    def commit(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files and make them durable; return what went wrong for each."""
        if len(writes) == 1:
            return super().commit(writes)
        ring = self._ring()
        errors: list[OSError | None] = []
        for start in range(0, len(writes), ring.entries + 1):
            errors += self._commit_together(ring, writes[start : start + ring.entries + 1])
        return errors

    def _ring(self) -> Ring:
        ring: Ring | None = getattr(self._local, "ring", None)
        if ring is None or ring.process != os.getpid():
            ring = self._local.ring = _new_ring()
        return ring

    def _commit_together(self, ring: Ring, writes: Sequence[Write]) -> list[OSError | None]:
        own = max(range(len(writes)), key=lambda number: len(writes[number].data))
        others = [each for number, each in enumerate(writes) if number != own]
        buffers = count()
        # The second of each pair keeps the bytes where they are until they were written.
        pinned = [_submission(ring, buffers, each) for each in others]
        ring.begin([submission for submission, _ in pinned])
        try:
            own_errors = super().commit([writes[own]])
        finally:
            results = ring.finish()
        errors = [self._judge(*each) for each in zip(others, results, strict=True)]
        return [*errors[:own], *own_errors, *errors[own:]]

    def _judge(self, write: Write, result: int) -> OSError | None:
        """Return a write's error; finish what was written short."""
        if result < 0:
            return OSError(-result, os.strerror(-result))
        if result == len(write.data):
            return None
        rest = Write(write.fd, memoryview(write.data)[result:], write.offset + result)
        return super().commit([rest])[0]


def _new_ring() -> Ring:
    return Ring(entries=_ENTRIES, buffers=_BUFFERS, buffer_size=_BUFFER_SIZE)


def _submission(ring: Ring, buffers: Iterator[int], write: Write) -> tuple[Submission, object]:
    """Return the operation for a write, and what its bytes are kept by."""
    size = len(write.data)
    if size <= _BUFFER_SIZE and ring.fixed and (buffer := next(buffers)) < _BUFFERS:
        memory = ring.buffers[buffer]
        memory[:size] = write.data
        place = ring.addresses[buffer]
        fixed = Operation.WRITE_FIXED
        return Submission(fixed, write.fd, write.offset, place, size, buffer), memory
    # A bytearray is pinned, which also keeps it from being resized; other bytes are copied.
    raw = write.data if isinstance(write.data, bytearray) else bytearray(write.data)
    pin = (ctypes.c_char * size).from_buffer(raw)
    place = ctypes.addressof(pin)
    return Submission(Operation.WRITE, write.fd, write.offset, place, size), pin
