"""A coordinator on a real socket: what it answers, and what hostile peers cannot do to it."""

import errno
import gc
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme
from anyio.abc import Listener
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_sdk import Client, GroupConsumer
from lance_sdk._io import platform
from lance_sdk.errors import ConfigError, UsageError
from lance_sdk.groups import Coordinator, GroupErrorCode, GroupRefused, Limits, Strategy
from lance_sdk.groups import coordinator as coordinator_module
from lance_sdk.groups._coordinator.request import describe_groups
from lance_sdk.offsets import (
    Commit,
    FileStore,
    MemoryStore,
    StoreLocked,
    StoreUnavailable,
    TopicIdentity,
)
from lance_sdk.offsets.lease import FolderLease
from lance_spec.bodies import decode_error
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.frames import FrameKind, encode_control, encode_keepalive
from lance_spec.messages import groups as m

from .coordinator_peer import ANSWERS, FAR, JOIN, REQUESTS, TOPIC, Peer, connected


@pytest.fixture
def peer(coordinator: Coordinator) -> Iterator[Peer]:
    """Return a raw connection."""
    with connected(coordinator) as peer:
        yield peer


def commit_of(generation: int, offset: int = 50, topic: m.GroupTopic = TOPIC) -> m.GroupCommit:
    """Return a commit of the member ``a``."""
    each = m.TopicCommit(topic=topic, offset=offset, fingerprint=b"")
    return m.GroupCommit(group="g", member="a", generation=generation, topics=[each], order=[])


def sync(generation: int = 0, owned: list[int] | None = None) -> m.GroupSync:
    """Return a sync of the member ``a``."""
    return m.GroupSync(group="g", member="a", generation=generation, owned=owned or [])


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=lambda each: each.name)
def test_keepalives_are_answered(coordinator: Coordinator, dialect: Dialect) -> None:
    """A Keepalive comes back in the peer's own dialect (LWP section 4.3)."""
    with connected(coordinator, dialect) as peer:
        peer.send(encode_keepalive(dialect))
        assert peer.frame().kind is FrameKind.KEEPALIVE


def test_whole_conversation(peer: Peer) -> None:
    """Join, sync, commit, heartbeat, ask and leave, as the grammar tells it."""
    joined = peer.ask(JOIN)
    assert (joined.member, joined.strategy, joined.heartbeat_interval_ms) == ("a", "sticky", 50)
    told = peer.ask(sync())
    assert [each.topic for each in told.assigned] == [TOPIC]
    answer = peer.ask(commit_of(told.generation))
    assert [(each.topic_id, each.code) for each in answer.results] == [(7, 0)]
    beat = m.GroupHeartbeat(group="g", member="a", generation=told.generation)
    assert not peer.ask(beat).changed
    found = peer.ask(m.GroupFetchCommitted(group="g", topics=[])).topics
    assert [each.position.offset for each in found] == [50]
    assert peer.ask(m.GroupFetchCommitted(group="g", topics=[99])).topics == []
    peer.ask(m.GroupLeave(group="g", member="a", generation=told.generation))
    described = peer.ask(m.GroupDescribe(group="g")).groups[0]
    assert (described.state, described.members) == (m.GroupState.EMPTY, [])


def test_coordinator_makes_up_a_name(peer: Peer) -> None:
    """A member without a name gets one."""
    assert peer.ask(replace(JOIN, member="")).member.startswith("member-")


def test_session_timeout_is_kept_in_bounds(peer: Peer) -> None:
    """A member cannot ask to be taken for dead after a century."""
    asked = replace(JOIN, session_timeout_ms=2**32 - 1)
    assert peer.ask(asked).session_timeout_ms == 3_600_000


def test_commit_is_durable_when_answered(tmp_path: Any) -> None:
    """What a commit's answer says is in the store, with topic and generation."""
    with (
        Coordinator("127.0.0.1:0", store=f"file:{tmp_path}") as coordinator,
        connected(coordinator) as peer,
    ):
        peer.ask(JOIN)
        generation = peer.ask(sync()).generation
        peer.ask(commit_of(generation))
        [kept] = FileStore(tmp_path).commits()
    assert (kept.offset, kept.generation) == (50, generation)
    assert kept.topic == TopicIdentity(id=7, name="orders", created_at=1, epoch=1)


def test_stale_commit_is_refused(peer: Peer) -> None:
    """A commit under a generation of the future, or of a topic not owned, is refused by code."""
    peer.ask(JOIN)
    generation = peer.ask(sync()).generation
    codes = [peer.ask(commit_of(generation + 1)).results[0].code]
    peer.ask(sync(generation, owned=[]))
    other = replace(TOPIC, topic_id=8)
    codes.append(peer.ask(commit_of(generation, topic=other)).results[0].code)
    assert codes == [GroupErrorCode.STALE_GENERATION, GroupErrorCode.UNKNOWN_TOPIC]


def test_store_that_fails_is_told() -> None:
    """A commit that cannot be stored says so, and may be repeated."""

    class Failing(MemoryStore):
        broken = False

        def save(self, commit: Commit) -> None:
            if self.broken:
                raise StoreUnavailable("no space left")
            super().save(commit)

    store = Failing()
    with Coordinator("127.0.0.1:0", store=store) as coordinator, connected(coordinator) as peer:
        peer.ask(JOIN)
        generation = peer.ask(sync()).generation
        store.broken = True
        first = peer.ask(commit_of(generation)).results[0].code
        store.broken = False
        second = peer.ask(commit_of(generation)).results[0].code
    assert (first, second) == (GroupErrorCode.STORE_FAILED, GroupErrorCode.NONE)


def in_order(sequence: int, since: int, offset: int) -> m.GroupCommit:
    """Return a commit that says its place among the commits of the member ``a``."""
    order = [m.CommitOrder(sequence=sequence, since=[since])]
    return replace(commit_of(99, offset), order=order)


class Slow(MemoryStore):
    """A store whose first save takes until others have come."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def save(self, commit: Commit) -> None:
        """Keep a commit, the first one late."""
        if not self.begun.is_set():
            self.begun.set()
            assert self.go_on.wait(FAR)
        super().save(commit)


def test_store_does_not_let_commits_overtake() -> None:
    """A commit that the store takes its time for is not kept after a later one."""
    store = Slow()
    with Coordinator("127.0.0.1:0", store=store) as coordinator, connected(coordinator) as old:
        standing = [m.MemberStanding(secret=5, since=[])]
        old.ask(replace(JOIN, standing=standing))
        since = old.ask(sync()).generation
        old.send(encode_control(SPECIFIED, Command.GROUP_COMMIT, in_order(1, since, 920).encode()))
        assert store.begun.wait(FAR)
        with connected(coordinator) as new:
            standing = [m.MemberStanding(secret=5, since=[since])]
            new.ask(replace(JOIN, owned=[7], standing=standing))
            payloads = [in_order(1, since, 920).encode(), in_order(2, since, 930).encode()]
            for payload in payloads:
                new.send(encode_control(SPECIFIED, Command.GROUP_COMMIT, payload))
            store.go_on.set()
            codes = [m.GroupCommitAck.decode(new.frame().payload).results[0].code for _ in payloads]
    assert codes == [GroupErrorCode.NONE, GroupErrorCode.NONE]
    assert [each.offset for each in store.commits()] == [930]


def test_commit_of_an_earlier_assignment_is_refused(peer: Peer) -> None:
    """A commit counts under the generation that gave the topic, whatever the member knows since."""
    peer.ask(JOIN)
    since = peer.ask(sync()).generation
    peer.ask(m.GroupLeave(group="g", member="a", generation=since))
    peer.ask(JOIN)
    now = peer.ask(sync()).generation
    codes = [peer.ask(in_order(n, of, 180)).results[0].code for n, of in ((1, since), (2, now))]
    assert codes == [GroupErrorCode.STALE_GENERATION, GroupErrorCode.NONE]


@pytest.mark.parametrize(
    "message",
    [
        replace(JOIN, standing=[m.MemberStanding(secret=1, since=[])] * 2),
        replace(JOIN, standing=[m.MemberStanding(secret=1, since=[3])]),
        replace(in_order(1, 1, 1), order=[m.CommitOrder(sequence=0, since=[1])]),
        replace(in_order(1, 1, 1), order=[m.CommitOrder(sequence=1, since=[])]),
    ],
    ids=["two standings", "one generation too many", "sequence 0", "no generation"],
)
def test_standing_or_order_that_makes_no_sense(peer: Peer, message: Any) -> None:
    """What newer members add is held against the rest of the message."""
    assert peer.ask(message).code == GroupErrorCode.INVALID_REQUEST


def test_topic_created_again_can_be_joined(peer: Peer) -> None:
    """A store keyed by names gives the later topic what it kept for the earlier one."""
    peer.ask(JOIN)
    peer.ask(sync())
    peer.ask(m.GroupLeave(group="g", member="a", generation=1))
    later = replace(TOPIC, topic_id=8, topic_epoch=2)
    assert isinstance(peer.ask(replace(JOIN, topics=[later])), m.GroupJoinAck)
    assert [each.topic.topic_id for each in peer.ask(sync()).assigned] == [8]


def test_store_that_another_coordinator_has(tmp_path: Any) -> None:
    """A second coordinator on one folder is refused at once; it says who has it."""
    second = Coordinator("127.0.0.1:0", store=f"file:{tmp_path}")
    with (
        Coordinator("127.0.0.1:0", store=f"file:{tmp_path}"),
        pytest.raises(StoreLocked, match=f"in use by process {os.getpid()}"),
    ):
        second.start()
    with Coordinator("127.0.0.1:0", store=f"file:{tmp_path}"):
        pass


def test_lease_of_another_host(tmp_path: Path) -> None:
    """A coordinator on another host has the folder while its lease is fresh, and no longer."""
    theirs = FolderLease(tmp_path, host="elsewhere")
    theirs.take()
    theirs.renew()
    lock = tmp_path / "coordinator.lock"
    kept = lock.read_bytes()
    theirs.release()
    lock.write_bytes(kept)  # as it looks here, where the other host's lock is not seen
    ours = FolderLease(tmp_path, host="here")
    with pytest.raises(StoreLocked, match="held by host elsewhere"):
        ours.take()
    past = lock.stat().st_mtime - 11
    os.utime(lock, (past, past))
    ours.take()
    ours.renew()
    ours.release()


def test_lease_that_was_taken_over_is_noticed(tmp_path: Path) -> None:
    """A coordinator that finds another one in its folder does not go on."""
    ours = FolderLease(tmp_path, host="here")
    ours.take()
    (tmp_path / "coordinator.lock").write_text('{"host": "elsewhere", "pid": 7, "token": "x"}')
    with pytest.raises(StoreLocked, match="in use by process 7"):
        ours.renew()
    ours.release()


def test_commit_is_refused_without_a_lease(peer: Peer, coordinator: Coordinator) -> None:
    """A coordinator whose lease is over stores nothing, and the member may try again."""
    peer.ask(JOIN)
    since = peer.ask(sync()).generation
    coordinator._service.may_store = lambda: False
    assert peer.ask(commit_of(since)).results[0].code == GroupErrorCode.STORE_FAILED


def test_generation_outlives_the_coordinator(tmp_path: Any) -> None:
    """A new coordinator on the same store goes on above the old one's generations."""
    generations = []
    for _ in range(3):
        with (
            Coordinator(
                "127.0.0.1:0", store=f"file:{tmp_path}", heartbeat_interval=0.001
            ) as coordinator,
            connected(coordinator) as peer,
        ):
            peer.ask(JOIN)
            while not (told := peer.ask(sync())).assigned:
                pass
            peer.ask(commit_of(told.generation))
            generations.append(told.generation)
    assert generations == sorted(set(generations))


def test_members_of_before_may_come_back() -> None:
    """Where members have a past, nothing is given out until all had a heartbeat's time."""
    with (
        Coordinator("127.0.0.1:0", heartbeat_interval=60.0) as coordinator,
        connected(coordinator) as peer,
    ):
        peer.ask(replace(JOIN, generation=5))
        told = peer.ask(sync())
    assert (told.assigned, told.state) == ([], m.GroupState.REBALANCING)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group": "../x"}, GroupErrorCode.INVALID_REQUEST),
        ({"group": ""}, GroupErrorCode.INVALID_REQUEST),
        ({"member": "a\nb"}, GroupErrorCode.INVALID_REQUEST),
        ({"topics": [TOPIC, TOPIC]}, GroupErrorCode.INVALID_REQUEST),
        ({"topics": [replace(TOPIC, name="a/b")]}, GroupErrorCode.INVALID_REQUEST),
        ({"strategy": "magic"}, GroupErrorCode.STRATEGY_REFUSED),
    ],
)
def test_join_that_makes_no_sense(peer: Peer, changes: Any, code: GroupErrorCode) -> None:
    """A join with an impossible value is refused by its code."""
    assert peer.ask(replace(JOIN, **changes)).code == code


def test_strategy_of_ones_own() -> None:
    """A function of the application divides the topics, by what members say of themselves."""

    def hottest(members: Any, topics: Any, present: Any) -> dict[int, str]:
        del present
        best = max(members, key=lambda member: member.metadata)
        return {topic.id: best.name for topic in topics}

    mine = Strategy("hottest", hottest)
    with (
        Coordinator("127.0.0.1:0", strategies=[mine]) as coordinator,
        connected(coordinator) as cold,
        connected(coordinator) as hot,
    ):
        cold.ask(replace(JOIN, strategy="hottest", metadata=b"1"))
        assert cold.ask(sync()).assigned
        assert hot.ask(replace(JOIN, member="b", metadata=b"9")).strategy == "hottest"
        assert cold.ask(sync(owned=[7])).revoked == [7]
        cold.ask(sync())
        assert hot.ask(replace(sync(), member="b")).assigned


def test_unknown_members_and_groups(peer: Peer) -> None:
    """Who never joined is told to."""
    assert peer.ask(sync()).code == GroupErrorCode.UNKNOWN_GROUP
    peer.ask(replace(JOIN, member="b"))
    assert peer.ask(sync()).code == GroupErrorCode.UNKNOWN_MEMBER


def test_limits() -> None:
    """One topic, group or commit too many is refused, and the connection lives."""
    limits = Limits(topics=1, groups=1)
    with (
        Coordinator("127.0.0.1:0", limits=limits) as coordinator,
        connected(coordinator) as peer,
    ):
        two = [TOPIC, replace(TOPIC, topic_id=8)]
        codes = [peer.ask(replace(JOIN, topics=two)).code]
        peer.ask(JOIN)
        codes.append(peer.ask(replace(JOIN, group="h")).code)
        commits = commit_of(1).topics * 2
        codes.append(peer.ask(replace(commit_of(1), topics=commits)).code)
        peer.ask(m.GroupLeave(group="g", member="a", generation=1))
        assert peer.ask(replace(JOIN, group="h")).member == "a"
    assert codes == [GroupErrorCode.LIMIT_EXCEEDED] * 3


def test_connections_over_the_limit_are_closed() -> None:
    """A connection too many is closed at once, and the others go on."""
    with (
        Coordinator("127.0.0.1:0", limits=Limits(connections=1)) as coordinator,
        connected(coordinator) as first,
    ):
        first.ask(JOIN)
        with connected(coordinator) as second:
            assert second.closed
        assert first.ask(sync()).assigned


def test_silent_connection_is_closed(coordinator: Coordinator) -> None:
    """Who says nothing does not keep a connection."""
    coordinator._shared = replace(coordinator._shared, silence=0.05)
    with connected(coordinator) as peer:
        assert peer.closed


def test_peer_that_does_not_read_is_closed(coordinator: Coordinator) -> None:
    """Who asks and does not take the answers is closed, instead of filling memory."""
    coordinator._shared = replace(coordinator._shared, write_timeout=0.1)
    many = [replace(TOPIC, topic_id=number, name=str(number)) for number in range(4000)]
    with connected(coordinator) as peer:
        peer.ask(replace(JOIN, topics=many))
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            ask_for_ever(peer)


def ask_for_ever(peer: Peer) -> None:
    """Ask for long answers until the coordinator has enough."""
    question = m.GroupDescribe(group="g")
    while True:
        peer.send(encode_control(SPECIFIED, question.COMMAND, question.encode()))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"LANC" + bytes(40),
        encode_control(SPECIFIED, Command.GROUP_JOIN, bytes(2_000_000)),
        b"\x16\x03\x01" + bytes(100),
    ],
    ids=["http", "bad crc", "oversize", "tls"],
)
def test_broken_stream_is_closed(peer: Peer, coordinator: Coordinator, data: bytes) -> None:
    """A peer that breaks LWP is closed, and the coordinator goes on."""
    with suppress(ConnectionResetError, BrokenPipeError):
        peer.send(data)
    assert peer.closed
    with connected(coordinator) as other:
        assert other.ask(JOIN).member == "a"


def test_other_commands_are_refused(peer: Peer) -> None:
    """A command that is a server's and not a coordinator's is refused, and the peer may go on."""
    frame = peer.ask_raw(Command.LIST_TOPICS, b"")
    assert "does not answer LIST_TOPICS" in decode_error(frame.payload).message
    assert peer.ask(JOIN).member == "a"


_EXAMPLES = [JOIN.encode(), sync().encode(), commit_of(1).encode()]


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # one connection for all
)
@given(
    command=st.sampled_from(REQUESTS),
    payload=st.one_of(
        st.binary(max_size=200),
        st.builds(
            lambda whole, at, byte: (
                whole[: at % len(whole)] + bytes([byte]) + whole[at % len(whole) + 1 :]
            ),
            st.sampled_from(_EXAMPLES),
            st.integers(0, 500),
            st.integers(0, 255),
        ),
    ),
)
def test_no_request_ends_the_conversation(peer: Peer, command: Command, payload: bytes) -> None:
    """Whatever a request's bytes are, it gets one answer and the next one is served."""
    assert isinstance(peer.ask_raw(command, payload), ANSWERS)


def test_token_is_asked_for(server: Any, topics: Any) -> None:
    """With a token, members have to know it."""
    with Coordinator("127.0.0.1:0", token="secret") as coordinator:
        with connected(coordinator) as peer:
            frame = peer.ask_raw(Command.GROUP_JOIN, JOIN.encode())
            assert decode_error(frame.payload).message == "authenticate first"
        wrong = coordinator.url.replace("://", "://guess@")
        right = coordinator.url.replace("://", "://secret@")
        with pytest.raises(Exception, match="wrong token"):
            describe_groups(wrong)
        options: Any = {"group": "g", "topics": topics.names}
        with GroupConsumer(server.url, coordinator=right, **options) as consumer:
            assert consumer.poll() is not None


def test_coordinator_with_tls() -> None:
    """A coordinator with a certificate is a lances:// URL."""
    authority = trustme.CA()
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(serving)
    authority.configure_trust(trusting)
    with Coordinator("127.0.0.1:0", tls=serving) as coordinator:
        assert coordinator.url.startswith("lances://")
        assert describe_groups(coordinator.url, tls=trusting) == []


def test_client_learns_that_it_is_no_server(coordinator: Coordinator) -> None:
    """Whoever takes a coordinator for a server is told."""
    with Client(coordinator.url) as client, pytest.raises(Exception, match="does not answer"):
        client.list_topics()


def test_description_of_an_unknown_group(coordinator: Coordinator) -> None:
    """A group that nobody joined is unknown."""
    with pytest.raises(GroupRefused, match="there is no group 'nope'"):
        describe_groups(coordinator.url, "nope")


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"])
def test_impossible_address_is_refused(listen: str) -> None:
    """An address that cannot be listened on is named."""
    with pytest.raises(ConfigError, match="listen="):
        Coordinator(listen)


def test_address_in_use(coordinator: Coordinator) -> None:
    """An address that somebody has is told where the coordinator was to start."""
    taken = coordinator.url.partition("://")[2]
    with pytest.raises(OSError, match="in use"):
        Coordinator(taken).start()
    gc.collect()  # a socket that it left open would warn here


def test_started_once(coordinator: Coordinator) -> None:
    """A coordinator is started once."""
    with pytest.raises(UsageError, match="started before"):
        coordinator.start()


class Exhausted(Listener[Any]):
    """Cannot take the first connection, as where the process has no descriptor left."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener
        self.refused = False

    @property
    def extra_attributes(self) -> Any:
        """What is known of the socket."""
        return self._listener.extra_attributes

    async def serve(self, handler: Any, task_group: Any = None) -> None:
        """Serve, at the second try."""
        if not self.refused:
            self.refused = True
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        await self._listener.serve(handler, task_group)

    async def aclose(self) -> None:
        """Listen no more."""
        await self._listener.aclose()


def test_a_connection_that_cannot_be_taken_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The coordinator says so, and takes connections again."""
    listen = anyio.create_tcp_listener
    listeners: list[Exhausted] = []

    async def exhausted(**options: Any) -> Exhausted:
        listeners.append(Exhausted(await listen(**options)))
        return listeners[0]

    monkeypatch.setattr(anyio, "create_tcp_listener", exhausted)
    monkeypatch.setattr(coordinator_module, "_AGAIN", 0.0)
    with Coordinator("127.0.0.1:0") as coordinator:
        assert describe_groups(coordinator.url) == []
        assert coordinator.failure is None
    assert listeners[0].refused
    assert "cannot take a connection: [Errno 24]" in caplog.text


def test_a_lease_that_cannot_be_renewed_stores_nothing_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that is read-only for a while; the coordinator goes on."""
    lease = FolderLease(tmp_path, seconds=0.004)
    renew, refused, renewed = lease.renew, threading.Event(), threading.Event()

    def renew_later() -> None:
        if not refused.is_set():
            refused.set()
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        renew()
        renewed.set()

    monkeypatch.setattr(lease, "renew", renew_later)
    monkeypatch.setattr(coordinator_module, "_lease_on", lambda _store: lease)
    with Coordinator("127.0.0.1:0", store=f"file:{tmp_path}") as coordinator:
        assert renewed.wait(20)
        assert coordinator.failure is None


def test_a_full_disk_is_told_where_the_lease_cannot_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As any other trouble with the store."""

    def full(_fd: int, _data: bytes, _offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(platform, "write_at", full)
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        Coordinator("127.0.0.1:0", store=f"file:{tmp_path}").start()
