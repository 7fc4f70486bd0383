"""How long one batch takes to be durable and acknowledged, with nothing else in flight."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.harness import Rate, Scenario
from bench.peers import data_directory, server_process
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Flag
from lance_spec.frames import encode_header
from lance_spec.limits import HEADER_SIZE
from lance_spec.records import encode_records

_COUNT = 400
_PAYLOAD = encode_records([b"x" * 1019])
_DISK = "write 1 KiB + fdatasync, in a loop, to the same disk (fresh files on both sides)"


def quantile(times: list[float], share: float) -> float:
    """Return the time that this share of the steps did not exceed."""
    return sorted(times)[int(share * (len(times) - 1))]


def _timed(step: Callable[[], None]) -> list[float]:
    times = []
    for _ in range(_COUNT):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def _frames() -> Iterator[bytes]:
    """Yield Ingest frames of a producer of their own."""
    nonce = int.from_bytes(os.urandom(3), "big") << 40
    for number in range(1, _COUNT + 1):
        head = encode_header(
            SPECIFIED,
            Flag.BATCH_MODE,
            batch_id=nonce | number,
            timestamp_ns=1,
            record_count=1,
            payload=_PAYLOAD,
        )
        yield head + _PAYLOAD


def _acks(address: str) -> list[float]:
    """Send a batch, wait for its acknowledgement, and so on; return what each took."""
    host, port = address.split(":")
    frames = iter(list(_frames()))  # made before the clock runs
    with socket.create_connection((host, int(port)), 30) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def step() -> None:
            peer.sendall(next(frames))
            if peer.recv(HEADER_SIZE, socket.MSG_WAITALL)[5] != Flag.ACK:
                raise RuntimeError("an answer that is no Ack")

        return _timed(step)


def _writes(folder: Path) -> list[float]:
    path = folder / f"raw-{os.urandom(4).hex()}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:

        def step() -> None:
            os.write(handle, _PAYLOAD)
            os.fdatasync(handle)

        return _timed(step)
    finally:
        os.close(handle)
        path.unlink()


@contextmanager
def _against_disk(share: float, *options: str) -> Iterator[tuple[Rate, Rate]]:
    with server_process(*options) as address, data_directory() as folder:
        yield (
            lambda: 1 / quantile(_acks(address), share),
            lambda: 1 / quantile(_writes(folder), share),
        )


@contextmanager
def _backends(share: float) -> Iterator[tuple[Rate, Rate]]:
    with (
        server_process("--storage", "io_uring") as ours,
        server_process("--storage", "pwritev2") as theirs,
    ):
        yield (
            lambda: 1 / quantile(_acks(ours), share),
            lambda: 1 / quantile(_acks(theirs), share),
        )


_QUICKEST = ("--durability", "wal", "--inline-commits")
"""A batch that comes alone is durable by one sync, and no thread is handed it."""


SCENARIOS = (
    *(
        Scenario(
            name=f"server/ack-{name}{kind}",
            unit=f"1/s, of the {name}, {told}",
            other=_DISK,
            sides=partial(_against_disk, share, *options),
        )
        for kind, options, told in (
            ("", _QUICKEST, f"with `{' '.join(_QUICKEST)}`"),
            ("-default", (), "with default settings"),
        )
        for name, share in (("p50", 0.5), ("p99", 0.99))
    ),
    Scenario(
        name="server/ack-p99-io_uring",
        unit="1/s, of the p99",
        other="the pwritev2 backend",
        sides=partial(_backends, 0.99),
    ),
)
