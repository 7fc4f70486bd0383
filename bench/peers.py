"""What the scenarios run against: our server in its own process, and raw limits."""

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import Flag
from lance_spec.frames import FrameSplitter, encode_header
from lance_spec.records import encode_records

READY = re.compile(r"(127\.0\.0\.1):(\d+)")


@contextmanager
def data_directory() -> Iterator[Path]:
    """Yield a fresh directory on the disk that the working directory is on."""
    with tempfile.TemporaryDirectory(prefix="lance-bench-", dir=Path.cwd()) as name:
        yield Path(name)


@contextmanager
def server_process(*options: str) -> Iterator[str]:
    """Run ``lance-server`` in its own process and yield its ``host:port``."""
    with data_directory() as data:
        command = [sys.executable, "-m", "lance_server", "--data-dir", str(data)]
        process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not (found := READY.search(line)):
                raise RuntimeError(f"lance-server did not say where it listens: {line!r}")
            yield found.group()
        finally:
            process.terminate()
            process.wait(30)


def ingest(address: str, frames: int, records: int, size: int, window: int) -> None:
    """Send Ingest frames to the default topic, ``window`` un-acked at most, until all are acked.

    Args:
        address: ``host:port``.
        frames: how many frames.
        records: records in each frame.
        size: bytes of each record's value.
        window: frames in flight.
    """
    host, _, port = address.rpartition(":")
    payload = encode_records([b"x" * size] * records)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _pump(connection, SPECIFIED, payload, (frames, records, window))


def _pump(
    connection: socket.socket, dialect: Dialect, payload: bytes, shape: tuple[int, int, int]
) -> None:
    frames, records, window = shape
    splitter = FrameSplitter((dialect,))
    buffer = bytearray(1 << 18)
    nonce = int.from_bytes(os.urandom(3), "big") << 40
    sent = acked = 0
    while acked < frames:
        burst = min(window - (sent - acked), frames - sent)
        if burst:
            ids = range(nonce + sent + 1, nonce + sent + burst + 1)
            pieces = [
                piece
                for number in ids
                for piece in (
                    encode_header(
                        dialect,
                        Flag.BATCH_MODE,
                        batch_id=number,
                        timestamp_ns=1,
                        record_count=records,
                        payload=payload,
                    ),
                    payload,
                )
            ]
            connection.sendall(b"".join(pieces))
            sent += burst
        got = connection.recv_into(buffer)
        acked += len(splitter.receive_data(memoryview(buffer)[:got]))
        if not got or splitter.fault:
            raise RuntimeError(f"the server ended the connection: {splitter.fault}")


def group_commit(directory: Path, total: int, group: int = 4 << 20) -> None:
    """Append ``total`` bytes to a new file in groups, each made durable: the disk's own limit."""
    block = bytes(group)
    path = directory / f"raw-{os.urandom(4).hex()}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        for _ in range(total // group):
            os.write(handle, block)
            os.fdatasync(handle)
    finally:
        os.close(handle)
        path.unlink()
