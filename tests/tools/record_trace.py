"""How many calls one record takes, and between how many files a reader of them goes back and forth.

    LANCE_PURE_PYTHON=1 python -m tests.tools.record_trace

A record is sent and acknowledged by a producer that has sent others before; a consumer is opened
and hands out 21 records. Calls of this project's functions count, in whichever thread; the server
is a process of its own and does not.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from lance_sdk import Consumer, Producer
from lance_server.testing import ServerProcess

RECORDS = 21
PACKAGES = ("lance_sdk", "lance_spec")


@dataclass
class Trace:
    """The files of the calls, in their order.

    Attributes:
        on: whether calls are counted now.
        files: where each called function stands.
    """

    on: bool = False
    files: list[str] = field(default_factory=list)

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; what `sys.setprofile` takes."""
        if self.on and event == "call":
            path = Path(frame.f_code.co_filename)
            if any(name in path.parts for name in PACKAGES):
                self.files.append(path.name)

    @property
    def returns(self) -> int:
        """How often a file is entered that was left before."""
        seen: set[str] = set()
        count, last = 0, ""
        for file in self.files:
            count += file != last and file in seen
            seen.add(file)
            last = file
        return count

    def __str__(self) -> str:
        files = len(set(self.files))
        return f"{len(self.files)} calls in {files} files, {self.returns} entered again"


@contextmanager
def tracing() -> Iterator[Trace]:
    """Trace this thread and those that begin inside the block."""
    trace = Trace()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # typeshed forgets None


def of(trace: Trace, work: Callable[[], object]) -> str:
    """Do some work and say what it took."""
    trace.files.clear()
    trace.on = True
    work()
    trace.on = False
    return str(trace)


def send_one(trace: Trace, url: str) -> str:
    """Trace one record of a producer that has sent others."""
    with Producer(url, create_topic=True, linger=0) as producer:
        for _ in range(RECORDS - 1):
            producer.send(b"before").result()
        return of(trace, lambda: producer.send(b"traced").result())


def read_all(trace: Trace, url: str) -> str:
    """Trace a consumer from its opening to its last record."""

    def read() -> None:
        with Consumer(url, stop_at_end=True) as consumer:
            assert len(list(consumer)) == RECORDS

    return of(trace, read)


def main(folder: str) -> None:
    """Print both."""
    with ServerProcess.running(Path(folder)) as server, tracing() as trace:
        host, port = server.address
        url = f"lance://{host}:{port}/traced"
        sys.stdout.write(f"send to acknowledgement: {send_one(trace, url)}\n")
        read = read_all(trace, url)
        sys.stdout.write(f"open, fetch and read {RECORDS} records: {read}\n")


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as made:
        main(made)
