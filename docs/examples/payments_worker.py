"""A worker service: writes the payments of a partitioned topic into a ledger, in their order.

Run as many of it as you like, under any process manager::

    lwp topics create payments --partitions 8
    lwp group serve --store file:/var/lib/groups
    python payments_worker.py lance://localhost:1992 lance://localhost:1993 worker-1 ledger.txt

Each payment is in the ledger at least once, and those of a customer in their order. A payment
comes again where a worker died, or was too slow, between writing it and committing.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable

from lance_sdk import GroupConsumer, Record, RecordBatch
from lance_sdk.groups.errors import CommitRefused


class Ledger:
    """A file of lines that are durable once they are flushed."""

    def __init__(self, path: str, worker: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._worker = worker

    def write(self, record: Record) -> None:
        """Add a payment: topic, offset, customer, amount, and who wrote it."""
        assert record.key is not None
        what = f"{record.topic} {record.offset} {record.key.decode()} {record.value.decode()}"
        os.write(self._file, f"paid {what} {self._worker}\n".encode())

    def committed(self, batch: RecordBatch) -> None:
        """Note how far the group has come, for people."""
        line = f"done {batch.topic} {batch.next_offset} {self._worker}\n"
        os.write(self._file, line.encode())

    def flush(self) -> None:
        """Make everything durable."""
        os.fsync(self._file)


def work(
    server: str,
    coordinator: str,
    worker: str,
    path: str,
    *,
    topic: str = "payments",
    session_timeout: float = 10.0,
    handle: Callable[[Record], object] = lambda record: record,
) -> None:
    """Read until SIGTERM says to stop.

    Args:
        server: URL of the server.
        coordinator: URL of the group's coordinator.
        worker: name of this worker; one that comes back under its name gets its partitions back.
        path: of the ledger.
        topic: a partitioned topic.
        session_timeout: seconds of silence after which others take over.
        handle: is told of each payment before it is written.
    """
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: stopping.set())
    ledger = Ledger(path, worker)
    with GroupConsumer(
        server,
        group="ledger",
        topics=[topic],
        coordinator=coordinator,
        member=worker,
        session_timeout=session_timeout,
        max_poll_records=20,
        auto_commit="off",
        on_assigned=lambda topics: print(f"assigned {len(topics)}", flush=True),
    ) as consumer:
        while not stopping.is_set():
            batch = consumer.poll(0.2)
            if batch is None:
                continue
            for record in batch:
                handle(record)
                ledger.write(record)
            ledger.flush()  # first the ledger, then the commit: nothing is skipped
            try:
                consumer.commit()
            except CommitRefused as refused:  # others have the partition, and read on
                print(f"fenced {refused}", flush=True)
            else:
                ledger.committed(batch)


if __name__ == "__main__":
    work(*sys.argv[1:5])
