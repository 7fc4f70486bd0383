"""Fetching from closed segments in the page cache, against ``pread`` and ``send``."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import raw
from bench.harness import Rate, Scenario, rate
from bench.limit import Load, compiler, run_load, tools
from bench.peers import READY, data_directory, server_process
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, Flag
from lance_spec.frames import encode_control
from lance_spec.limits import HEADER_SIZE
from lance_spec.messages.lwp import Fetch

_BATCH = 624 * 105
_LOAD = Load(frames=1152, records=624, size=100, window=128)
_SEGMENT = "64MiB"
_STORED = 48 << 20
"""Bytes that the first segment holds at least: no answer goes over its end."""

_READ = 64 << 20
"""Bytes that each side reads in one go, the stored ones several times over."""
_ANSWER_HEAD = HEADER_SIZE + 16
_IN_FLIGHT = 4


def _fetch(offset: int, size: int) -> bytes:
    return encode_control(SPECIFIED, Command.FETCH, Fetch(0, offset, size).encode())


def _read(address: str, size: int, ask: Callable[[int, int], bytes], *, frames: bool) -> None:
    """Ask for one part after the other, several requests ahead, until all have come."""
    host, port = address.split(":")
    answer = size + _ANSWER_HEAD
    wanted = size if frames else answer
    offsets = [number * size % (_STORED // size * size - size) for number in range(_READ // size)]
    buffer = memoryview(bytearray(answer))
    with socket.create_connection((host, int(port)), 30) as peer:
        for offset in offsets[:_IN_FLIGHT]:
            peer.sendall(ask(offset, wanted))
        for following in [*offsets[_IN_FLIGHT:], *[None] * _IN_FLIGHT]:
            _fill(peer, buffer)
            if frames:
                _judge(buffer, size)
            if following is not None:
                peer.sendall(ask(following, wanted))


def _judge(answer: memoryview, size: int) -> None:
    """Make sure that the server sent the whole part, and not an error."""
    if answer[5] != Flag.CONTROL or answer[32:36] != (size + 16).to_bytes(4, "little"):
        raise RuntimeError(f"not the answer that was expected: {bytes(answer[:80])!r}")


def _fill(peer: socket.socket, buffer: memoryview) -> None:
    have = 0
    while have < len(buffer):
        received = peer.recv_into(buffer[have:])
        if not received:
            raise RuntimeError("the server ended the connection")
        have += received


@contextmanager
def _raw_process(path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.raw", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = READY.search(process.stdout.readline())
        if not found:
            raise RuntimeError("the raw server did not say where it listens")
        yield found.group()
    finally:
        process.kill()
        process.wait(30)


@contextmanager
def _sides(size: int) -> Iterator[tuple[Rate, Rate]]:
    with (
        tools() as folder,
        data_directory() as data,
        server_process("--segment-size", _SEGMENT) as ours,
    ):
        run_load(folder, ours, _LOAD)
        path = data / "raw"
        path.write_bytes(os.urandom(1 << 20) * (_STORED // (1 << 20) + 1))
        with _raw_process(path) as theirs:
            total = _READ // size * size
            yield (
                rate(total, lambda: _read(ours, size, _fetch, frames=True)),
                rate(total, lambda: _read(theirs, size, raw.request, frames=False)),
            )


def _scenarios() -> tuple[Scenario, ...]:
    if compiler() is None:  # the load that fills the log is in C
        return ()
    return tuple(
        Scenario(
            name=f"server/fetch-{name}-cached",
            unit="B/s",
            other="pread and send of the same bytes, in a process of its own",
            sides=partial(_sides, size),
        )
        for name, size in (("64KiB", _BATCH), ("1MiB", 16 * _BATCH))
    )


SCENARIOS = _scenarios()
