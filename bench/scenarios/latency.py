"""How long one batch takes to be durable and acknowledged, with nothing else in flight."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.harness import Rate, Scenario
from bench.peers import READY, data_directory, environment, server_process
from lance_sdk import Producer
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Flag
from lance_spec.frames import encode_header
from lance_spec.limits import HEADER_SIZE
from lance_spec.records import encode_records

_COUNT = 400
_VALUE = b"x" * 1019
_PAYLOAD = encode_records([_VALUE])
_LEAST = 1e-6
"""Seconds: less is not told apart from nothing."""
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a file system in memory, which each Linux has there
_DISK = "write 1 KiB + fdatasync, in a loop, to the same disk (fresh files on both sides)"


def quantile(times: list[float], share: float) -> float:
    """Return the time that this share of the steps did not exceed."""
    return sorted(times)[int(share * (len(times) - 1))]


def _timed(step: Callable[[], object]) -> list[float]:
    return [ended - begun for begun, ended in _spans(step)]


def _spans(step: Callable[[], object]) -> list[tuple[float, float]]:
    spans = []
    for _ in range(_COUNT):
        begun = time.perf_counter()
        step()
        spans.append((begun, time.perf_counter()))
    return spans


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
    return [ended - begun for begun, ended in acknowledged(address)]


def acknowledged(address: str) -> list[tuple[float, float]]:
    """Send a batch, wait for its acknowledgement, and so on; return begin and end of each."""
    host, port = address.split(":")
    frames = iter(list(_frames()))  # made before the clock runs
    with socket.create_connection((host, int(port)), 30) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def step() -> None:
            peer.sendall(next(frames))
            if peer.recv(HEADER_SIZE, socket.MSG_WAITALL)[5] != Flag.ACK:
                raise RuntimeError("an answer that is not an Ack")

        return _spans(step)


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


@contextmanager
def _sdk_against_disk(share: float) -> Iterator[tuple[Rate, Rate]]:
    with (
        server_process() as address,
        data_directory() as folder,
        Producer(f"lance://{address}/bench", create_topic=True) as producer,
    ):
        yield (
            lambda: 1 / quantile(_timed(lambda: producer.send(_VALUE).result(30)), share),
            lambda: 1 / quantile(_writes(folder), share),
        )


@contextmanager
def _added(share: float, limit: float) -> Iterator[tuple[Rate, Rate]]:
    """Compare what the server adds to a write and a sync of the same run with a time."""
    with server_process() as address, data_directory() as folder:

        def added() -> float:
            bare, ours = _writes(folder), _acks(address)
            return 1 / max(quantile(ours, share) - quantile(bare, share), _LEAST)

        yield added, lambda: 1 / limit


@contextmanager
def _slow_sync(share: float, limit: float) -> Iterator[tuple[Rate, Rate]]:
    """Compare acknowledgements, on a disk in memory with a sync of 100 µs, with a time."""
    with tempfile.TemporaryDirectory(prefix="lance-bench-", dir=_IN_MEMORY) as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.slow_sync", folder],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(pure=False),
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not (found := READY.search(line)):
                raise RuntimeError(f"the server did not say where it listens: {line!r}")
            address = found.group()
            yield lambda: 1 / quantile(_acks(address), share), lambda: 1 / limit
        finally:
            process.kill()
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()


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
    *(
        Scenario(
            name=f"clients/send-result-{name}",
            unit=f"1/s, of the {name} of send(x).result(), 1 KiB, everything by default",
            other=_DISK,
            sides=partial(_sdk_against_disk, share),
        )
        for name, share in (("p50", 0.5), ("p99", 0.99))
    ),
    *(
        Scenario(
            name=f"server/ack-added-{name}",
            unit=f"1/s, of what the server adds to the {name} of a write and a sync",
            other=f"{1e6 * limit:.0f} µs",
            sides=partial(_added, share, limit),
        )
        for name, share, limit in (("p50", 0.5, 150e-6), ("p99", 0.99, 500e-6))
    ),
    Scenario(
        name="server/ack-p99-slow-sync",
        unit="1/s, of the p99, on a disk in memory with a sync of 100 µs",
        other="300 µs",
        sides=partial(_slow_sync, 0.99, 300e-6),
    ),
    Scenario(
        name="server/ack-p99-io_uring",
        unit="1/s, of the p99",
        other="the pwritev2 backend",
        sides=partial(_backends, 0.99),
    ),
)
