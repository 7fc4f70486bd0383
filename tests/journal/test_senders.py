"""Records through a journal to a server, on three clients."""

import ssl
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import trustme
from anyio import to_thread

from lance_sdk.errors import ClosedError, NotOpenError, RecordTooLarge, UsageError
from lance_sdk.hooks import DisconnectEvent, Hooks
from lance_sdk.journal import (
    AsyncStoreAndForwardSender,
    Durability,
    FramesLost,
    JournalConfig,
    JournalFull,
    Level,
    OutboxLimits,
    Rejection,
    SlotLocked,
    StoreAndForwardSender,
)
from lance_sdk.journal.lwp.options import SenderOptions
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.bodies import encode_json
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.messages.lwp import AuthenticateResponse, CreateTopic

pytestmark = pytest.mark.anyio
NOWHERE = "lance://127.0.0.1:1/readings"
"""A port that nobody listens on."""


async def acked(sender: Any) -> bool:
    """Wait until everything stored is acknowledged."""
    return bool(await sender.wait(Level.ACKED, 10.0))


async def test_records_arrive_in_order(api: Any, server: FakeServer, tmp_path: Path) -> None:
    """One by one and many at a time."""
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        assert await sender.send(b"first") == 0
        await sender.send_many([b"second", b"third"])
        assert await acked(sender)
        assert sender.acked_fsn == sender.published_fsn == 1
    assert server.records() == [b"first", b"second", b"third"]


async def test_without_a_server_records_wait_for_the_next_sender(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Opening and sending need no server; the next sender of the slot delivers."""
    async with api.sender(NOWHERE, tmp_path / "slot", close_timeout=0) as sender:
        for number in range(10):
            await sender.send(b"%d" % number)
        report = await sender.close()
    assert (report.kept_frames, report.lost_frames, report.error) == (10, 0, None)
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        assert await acked(sender)
    assert server.records() == [b"%d" % number for number in range(10)]


async def test_a_batch_keeps_its_identity(api: Any, server: FakeServer, tmp_path: Path) -> None:
    """It is sent again under the same id, time and content after a lost connection (AMB-25)."""
    cut: list[int] = []

    def cut_once(peer: FakePeer, frame: Frame) -> bool:
        del frame
        if not cut:
            cut.append(peer.number)
            peer.close()
            return True
        return False

    server.on_ingest = cut_once
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        await sender.send(b"once")
        assert await acked(sender)
        assert sender.stats().frames_replayed == 1
    first, second = server.ingested
    assert first.connection != second.connection
    assert (first.batch_id, first.timestamp_ns, first.payload) == (
        second.batch_id,
        second.timestamp_ns,
        second.payload,
    )
    assert first.batch_id >= 2**40
    assert first.batch_id % 2**40 == 1


async def test_frames_of_many_topics_share_a_slot(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Topics are created where that is the policy; the slot remembers their names."""
    async with api.sender(NOWHERE, tmp_path / "slot", close_timeout=0) as sender:
        for number in range(6):
            await sender.send(b"%d" % number, topic=f"t{number % 2}")
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        assert await acked(sender)
    assert server.records(2) == [b"0", b"2", b"4"]
    assert server.records(3) == [b"1", b"3", b"5"]


async def test_hold_waits_for_the_topic(api: Any, server: FakeServer, tmp_path: Path) -> None:
    """Nothing is given up; when somebody creates the topic, its frames arrive."""
    options = {"on_missing_topic": "hold"}
    async with api.sender(server.url("later"), tmp_path / "slot", **options) as sender:
        await sender.send(b"patient")
        looks = len(server.frames)
        await to_thread.run_sync(
            server.wait_for, lambda: server.frames[looks:].count("LIST_TOPICS") > 2
        )
        assert sender.stats().journal.backlog_frames == 1
        server.topics.ask(Command.CREATE_TOPIC, CreateTopic(name=b"later").encode())
        assert await acked(sender)
    assert server.records(2) == [b"patient"]


async def test_a_deployed_server_gets_the_same_batches(api: Any, tmp_path: Path) -> None:
    """What is stored is dialect-neutral (SF-32)."""
    async with api.sender(NOWHERE, tmp_path / "slot", close_timeout=0) as sender:
        await sender.send_many([b"a", b"b"])
    with FakeServer(DEPLOYED, topics=("readings",)) as server:
        async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
            assert await acked(sender)
        assert server.records() == [b"a", b"b"]


async def test_another_host_takes_over(api: Any, server: FakeServer, tmp_path: Path) -> None:
    """Where one does not answer, and where one leaves."""
    with FakeServer(topics=("readings",)) as other:
        url = f"lance://127.0.0.1:1,127.0.0.1:{other.port},127.0.0.1:{server.port}/readings"
        async with api.sender(url, tmp_path / "slot") as sender:
            await sender.send(b"first")
            assert await acked(sender)
            other.stop()
            await sender.send(b"second")
            assert await acked(sender)
    assert (other.records(), server.records()) == ([b"first"], [b"second"])


async def test_a_follower_names_the_leader(api: Any, server: FakeServer, tmp_path: Path) -> None:
    """Frames go there, once (LWP section 12.4)."""
    with FakeServer(topics=("readings",)) as follower:

        def redirect(peer: FakePeer, frame: Frame) -> bool:
            leader = f"127.0.0.1:{server.port}"
            details: dict[str, Any] = {"batch_id": frame.batch_id, "leader_addr": leader}
            peer.error(ErrorCode.NOT_LEADER, "not me", **details)
            return True

        follower.on_ingest = redirect
        async with api.sender(follower.url("readings"), tmp_path / "slot") as sender:
            await sender.send(b"x")
            assert await acked(sender)
        assert follower.records() == []
    assert server.records() == [b"x"]


async def test_over_tls(api: Any, tmp_path: Path) -> None:
    """With certificates of one's own, and a token that is fresh for each connection."""
    authority = trustme.CA()
    roots = tmp_path / "roots.pem"
    authority.cert_pem.write_to_path(str(roots))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    def welcome(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.AUTHENTICATE:
            return False
        peer.control(
            Command.AUTHENTICATE_RESPONSE, AuthenticateResponse(ok=True, message=b"").encode()
        )
        return True

    with FakeServer(tls=context, topics=("readings",)) as server:
        server.on_control = welcome
        url = f"lances://localhost:{server.port}/readings"
        async with api.sender(url, tmp_path / "slot", tls_ca=roots, token=lambda: "t") as sender:
            await sender.send(b"x")
            assert await acked(sender)
        assert server.frames.count("AUTHENTICATE") == 1
        assert server.records() == [b"x"]
        conf = f"lances::addr=localhost:{server.port};topic=readings;tls_roots={roots};"
        with StoreAndForwardSender.from_conf(conf) as plain:
            plain.send(b"y")
            assert await to_thread.run_sync(plain.wait, Level.ACKED, 10.0)
        assert server.records() == [b"x", b"y"]


@pytest.mark.parametrize("stated", [True, False])
async def test_a_sender_knows_whether_a_repeated_frame_is_stored_once(
    api: Any, server: FakeServer, tmp_path: Path, stated: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the server states no duplicate window, the log says what that means (SF-34)."""

    def status(peer: FakePeer, frame: Frame) -> bool:
        if frame.batch_id != Command.GET_CLUSTER_STATUS:
            return False
        body: dict[str, Any] = {"is_leader": True, "node_count": 1, "healthy_nodes": 1}
        if stated:
            body["dedup_window"] = {"entries": 1000, "max_age_secs": 60}
        peer.control(Command.CLUSTER_STATUS_RESPONSE, encode_json(body))
        return True

    server.on_control = status
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        await sender.send(b"x")
        assert await acked(sender)
        assert sender.stats().exactly_once is stated
    assert ("at least once" in caplog.text) is not stated


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED])
async def test_frames_are_compressed_where_the_server_understands_it(
    api: Any, tmp_path: Path, dialect: Dialect
) -> None:
    """In the slot they never are, so another server gets them as they are (AMB-20, SF-32)."""
    with FakeServer(dialect, topics=("readings",)) as server:
        url = server.url("readings")
        async with api.sender(url, tmp_path / "slot", compression="auto") as sender:
            await sender.send(bytes(1000))
            assert await acked(sender)
        (frame,) = server.ingested
    assert (len(frame.payload) < 200) is dialect.lz4


async def test_a_server_that_never_acks_is_left(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Its keepalives do not count: after a time the frame goes over another connection."""
    server.on_ingest = lambda peer, _: peer.number == 1
    options = {"limits": OutboxLimits(ack_timeout=0.05)}
    async with api.sender(server.url("readings"), tmp_path / "slot", **options) as sender:
        await sender.send(b"x")
        assert await acked(sender)
        assert sender.stats().connects == 2
    assert server.records() == [b"x"]


async def test_an_idle_sender_notices_that_its_server_left(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """It connects again although there is nothing to send."""
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        await sender.send(b"x")
        assert await acked(sender)
        server.drop_all()
        await to_thread.run_sync(server.wait_for, lambda: server.accepted == 2)


async def test_a_server_that_acks_too_little_gets_frames_again(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """What was not acknowledged is not given up."""

    def first_connection_acks_one(peer: FakePeer, frame: Frame) -> bool:
        if peer.number > 1:
            return False
        if len(server.ingested) == 1:
            peer.ack(frame.batch_id)
        elif len(server.ingested) == 5:
            peer.close()
        return True

    server.on_ingest = first_connection_acks_one
    async with api.sender(server.url("readings"), tmp_path / "slot") as sender:
        for number in range(5):
            await sender.send(b"%d" % number)
        assert await acked(sender)
    assert server.records() == [b"1", b"2", b"3", b"4"]


async def test_memory_mode_says_what_is_lost(api: Any) -> None:
    """Without a folder frames end with the sender, and leaving the block says so."""

    async def leave() -> None:
        async with api.sender(NOWHERE, close_timeout=0) as sender:
            for _ in range(3):
                await sender.send(b"x")

    with pytest.raises(FramesLost, match="3 frames in memory") as caught:
        await leave()
    assert caught.value.report.lost_frames == 3


async def test_memory_mode_delivers(api: Any, server: FakeServer) -> None:
    """With a server it is a sender like the others."""
    async with api.sender(server.url("readings")) as sender:
        await sender.send(b"x")
        assert await acked(sender)
    assert server.records() == [b"x"]


async def test_a_full_journal_says_what_it_waits_for(api: Any, tmp_path: Path) -> None:
    """Backpressure without a server names the backlog, not the disk."""
    journal = JournalConfig(segment_bytes=4096, max_total_bytes=8192, append_timeout=0.05)
    options = {"journal": journal, "close_timeout": 0}
    async with api.sender(NOWHERE, tmp_path / "slot", **options) as sender:
        reason = "reserving"
        while reason == "reserving":  # on a busy machine the next segment takes its time
            with pytest.raises(JournalFull) as caught:
                await sender.send_many([bytes(1000)] * 100)
            reason = caught.value.reason
        assert reason == "backlog"
        assert "(never connected, in " in str(caught.value)
        assert sender.stats().journal.backpressure_stalls > 0


@pytest.mark.parametrize("kept", [True, False], ids=["on disk", "in memory"])
async def test_a_close_that_did_not_wait_long_enough_warns(
    api: Any, tmp_path: Path, kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """With the number of frames and what becomes of them (SF client section 17)."""
    path = tmp_path / "slot" if kept else None
    sender = api.sender(NOWHERE, path)
    await sender.open()
    await sender.send(b"x")
    await sender.close(0.05)
    told = [each.getMessage() for each in caplog.records if "closed although" in each.getMessage()]
    assert len(told) == 1
    assert "closed although 1 frames (" in told[0]
    assert told[0].endswith(f"they stay in {path}" if kept else "they are lost")


def dropped(peer: FakePeer) -> bool:
    """Close a connection that was just accepted."""
    peer.close()
    return True


async def test_an_outage_is_one_warning_at_each_end(
    api: Any, server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However often the sender tries in between."""
    async with api.sender(server.url("readings"), tmp_path / "slot", backoff_cap=0.01) as sender:
        await sender.send(b"before")
        assert await acked(sender)
        server.on_accept = dropped
        server.drop_all()
        await sender.send(b"meanwhile")
        await to_thread.run_sync(server.wait_for, lambda: server.accepted > 5)
        server.on_accept = None
        assert await acked(sender)
        await sender.close()
    told = [each for each in caplog.records if "the server can" in each.getMessage()]
    assert [each.levelname for each in told] == ["WARNING", "WARNING"]
    assert "the server cannot be used: " in told[0].getMessage()
    assert "the server can be used again after " in told[1].getMessage()


@pytest.mark.parametrize("durability", [Durability.FLUSH, Durability.APPEND])
async def test_levels_of_arrival(
    api: Any, server: FakeServer, tmp_path: Path, durability: Durability
) -> None:
    """Stored, synced, acknowledged: each can be waited for."""
    journal = JournalConfig(durability=durability, segment_bytes=1 << 16)
    options = {"journal": journal}
    async with api.sender(server.url("readings"), tmp_path / "slot", **options) as sender:
        fsn = await sender.send(b"x")
        assert await sender.flush() == fsn
        assert sender.stats().journal.durable_fsn == fsn
        for level in Level:
            assert await sender.wait(level, 10.0, fsn=fsn)
        assert not await sender.wait(Level.ACKED, 0.01, fsn=fsn + 1)


async def test_initial_connect_off_tries_every_host_once(api: Any, tmp_path: Path) -> None:
    """And gives the slot back."""
    options = {"initial_connect": "off"}
    url = "lance://127.0.0.1:1,127.0.0.1:2/readings"
    with pytest.raises(OSError, match="2 attempts"):
        await api.sender(url, tmp_path / "slot", **options).open()
    async with api.sender(NOWHERE, tmp_path / "slot", close_timeout=0):
        pass


async def test_a_budget_ends_an_outage(api: Any, tmp_path: Path) -> None:
    """By request: without one, a sender never gives up."""
    patient = api.sender(NOWHERE, tmp_path / "slot", close_timeout=0)
    await patient.open()
    await patient.send(b"kept")
    await patient.close()
    sender = api.sender(NOWHERE, tmp_path / "slot", reconnect_budget=0.05)
    await sender.open()
    with pytest.raises(TimeoutError, match="reconnect_max_duration"):
        await sender.wait(Level.ACKED, 10.0)
    assert (await sender.close()).kept_frames == 1


async def test_two_senders_of_one_slot(api: Any, tmp_path: Path) -> None:
    """The second is told who has it."""
    async with api.sender(NOWHERE, tmp_path / "slot", close_timeout=0):
        with pytest.raises(SlotLocked, match="holder=pid="):
            await api.sender(NOWHERE, tmp_path / "slot").open()


async def test_wrong_order_of_calls(api: Any, tmp_path: Path) -> None:
    """Not open, open twice, closed: each has its own error."""
    sender = api.sender(NOWHERE, tmp_path / "slot", close_timeout=0)
    with pytest.raises(NotOpenError):
        await sender.send(b"x")
    await sender.open()
    with pytest.raises(UsageError, match="opened already"):
        await sender.open()
    first = await sender.close()
    assert await sender.close() is first
    with pytest.raises(ClosedError):
        await sender.send(b"x")


async def test_records_that_fit_in_no_frame(api: Any, tmp_path: Path) -> None:
    """The error names the setting (SF-33)."""
    options = {"journal": JournalConfig(segment_bytes=4096), "close_timeout": 0}
    async with api.sender(NOWHERE, tmp_path / "slot", **options) as sender:
        with pytest.raises(RecordTooLarge, match="segment_bytes"):
            await sender.send(bytes(5000))
        with pytest.raises(RecordTooLarge, match="segment_bytes"):
            await sender.send_many([b"fits", bytes(5000)])


def test_both_apis_have_the_same_names_and_parameters() -> None:
    """So that a program changes sides by adding `await`."""
    sync, other = StoreAndForwardSender, AsyncStoreAndForwardSender
    names = {name for name in dir(sync) if not name.startswith("_")}
    assert names == {name for name in dir(other) if not name.startswith("_")}
    for name in sorted(names | {"__init__"}):
        if callable(getattr(sync, name)):
            mine, theirs = (signature(getattr(each, name)) for each in (sync, other))
            assert list(mine.parameters.values()) == list(theirs.parameters.values()), name


class Ends(Hooks):
    """Keeps the ends of connections."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def on_disconnect(self, event: DisconnectEvent) -> None:
        """Keep the error."""
        self.errors.append(event.error)


async def test_a_clean_close_tells_no_hook_of_an_error(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Neither as a lost connection nor to the error handler."""
    ends, told = Ends(), list[Rejection]()
    options = {"hooks": ends, "error_handler": told.append}
    async with api.sender(server.url("readings"), tmp_path / "slot", **options) as sender:
        await sender.send(b"x")
        assert await acked(sender)
    assert ends.errors == []
    assert told == []


@pytest.mark.parametrize("sender", [StoreAndForwardSender, AsyncStoreAndForwardSender])
def test_a_signature_shows_every_option_of_a_sender(sender: type[Any]) -> None:
    """With its type and its default."""
    shown = signature(sender).parameters
    assert {"url", "path", "journal", "compression", *SenderOptions.__annotations__} <= set(shown)
    assert (shown["connect_timeout"].default, shown["close_timeout"].default) == (10.0, 5.0)
    assert "options" not in shown
