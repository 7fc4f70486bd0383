"""A lance-server whose disk forgets, at SIGKILL, much of what was not synced: as at a power cut.

Run as ``python forgetful_server.py --data-dir DIR --listen HOST:PORT``. SIGKILL alone leaves
the page cache alone, so that a server that acknowledges before it syncs is not found out.
"""

import argparse
import os
import random
import threading
from collections.abc import Sequence
from pathlib import Path

from lance_server import running
from lance_server.storage.contract import Write, sync_in_turn, write_in_turn
from lance_server.storage.pwritev import PwritevStorage
from lance_spec.checksum import Buffer

Held = tuple[int, bytes]


class ForgetfulStorage(PwritevStorage):
    """Keeps every second write, or so, in memory until its file is synced."""

    name = "forgetful"

    def __init__(self) -> None:
        self._pending_requests: dict[int, list[Held]] = {}
        self._lock = threading.RLock()
        self._dice = random.Random(os.getpid())

    def write(self, fd: int, data: Buffer, offset: int) -> None:
        """Write now, or only when the file is synced."""
        with self._lock:
            held = self._of(fd)
            if held or self._dice.random() < 0.7:
                held.append((offset, bytes(data)))
            else:
                super().write(fd, data, offset)

    def write_each(self, writes: Sequence[Write]) -> list[OSError | None]:
        """Write to several files, each now or only when it is synced."""
        return write_in_turn(self, writes)

    def sync_each(self, fds: Sequence[int]) -> list[OSError | None]:
        """Make several files durable, in turn."""
        return sync_in_turn(self, fds)

    def sync(self, fd: int) -> None:
        """Write what was kept back, for good."""
        with self._lock:
            held = self._of(fd)
            for offset, data in held:
                super().write(fd, data, offset)
            held.clear()

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file and what was kept back of it."""
        with self._lock:
            held = self._of(fd)
            held[:] = [(offset, data[: size - offset]) for offset, data in held if offset < size]
            super().truncate(fd, size)

    def size(self, fd: int) -> int:
        """The length with what was kept back."""
        with self._lock:
            ends = [offset + len(data) for offset, data in self._of(fd)]
            return max([super().size(fd), *ends])

    def read_into(
        self, fd: int, target: memoryview, offset: int, *, cached_only: bool = False
    ) -> int:
        """Read what was written, kept back or not, as a page cache does."""
        with self._lock:
            filled = super().read_into(fd, target, offset, cached_only=cached_only)
            for start, data in self._of(fd):
                first, last = max(start, offset), min(start + len(data), offset + len(target))
                if first < last:
                    target[first - offset : last - offset] = data[first - start : last - start]
                    filled = max(filled, last - offset)
            return filled

    def plain_fd(self, fd: int) -> None:
        """Return None: the file itself lacks what was kept back."""
        del fd

    def _of(self, fd: int) -> list[Held]:
        return self._pending_requests.setdefault(os.fstat(fd).st_ino, [])


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--listen")
    options = parser.parse_args()
    port = int(options.listen.rpartition(":")[2])
    with running(options.data_dir, port=port, storage=ForgetfulStorage()) as server:
        print("ready on {}:{}".format(*server.address), flush=True)  # noqa: T201 - a program
        threading.Event().wait()


if __name__ == "__main__":
    main()
