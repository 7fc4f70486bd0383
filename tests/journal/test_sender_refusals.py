"""What a server refuses, and who is told, on three clients."""

from pathlib import Path
from typing import Any

import pytest

from lance_sdk.errors import AccessDenied
from lance_sdk.journal import (
    Category,
    Level,
    OutboxLimits,
    Policy,
    Rejection,
    SenderHalted,
    StoreAndForwardSender,
    read_dead_letters,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.dialect import DEPLOYED
from lance_spec.enums import Command, ErrorCode, RecordType
from lance_spec.frames import Frame

pytestmark = pytest.mark.anyio
NOWHERE = "lance://127.0.0.1:1/readings"
"""A port that nobody listens on."""


async def acked(sender: Any) -> bool:
    """Wait until everything stored is acknowledged."""
    return bool(await sender.wait(Level.ACKED, 10.0))


async def test_dead_letter_goes_on_without_the_topic(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Its frames stand in the dead-letter file, the others arrive."""
    options = {"on_missing_topic": "dead_letter"}
    async with api.sender(server.url("readings"), tmp_path / "slot", **options) as sender:
        await sender.send(b"lost", topic="nowhere")
        await sender.send(b"found")
        assert await acked(sender)
        assert sender.stats().dead_lettered == 1
    assert server.records() == [b"found"]
    (letter,) = read_dead_letters(tmp_path / "slot")
    assert letter.payload.endswith(b"lost")
    assert letter.rejection.table == "nowhere"


async def test_what_the_server_cannot_keep_becomes_a_dead_letter(api: Any, tmp_path: Path) -> None:
    """A null record toward `deployed` (AMB-13), a topic name that it does not take (AMB-24)."""
    async with api.sender(NOWHERE, tmp_path / "slot", close_timeout=0) as sender:
        await sender.send(b"", record_type=RecordType.NULL)
        await sender.send(b"x", topic="not_strict")
        await sender.send(b"good")
    with FakeServer(DEPLOYED, topics=("readings",)) as server:
        async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
            assert await acked(sender)
        assert server.records() == [b"good"]
    messages = [each.rejection.message for each in read_dead_letters(tmp_path / "slot")]
    assert ["AMB-13" in messages[0], "AMB-24" in messages[1]] == [True, True]


def refuse(code: ErrorCode, value: bytes) -> Any:
    """Return a hook that refuses batches which end with a value."""

    def hook(peer: FakePeer, frame: Frame) -> bool:
        if not bytes(frame.payload).endswith(value):
            return False
        peer.error(code, "refused by the test", batch_id=frame.batch_id)
        return True

    return hook


async def test_a_rejected_frame_halts_by_default(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """It and all after it stay; calls say why; every counter stays readable."""
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD, b"bad")
    sender = api.sender(server.url("readings"), tmp_path / "slot")
    await sender.open()
    await sender.send(b"good")
    assert await acked(sender)
    await sender.send(b"bad")
    with pytest.raises(SenderHalted, match="parse") as caught:
        await sender.wait(Level.ACKED, 10.0)
    assert caught.value.rejection.first_fsn == 1
    with pytest.raises(SenderHalted):
        await sender.send(b"more")
    with pytest.raises(SenderHalted):
        await sender.flush()
    stats = sender.stats()
    assert (sender.acked_fsn, sender.published_fsn) == (0, 1)
    assert (stats.journal.backlog_frames, stats.server_errors) == (1, 1)
    assert isinstance(stats.terminal_error, SenderHalted)
    report = await sender.close()
    assert (report.kept_frames, report.error) == (1, stats.terminal_error)
    assert sender.stats().journal.backlog_frames == 1


@pytest.mark.parametrize("policy", [Policy.DROP, Policy.DEAD_LETTER])
async def test_a_policy_may_go_on_without_the_frame(
    api: Any, server: FakeServer, tmp_path: Path, policy: Policy
) -> None:
    """The frames after it arrive, and the handler is told which policy was applied."""
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD, b"bad")
    told: list[Rejection] = []
    options = {
        "limits": OutboxLimits(policies={Category.PARSE_ERROR: policy}),
        "error_handler": told.append,
    }
    async with api.sender(server.url("readings"), tmp_path / "slot", **options) as sender:
        for value in (b"one", b"bad", b"two"):
            await sender.send(value)
        assert await acked(sender)
    assert server.records() == [b"one", b"two"]
    assert [(each.category, each.policy, each.first_fsn) for each in told] == [
        (Category.PARSE_ERROR, policy, 1)
    ]
    buried = (tmp_path / "slot" / "dead-letters.jsonl").exists()
    assert buried is (policy is Policy.DEAD_LETTER)


async def test_a_frame_that_is_always_refused_halts_in_the_end(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Retrying has an end: strikes, and the time they took."""
    server.on_ingest = refuse(ErrorCode.INTERNAL_ERROR, b"poison")
    options = {"limits": OutboxLimits(strikes=3, dwell=0.0)}
    sender = api.sender(server.url("readings"), tmp_path / "slot", **options)
    await sender.open()
    await sender.send(b"poison")
    with pytest.raises(SenderHalted) as caught:
        await sender.wait(Level.ACKED, 10.0)
    assert caught.value.rejection.strikes == 3
    await sender.close()
    assert len(server.ingested) == 3


async def test_a_refusal_for_the_moment_is_tried_again(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """On the same connection, behind a pause."""
    left = [2]

    def busy(peer: FakePeer, frame: Frame) -> bool:
        if left[0]:
            left[0] -= 1
            peer.error(ErrorCode.RATE_LIMITED, "wait", batch_id=frame.batch_id, retry_after_ms=1)
            return True
        return False

    server.on_ingest = busy
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        await sender.send(b"patient")
        assert await acked(sender)
        assert sender.stats().connects == 1
    assert server.records() == [b"patient"]


async def test_text_errors_are_pinned_to_their_frame(api: Any, tmp_path: Path) -> None:
    """A deployed server does not say which frame it refused; one at a time, it does (AMB-10)."""
    with FakeServer(DEPLOYED, topics=("readings",)) as server:

        def refuse_text(peer: FakePeer, frame: Frame) -> bool:
            if not bytes(frame.payload).endswith(b"bad"):
                return False
            peer.error(ErrorCode.INVALID_PAYLOAD, "Invalid payload")
            return True

        server.on_ingest = refuse_text
        limits = OutboxLimits(
            policies={each: Policy.DROP for each in Category if each is not Category.DAMAGED}
        )
        async with api.sender(NOWHERE, tmp_path / "slot", close_timeout=0) as sender:
            for value in (b"one", b"two", b"bad", b"three", b"bad", b"four"):
                await sender.send(value)
        async with api.sender(server.url("readings"), tmp_path / "slot", limits=limits) as sender:
            assert await acked(sender)
            assert sender.stats().dropped_frames == 2
        assert server.records() == [b"one", b"two", b"three", b"four"]


async def test_an_ack_for_nothing_is_a_protocol_error(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """It moves nothing: the connection is dropped and the frame sent again (SF-35)."""
    lied: list[int] = []

    def lie(peer: FakePeer, frame: Frame) -> bool:
        if not lied:
            lied.append(peer.number)
            peer.ack(frame.batch_id + 1000)
            return True
        return False

    server.on_ingest = lie
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        await sender.send(b"true")
        assert await acked(sender)
        assert sender.stats().connects == 2
    assert server.records() == [b"true"]


async def test_an_ack_that_comes_twice_is_no_error(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """The second one says nothing new."""

    def twice(peer: FakePeer, frame: Frame) -> bool:
        peer.ack(frame.batch_id)
        return False

    server.on_ingest = twice
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        for _ in range(3):
            await sender.send(b"x")
        assert await acked(sender)
        assert await sender.send(b"y") == 3
        assert await acked(sender)
        assert sender.stats().connects == 1


async def test_a_token_that_is_not_taken_halts(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Trying again would not help; records stay, and the handler is told."""

    def deny(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.LIST_TOPICS:
            return False
        peer.error(ErrorCode.ACCESS_DENIED, "not you")
        return True

    server.on_control = deny
    told: list[Rejection] = []
    options = {"error_handler": told.append}
    sender = api.sender(server.url("readings"), tmp_path / "slot", **options)
    await sender.open()
    await sender.send(b"kept")
    with pytest.raises(SenderHalted):
        await sender.wait(Level.ACKED, 10.0)
    report = await sender.close()
    assert report.kept_frames == 1
    assert [each.category for each in told] == [Category.SECURITY_ERROR]


@pytest.mark.parametrize("handled", [True, False], ids=["handler", "log"])
async def test_frames_that_were_lost_before_the_slot_was_opened_are_told(
    api: Any, server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, handled: bool
) -> None:
    """With their numbers; the others are delivered."""
    path = tmp_path / "slot"
    async with api.sender(NOWHERE, path, close_timeout=0) as sender:
        for number in range(4):
            await sender.send(b"value %d" % number)
    (segment,) = path.glob("*.sfl")
    segment.write_bytes(segment.read_bytes().replace(b"value 2", b"value x"))
    told: list[Rejection] = []
    options: Any = {"error_handler": told.append} if handled else {}
    async with api.sender(server.url("readings"), path, **options) as sender:
        assert await acked(sender)
    assert server.records() == [b"value 0", b"value 1", b"value 3"]
    if handled:
        assert [(e.category, e.first_fsn, e.last_fsn) for e in told] == [(Category.DAMAGED, 2, 2)]
    else:
        assert any("frame 2 rejected, damaged: " in each.getMessage() for each in caplog.records)


async def test_the_errors_of_a_slow_handler_are_dropped(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """The oldest ones, and they are counted; sending does not wait for the handler."""
    import threading  # noqa: PLC0415 - only here

    release = threading.Event()
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD, b"bad")
    options = {
        "limits": OutboxLimits(policies={Category.PARSE_ERROR: Policy.DROP}),
        "error_handler": lambda _: release.wait(10.0),
        "error_inbox_capacity": 16,
    }
    async with api.sender(server.url("readings"), tmp_path / "slot", **options) as sender:
        for _ in range(40):
            await sender.send(b"bad")
        assert await acked(sender)
        assert sender.stats().errors_dropped >= 40 - 16 - 1
        release.set()
    assert sender.stats().errors_delivered <= 17


def test_close_raises_what_nobody_was_told(server: FakeServer, tmp_path: Path) -> None:
    """Without a handler and without a call that raised it, close() does (section 17)."""
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD, b"bad")
    sender = StoreAndForwardSender(server.url("readings"), tmp_path / "slot").open()
    sender.send(b"bad")
    with pytest.raises(SenderHalted):
        sender.close()
    with StoreAndForwardSender(NOWHERE, tmp_path / "slot", close_timeout=0):
        """The slot was released all the same."""


def test_close_is_silent_when_a_handler_was_told(server: FakeServer, tmp_path: Path) -> None:
    """The application owns the failure already (section 17)."""
    server.on_ingest = refuse(ErrorCode.INVALID_PAYLOAD, b"bad")
    told: list[Rejection] = []
    sender = StoreAndForwardSender(
        server.url("readings"), tmp_path / "slot", error_handler=told.append
    ).open()
    sender.send(b"bad")
    report = sender.close()
    assert isinstance(report.error, SenderHalted)
    assert len(told) == 1


def test_the_default_handler_logs(
    server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Silence would hide a loss (section 20); the same frame again is no second warning."""
    server.on_ingest = refuse(ErrorCode.INTERNAL_ERROR, b"bad")
    options: Any = {"limits": OutboxLimits(strikes=4, dwell=0.0), "backoff_base": 0.001}
    with caplog.at_level("DEBUG", "lance_sdk"):
        sender = StoreAndForwardSender(server.url("readings"), tmp_path / "slot", **options).open()
        sender.send(b"bad")
        with pytest.raises(SenderHalted):
            sender.close()
    levels = [each.levelname for each in caplog.records if "; policy:" in each.getMessage()]
    assert levels == ["WARNING", "DEBUG", "DEBUG", "WARNING"]


def test_an_error_of_the_connection_is_told_as_security(server: FakeServer, tmp_path: Path) -> None:
    """A refused token ends the session before any frame was sent."""

    def deny(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.AUTHENTICATE:
            return False
        peer.error(ErrorCode.ACCESS_DENIED, "not you")
        return True

    server.on_control = deny
    with StoreAndForwardSender(NOWHERE, tmp_path / "slot", close_timeout=0) as earlier:
        earlier.send(b"kept")
    sender = StoreAndForwardSender(server.url("readings"), tmp_path / "slot", token="wrong").open()
    with pytest.raises(AccessDenied):
        sender.close()
    assert sender.stats().journal.backlog_frames == 1
