"""What decoding, and the journal, cost a program: no server is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import worker
from bench.curves.bed import Bed
from bench.curves.curve import Curve, Run, Sample
from bench.peers import data_directory
from lance_sdk.journal import Durability, Journal, JournalConfig

_BYTES = 32 << 20
_PAYLOAD = bytes(64 << 10)


@contextmanager
def _decoding(point: int, bed: Bed) -> Iterator[Run]:
    del bed
    times = max(4, 1_000_000 // point)

    def run() -> Sample:
        return Sample.of(worker.run("decode", records=point, size=100, times=times), point * times)

    yield run


@contextmanager
def _appending(point: int, bed: Bed) -> Iterator[Run]:
    del bed
    count = max(8, min(50_000, _BYTES // point))
    yield lambda: Sample.of(worker.run("append", count=count, size=point), count)


@contextmanager
def _recovering(point: int, bed: Bed) -> Iterator[Run]:
    del bed
    count = point // len(_PAYLOAD)
    with data_directory() as folder:
        slot = folder / "slot"
        _write(slot, count)
        yield lambda: Sample.of(worker.run("recover", slot=str(slot), frames=count), 1)


def _write(slot: Path, count: int) -> None:
    config = JournalConfig(durability=Durability.MEMORY)
    with Journal.open(slot, config) as journal:
        for _ in range(count):
            journal.append(_PAYLOAD)


CURVES = (
    Curve(
        name="decode/batch-size",
        axis="records of 100 bytes in a batch",
        unit="record",
        process="program",
        points=(1, 10, 100, 1_000, 10_000),
        steepest=0.0,
        open=_decoding,
    ),
    Curve(
        name="journal-append/record-size",
        axis="record size in bytes",
        unit="record",
        process="program",
        points=(10, 100, 1_000, 10_000, 100_000, 1_000_000),
        steepest=1.0,
        open=_appending,
    ),
    Curve(
        name="journal-recover/log-size",
        axis="bytes in the journal",
        unit="recovery",
        process="program",
        points=(10**7, 10**8, 10**9),
        large=(10**10,),
        steepest=1.0,
        open=_recovering,
    ),
)
