"""Store-and-forward senders: what a backlog and many symbols cost."""

import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

from bench.harness import Rate, Scenario
from bench.peers import served
from lance_sdk.journal import Level, StoreAndForwardSender
from lance_sdk.journal.qwp import QwpSender, timestamp_nanos

_FRAMES = 100_000
_VALUE = b"x" * 100
_SYMBOLS = 1_000_000
_FLUSHES = 300
_ROWS = 100
"""Rows of one flush, with as many symbols."""
_PATIENCE = 300.0
_OFFLINE = "initial_connect_retry=async;auto_flush=off;close_flush_timeout_millis=0;"
_AT = timestamp_nanos(1)

Sides: TypeAlias = tuple[Rate, Rate]


def _send_records(address: str, slot: Path, *, online: bool, frames: int = _FRAMES) -> None:
    url = f"lance://{address}/{slot.name}"
    sender = StoreAndForwardSender(url, slot, on_missing_topic="create", close_timeout=0)
    with sender:
        for _ in range(frames):
            sender.send(_VALUE)
        if online:
            _all_acked(sender.wait(Level.ACKED, _PATIENCE))


def _send_rows(address: str, slot: Path, *, online: bool, frames: int = _FRAMES) -> None:
    conf = f"ws::addr={address};sf_dir={slot};{_OFFLINE}"
    with QwpSender.from_conf(conf) as sender:
        for number in range(frames):
            sender.row(slot.name, columns={"v": number}, at=timestamp_nanos(number + 1))
            sender.flush()
        if online:
            _all_acked(sender.wait(timeout=_PATIENCE))


def _all_acked(done: bool) -> None:
    if not done:
        raise RuntimeError(f"not every frame was acknowledged within {_PATIENCE:.0f} s")


def _drain(send: Callable[..., None], address: str) -> Sides:
    """Compare sending what waits on disk with sending while frames are stored."""
    numbers = count()

    def measured(*, stored_before: bool) -> float:
        with tempfile.TemporaryDirectory(dir=".") as name:
            slot = Path(name).resolve() / f"topic{next(numbers)}"
            if stored_before:
                send("127.0.0.1:1", slot, online=False)
            began = time.perf_counter()
            send(address, slot, online=True, frames=0 if stored_before else _FRAMES)
            return _FRAMES / (time.perf_counter() - began)

    return partial(measured, stored_before=True), partial(measured, stored_before=False)


@contextmanager
def _drained_records() -> Iterator[Sides]:
    with served() as server:
        yield _drain(_send_records, server.address)


@contextmanager
def _drained_rows() -> Iterator[Sides]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with served("--qwp", address):
        yield _drain(_send_rows, address)


@contextmanager
def _flushed(frames: str) -> Iterator[Sides]:
    """Compare flushes of a sender that has sent a million symbols with those of a new one."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        conf = f"ws::addr=127.0.0.1:1;{_OFFLINE}"
        old, new = (
            QwpSender.from_conf(f"{conf}sf_dir={Path(name).resolve() / each};sf_frames={frames};")
            for each in ("old", "new")
        )
        with old, new:
            for first in range(0, _SYMBOLS - _ROWS, 10_000):
                _rows(old, range(first, min(first + 10_000, _SYMBOLS - _ROWS)))
                old.flush()
            yield partial(_flush, old), partial(_flush, new)


def _rows(sender: QwpSender, symbols: range) -> None:
    for number in symbols:
        sender.row("t", symbols={"s": f"symbol-{number}"}, columns={"v": number}, at=_AT)


def _flush(sender: QwpSender) -> float:
    """Return how many flushes a second there are; rows are made meanwhile, and not counted."""
    seconds = 0.0
    for _ in range(_FLUSHES):
        _rows(sender, range(_SYMBOLS - _ROWS, _SYMBOLS))
        began = time.perf_counter()
        sender.flush()
        seconds += time.perf_counter() - began
    return _FLUSHES / seconds


_LIVE = "the same sender, online while it stores them"
_NEW = "a sender that has sent no symbol before"
SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="edge/drain-lwp", unit="frames/s", other=_LIVE, sides=_drained_records, budget=90
    ),
    Scenario(name="edge/drain-qwp", unit="frames/s", other=_LIVE, sides=_drained_rows, budget=90),
    *(
        Scenario(
            name=f"edge/million-symbols-{frames}",
            unit="flushes/s",
            other=_NEW,
            sides=partial(_flushed, frames),
        )
        for frames in ("full", "delta")
    ),
)
