"""``python -m bench.slow_sync FOLDER``: our server on a disk whose sync takes 100 µs.

On a file system in memory a sync takes no time. This one takes as long as one of a good disk, and
always the same, so that what the server adds can be held against a time.
"""

import sys
import time
from pathlib import Path
from threading import Event

from lance_server import running
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wal import WalStorage
from lance_server.storage.ways import MeasuredWays

SYNC_SECONDS = 100e-6


class SlowSync(PwritevStorage):
    """A backend whose syncs take a given time."""

    name = "pwritev2, sync of 100 µs"

    def sync(self, fd: int) -> None:
        """Make the file durable, in no less than the given time."""
        end = time.perf_counter() + SYNC_SECONDS
        super().sync(fd)
        while time.perf_counter() < end:
            pass


def serve(folder: Path) -> None:
    """Serve until killed."""
    storage = WalStorage(SlowSync(), folder, ways=MeasuredWays())
    with running(folder, storage=storage) as server:
        host, port = server.address
        print(f"{host}:{port}", flush=True)
        Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
