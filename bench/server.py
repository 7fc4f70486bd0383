"""The server's durable ingest against the disk's own limit."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.harness import Rate, Scenario, rate
from bench.peers import data_directory, group_commit, ingest, server_process

_TOTAL = 64 << 20
_LIMIT = "write 4 MiB + fdatasync, in a loop, to the same disk (fresh files on both sides)"


@contextmanager
def _against_disk(records: int, size: int, window: int) -> Iterator[tuple[Rate, Rate]]:
    frame = records * (size + 5)
    frames = _TOTAL // frame
    with server_process() as address, data_directory() as raw:
        yield (
            rate(frames * frame, lambda: ingest(address, frames, records, size, window)),
            rate(_TOTAL, lambda: group_commit(raw, _TOTAL)),
        )


SCENARIOS = (
    Scenario(
        name="server/ingest-64KiB-durable",
        unit="B/s",
        other=_LIMIT,
        sides=lambda: _against_disk(records=624, size=100, window=128),
        floor=0.35,
    ),
    Scenario(
        name="server/ingest-1KiB-durable",
        unit="B/s",
        other=_LIMIT,
        sides=lambda: _against_disk(records=10, size=98, window=2048),
    ),
)
