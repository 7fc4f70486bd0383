"""Slots that somebody left behind are drained by whoever is there."""

import threading
from pathlib import Path

import pytest

from lance_sdk.journal import (
    DrainerEvent,
    Journal,
    JournalConfig,
    SlotKind,
    StoreAndForwardSender,
    inspect,
)
from lance_sdk.journal.drainers import Drainer
from lance_sdk.journal.lwp.settings import from_connect_string
from lance_sdk.journal.lwp.transport import LwpTransports
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame

NOWHERE = "lance://127.0.0.1:1/readings"
WAIT = 10.0


class Listener:
    """Keeps what drainers do, and lets a test wait for it."""

    def __init__(self) -> None:
        self.events: list[DrainerEvent] = []
        self._changed = threading.Condition()

    def __call__(self, event: DrainerEvent) -> None:
        """Take an event."""
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def wait_for(self, *steps: str) -> None:
        """Wait until so many slots ended so."""
        with self._changed:
            assert self._changed.wait_for(lambda: sorted(self.steps) == sorted(steps), WAIT), (
                self.events
            )

    @property
    def steps(self) -> list[str]:
        """How slots ended."""
        return [e.step for e in self.events if e.step not in {"started", "progress"}]


@pytest.fixture
def listener() -> Listener:
    """Return a listener."""
    return Listener()


def leave(root: Path, name: str, *values: bytes, url: str = NOWHERE) -> Path:
    """Leave a slot behind with records in it."""
    with StoreAndForwardSender(url, root / name, close_timeout=0) as sender:
        for value in values:
            sender.send(value)
    return root / name


def drain(url: str, root: Path, listener: Listener, **options: object) -> StoreAndForwardSender:
    """Return a sender that drains its neighbours."""
    return StoreAndForwardSender(
        url,
        root / "own",
        drain_orphans=True,
        drainer_listener=listener,
        backoff_base=0.001,
        close_timeout=0,
        **options,  # type: ignore[arg-type]  # any option may be among them
    )


def test_orphans_are_drained_in_parallel(
    server: FakeServer, tmp_path: Path, listener: Listener
) -> None:
    """Each in order, none twice; the counters say so."""
    for name in "abcdef":
        leave(tmp_path, name, *[f"{name}{number}".encode() for number in range(5)])
    with drain(server.url("readings"), tmp_path, listener, max_drainers=3) as sender:
        listener.wait_for(*["drained"] * 6)
    stats = sender.stats()
    assert (stats.drainers_succeeded, stats.drainers_failed) == (6, 0)
    for letter in b"abcdef":
        mine = [record for record in server.records() if record[0] == letter]
        assert mine == [b"%c%d" % (letter, number) for number in range(5)]
    assert all(inspect(tmp_path / name).frames == 0 for name in "abcdef")


def test_a_slot_in_use_is_skipped(server: FakeServer, tmp_path: Path, listener: Listener) -> None:
    """Its owner drains it; nothing is marked."""
    leave(tmp_path, "busy", b"mine")
    with StoreAndForwardSender(NOWHERE, tmp_path / "busy", close_timeout=0) as owner:
        with drain(server.url("readings"), tmp_path, listener):
            listener.wait_for("skipped")
        assert owner.published_fsn == 0
    assert not (tmp_path / "busy" / ".failed").exists()
    assert server.records() == []


def test_slots_of_another_protocol_are_left_alone(
    server: FakeServer, tmp_path: Path, listener: Listener
) -> None:
    """A QWP slot below the same root is not an orphan of an LWP sender (SF-31)."""
    with Journal.open(tmp_path / "qwp", JournalConfig(kind=SlotKind.QWP)) as journal:
        journal.append(b"QWP1...")
    before = sorted((tmp_path / "qwp").iterdir())
    leave(tmp_path, "lwp", b"mine")
    with drain(server.url("readings"), tmp_path, listener):
        listener.wait_for("drained")
    assert [event.slot.name for event in listener.events if event.step == "drained"] == ["lwp"]
    assert sorted((tmp_path / "qwp").iterdir()) == before


@pytest.mark.parametrize("name", ["gone.unreplayable-0", ".hidden"])
def test_slots_that_were_set_aside_are_left_alone(
    server: FakeServer, tmp_path: Path, listener: Listener, name: str
) -> None:
    """Their names say so (SF-30)."""
    leave(tmp_path, name, b"aside")
    leave(tmp_path, "other", b"mine")
    with drain(server.url("readings"), tmp_path, listener):
        listener.wait_for("drained")
    assert server.records() == [b"mine"]


def test_a_drainer_that_gives_up_says_why(
    server: FakeServer, tmp_path: Path, listener: Listener
) -> None:
    """`.failed` keeps others away until a person has looked; frames stay."""

    def refuse(peer: FakePeer, frame: Frame) -> bool:
        peer.error(ErrorCode.INVALID_PAYLOAD, "refused by the test", batch_id=frame.batch_id)
        return True

    server.on_ingest = refuse
    slot = leave(tmp_path, "bad", b"poison")
    with drain(server.url("readings"), tmp_path, listener) as sender:
        listener.wait_for("failed")
    assert sender.stats().drainers_failed == 1
    assert "refused by the test" in (slot / ".failed").read_text()
    report = inspect(slot)
    assert report.frames == 1
    assert report.failed is not None
    with drain(server.url("readings"), tmp_path, again := Listener()):
        assert again.events == []


def test_the_reason_of_an_earlier_drainer_is_kept(server: FakeServer, tmp_path: Path) -> None:
    """Asked for by name, a slot with `.failed` is left as it is, and the event says so."""
    slot = leave(tmp_path, "bad", b"x")
    (slot / ".failed").write_text("first reason")
    settings = from_connect_string(f"lance::addr=127.0.0.1:{server.port};")
    event = Drainer(slot, settings.forward, LwpTransports(settings), Listener()).run()
    assert event.step == "skipped"
    assert (slot / ".failed").read_text() == "first reason"


def test_a_server_that_is_away_marks_nothing(tmp_path: Path) -> None:
    """Where the first connection is tried once only, another time it may work."""
    slot = leave(tmp_path, "a", b"x")
    settings = from_connect_string("lance::addr=127.0.0.1:1;initial_connect_retry=off;")
    event = Drainer(slot, settings.forward, LwpTransports(settings), Listener()).run()
    assert event.step == "skipped"
    assert "cannot connect" in event.reason
    assert not (slot / ".failed").exists()


def test_a_budget_that_is_used_up_is_a_reason_to_give_up(tmp_path: Path) -> None:
    """Whoever sets one wants a person to look (SF client section 5.2)."""
    slot = leave(tmp_path, "a", b"x")
    conf = "lance::addr=127.0.0.1:1;initial_connect_retry=async;reconnect_max_duration_millis=1;"
    settings = from_connect_string(conf)
    event = Drainer(slot, settings.forward, LwpTransports(settings), Listener()).run()
    assert event.step == "failed"
    assert "reconnect_max_duration_millis" in (slot / ".failed").read_text()
    assert inspect(slot).frames == 1


def test_refused_credentials_are_a_reason_to_give_up(server: FakeServer, tmp_path: Path) -> None:
    """They are wrong another time, too (SF client section 5.2)."""

    def deny(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.AUTHENTICATE:
            return False
        peer.error(ErrorCode.ACCESS_DENIED, "not you")
        return True

    server.on_control = deny
    slot = leave(tmp_path, "a", b"x")
    conf = f"lance::addr=127.0.0.1:{server.port};token=wrong;initial_connect_retry=async;"
    settings = from_connect_string(conf)
    event = Drainer(slot, settings.forward, LwpTransports(settings), Listener()).run()
    assert event.step == "failed"
    assert "not you" in (slot / ".failed").read_text()
    assert inspect(slot).frames == 1


@pytest.mark.parametrize(("place", "byte"), [(4, b"\x09"), (5, b"\x82"), (6, b"\x01")])
def test_a_slot_of_a_newer_release_is_left_for_its_writer(
    server: FakeServer, tmp_path: Path, listener: Listener, place: int, byte: bytes
) -> None:
    """A newer version, an unknown flag: told, nothing renamed, and not tried at every start."""
    slot = leave(tmp_path, "newer", b"x")
    (segment,) = slot.glob("*.sfl")
    with segment.open("r+b") as file:
        file.seek(place)
        file.write(byte)
    with drain(server.url("readings"), tmp_path, listener):
        listener.wait_for("skipped")
    assert "newer client" in listener.events[-1].reason
    assert not (slot / ".failed").exists()
    assert segment.exists()


def test_a_slot_with_a_gap_is_marked(
    server: FakeServer, tmp_path: Path, listener: Listener
) -> None:
    """A segment file is missing: told with the numbers, and not tried at every start."""
    slot, config = tmp_path / "gap", JournalConfig(segment_bytes=256, background=False)
    with Journal.open(slot, config) as journal:
        for _ in range(20):
            journal.append(bytes(50))
    (slot / "sf-0000000000000001.sfl").unlink()
    with drain(server.url("readings"), tmp_path, listener):
        listener.wait_for("failed")
    assert "frames 4 to 7" in (slot / ".failed").read_text()


def test_a_drained_slot_is_empty_and_never_marked(
    server: FakeServer, tmp_path: Path, listener: Listener
) -> None:
    """No server is asked, so it is not said to be drained."""
    with StoreAndForwardSender(server.url("readings"), tmp_path / "slot") as sender:
        sender.send(b"x")
        assert sender.wait(timeout=10)
    settings = from_connect_string("lance::addr=127.0.0.1:1;")
    event = Drainer(tmp_path / "slot", settings.forward, LwpTransports(settings), listener).run()
    assert (event.step, event.acked_frames) == ("empty", 0)
    assert not (tmp_path / "slot" / ".failed").exists()


def test_closing_the_sender_stops_its_drainers(tmp_path: Path, listener: Listener) -> None:
    """Without a server they would wait for ever; nothing is marked, the lock is released."""
    slot = leave(tmp_path, "waiting", b"x")
    with drain(NOWHERE, tmp_path, listener):
        """Close at once."""
    assert listener.steps in (["stopped"], [])
    assert not (slot / ".failed").exists()
    with StoreAndForwardSender(NOWHERE, slot, close_timeout=0) as sender:
        assert sender.published_fsn == 0


def test_a_listener_that_raises_changes_nothing(server: FakeServer, tmp_path: Path) -> None:
    """It is logged, and the slot is drained all the same."""
    leave(tmp_path, "a", b"x")
    done = threading.Event()

    def listener(event: DrainerEvent) -> None:
        if event.step == "drained":
            done.set()
        raise ValueError(event.step)

    with StoreAndForwardSender(
        server.url("readings"),
        tmp_path / "own",
        drain_orphans=True,
        drainer_listener=listener,
        close_timeout=0,
    ):
        assert done.wait(WAIT)
    assert server.records() == [b"x"]


def test_orphans_keep_their_own_topics(
    server: FakeServer, tmp_path: Path, listener: Listener
) -> None:
    """A slot's metadata goes with its frames, not with the sender that drains it."""
    leave(tmp_path, "a", b"x", url="lance://127.0.0.1:1/elsewhere")
    with drain(server.url("readings"), tmp_path, listener, on_missing_topic="create"):
        listener.wait_for("drained")
    assert server.records(2) == [b"x"]
    assert server.frames.count(Command.CREATE_TOPIC.name) == 1
