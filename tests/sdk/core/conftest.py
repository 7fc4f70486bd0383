"""Cores under a manual clock, with a scripted random source and an in-memory server."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from lance_sdk._protocol.backoff import Backoff
from lance_sdk._protocol.connection import ConnectionLimits
from lance_sdk._protocol.consume.fetch_settings import FetchSettings, Start
from lance_sdk._protocol.consume.fetcher import Fetcher
from lance_sdk._protocol.events import Event
from lance_sdk._protocol.handshake import Plan
from lance_sdk._protocol.hosts import Endpoint, Hosts
from lance_sdk._protocol.produce.batcher import Batcher, BatchLimits
from lance_sdk._protocol.produce.delivery import Batch
from lance_sdk._protocol.produce.send_settings import SendSettings
from lance_sdk._protocol.produce.sender import Sender
from lance_sdk._protocol.reconnecting_session import Session
from lance_sdk._protocol.request_tracker import RequestTracker
from lance_sdk._protocol.session_handler import SessionHandler, SessionSettings
from lance_sdk.offsets.contract import Fingerprint
from lance_sdk.testing import LoadedDice, ManualClock, Wire
from lance_spec.dialect import DIALECTS, SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.frames import Frame, FrameKind
from lance_spec.limits import END_OFFSET
from lance_spec.messages.lwp import CatchingUp, Fetch
from lance_spec.records import scan_records

LIMITS = ConnectionLimits(request_timeout=30.0, keepalive_interval=10.0, idle_timeout=30.0)
NONCE = 0xABCDEF


@dataclass
class Rig:
    """A core and everything around it."""

    clock: ManualClock = field(default_factory=ManualClock)
    dialects: tuple[Dialect, ...] = (SPECIFIED,)
    speaks: Dialect = SPECIFIED
    endpoints: tuple[Endpoint, ...] = (Endpoint("one"),)
    plan: Plan = field(default_factory=lambda: Plan("lance://one", topic="orders"))
    open_timeout: float = 0.0

    def start(self, app: SessionHandler, backoff: Backoff, events: list[Event]) -> None:
        """Put a session around an application and open it."""
        self.session = Session(
            app,
            self.plan,
            hosts=Hosts(self.endpoints, self.dialects),
            settings=SessionSettings(
                tls=False,
                connect_timeout=5.0,
                open_timeout=self.open_timeout,
                connection=LIMITS,
            ),
            backoff=backoff,
            events=events,
            target="lance://one/orders",
        )
        self.session.open(self.clock.now)
        self.wire = Wire(self.session, self.clock, self.speaks)

    def backoff(self) -> Backoff:
        """Return delays of exactly 0.1, 0.2, 0.4 … seconds."""
        return Backoff(0.1, 30.0, LoadedDice())


class ProducerRig(Rig):
    """A sender in a session."""

    def build(self, *, max_in_flight: int = 8, **limits: float) -> "ProducerRig":
        """Make the parts; keywords go to `BatchLimits`."""
        chosen = {
            "max_bytes": 1024,
            "max_records": 100,
            "linger": 0.0,
            "capacity": 1_000_000,
            "delivery_timeout": 120.0,
        }
        chosen.update(limits)
        self.batcher = Batcher(BatchLimits(**chosen))
        events: list[Event] = []
        backoff = self.backoff()
        self.sender = Sender(
            self.batcher,
            settings=SendSettings(topic_id=0, nonce=NONCE, max_in_flight=max_in_flight),
            backoff=backoff,
            retry=self.backoff(),
            clock_ns=lambda: int(self.clock.now * 1e9),
            events=events,
        )
        self.start(self.sender, backoff, events)
        return self

    def send(self, value: bytes = b"value", record_type: int = 1) -> Batch:
        """Hand a record over and let its batch go at once."""
        self.batcher.append(value, record_type, self.clock.now)
        self.batcher.seal()
        return self.batcher.last


class ConsumerRig(Rig):
    """A fetcher in a session."""

    def build(
        self,
        start: Start = "beginning",
        *,
        stop_at_end: bool = False,
        max_fetch_bytes: int = 1000,
        prefetch_bytes: int = 4000,
        reset: bool = False,
        **more: Any,
    ) -> "ConsumerRig":
        """Make the parts; more keywords go to `FetchSettings`."""
        more.setdefault("mode", "poll")
        events: list[Event] = []
        backoff = self.backoff()
        settings = FetchSettings(
            label="orders",
            topic_id=0,
            stop_at_end=stop_at_end,
            max_fetch_bytes=max_fetch_bytes,
            prefetch_bytes=prefetch_bytes,
            poll_interval=0.05,
            take_fingerprint=Fingerprint.of,
            reset_on_truncation=reset,
            **more,
        )
        self.fetcher = Fetcher(
            start, settings, progress=backoff.reset, retry=self.backoff(), events=events
        )
        self.start(self.fetcher, backoff, events)
        self.fetcher.situation = self.session.situation
        return self

    def log(self, data: bytes, *, strict: bool = True) -> "Log":
        """Return a server's log that answers this consumer."""
        return Log(self, data, strict=strict)

    def fetches(self) -> list[Fetch]:
        """Take the Fetch requests that are on the wire."""
        return [Fetch.decode(frame.payload) for frame in self.wire.take(FrameKind.CONTROL)]

    def data_fetch(self) -> Fetch:
        """Take the one Fetch for data, whether or not one for the end is beside it."""
        data = [fetch for fetch in self.fetches() if fetch.start_offset != END_OFFSET]
        assert len(data) == 1
        return data[0]

    def drain(self) -> list[bytes]:
        """Take everything that is there."""
        values = []
        while (batch := self.fetcher.take()) is not None:
            values += [record.value for record in batch]
        return values


class Log:
    """A server's log that answers a consumer's fetches.

    Args:
        rig: who asks.
        data: the log.
        strict: cut at records and count them (`specified`), or cut anywhere (`deployed`).
    """

    def __init__(self, rig: "ConsumerRig", data: bytes, *, strict: bool = True) -> None:
        self.rig = rig
        self.data = data
        self.strict = strict

    def answer(self, frame: Frame, most: int = 1 << 30) -> None:
        """Answer one Fetch, with at most so many bytes."""
        fetch, wire = Fetch.decode(frame.payload), self.rig.wire
        start, end = fetch.start_offset, len(self.data)
        if start == END_OFFSET:
            wire.data(end, b"", 0)
        elif start > end:
            wire.control(Command.CATCHING_UP, CatchingUp(end).encode())
        else:
            data, count = self.read(start, min(fetch.max_bytes, most))
            wire.data(start + len(data), data, count)

    def read(self, start: int, size: int) -> tuple[bytes, int]:
        """Return data and record count as the dialect has them (AMB-19)."""
        data = self.data[start : start + size]
        if not self.strict:
            return data, int(bool(data))
        if scan_records(self.data[:start]).fault is not None:
            return data, 0
        scan = scan_records(data)
        return (data[: scan.end], scan.count) if scan.count else (data, 0)

    def serve(self, most: int = 1 << 30) -> None:
        """Answer everything that is asked now."""
        for frame in self.rig.wire.take(FrameKind.CONTROL):
            self.answer(frame, most)

    def consume(self, most: int = 1 << 30, turns: int = 500) -> list[bytes]:
        """Serve and take until the end; bounded, so that a fetcher in a circle fails the test."""
        values: list[bytes] = []
        for _ in range(turns):
            self.serve(most)
            values += self.rig.drain()
            if self.rig.fetcher.ended or self.rig.fetcher.error is not None:
                return values
            self.rig.wire.advance(0.06)
        raise AssertionError(f"no end in {turns} turns: {self.rig.fetcher!r}")


class ClientRig(Rig):
    """A caller in a session."""

    def build(self, *, timeout: float = 30.0) -> "ClientRig":
        """Make the parts."""
        events: list[Event] = []
        backoff = self.backoff()
        self.caller = RequestTracker(timeout=timeout, progress=backoff.reset, events=events)
        self.plan = Plan("lance://one")
        self.start(self.caller, backoff, events)
        return self


@pytest.fixture
def producer() -> ProducerRig:
    """Return a producer core, not built yet."""
    return ProducerRig()


@pytest.fixture
def consumer() -> ConsumerRig:
    """Return a consumer core, not built yet."""
    return ConsumerRig()


@pytest.fixture
def client() -> ClientRig:
    """Return a client core, not built yet."""
    return ClientRig()


@pytest.fixture
def auto() -> tuple[Dialect, ...]:
    """Return the dialects that `dialect="auto"` tries."""
    return tuple(DIALECTS.values())


@pytest.fixture(scope="session")
def new_producer() -> type[ProducerRig]:
    """Return what makes producer cores, for property tests that need one an example."""
    return ProducerRig


@pytest.fixture(scope="session")
def new_consumer() -> type[ConsumerRig]:
    """Return what makes consumer cores, for property tests that need one an example."""
    return ConsumerRig
