"""Members that speak the published text protocol: on threads, asyncio and trio."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from lance_sdk import Client
from lance_sdk.errors import ConfigError
from lance_sdk.groups import CommitRefused, Coordinator, GroupRefused
from lance_sdk.groups._member import factory
from lance_sdk.groups._protocol import text_connection
from lance_sdk.offsets import Commit, FileStore, MemoryStore, StoreUnavailable, TopicIdentity

from .published import Published, published

pytestmark = pytest.mark.anyio

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def quick_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have members look for changes quickly."""
    monkeypatch.setattr(text_connection, "HEARTBEAT_INTERVAL", 0.02)


@pytest.fixture
def numbers(server: Any, topics: Any) -> list[int]:
    """Return the numbers of the topics, in the order of their names."""
    with Client(server.url) as client:
        return [client.get_topic(name).id for name in topics.names]


@pytest.fixture
def peer(numbers: list[int]) -> Iterator[Published]:
    """Return a coordinator that behaves as the published one."""
    with published(numbers) as peer:
        yield peer


@pytest.fixture(params=["ours", "published"])
def either(request: pytest.FixtureRequest, numbers: list[int]) -> Iterator[str]:
    """Return the URL of our coordinator's text side, and of a published one."""
    if request.param == "published":
        with published(numbers) as peer:
            yield peer.url
    else:
        options: Any = {"text_group": "workers", "text_topics": numbers}
        with Coordinator("127.0.0.1:0", **options) as coordinator:
            yield coordinator.url


@pytest.fixture
def worker(member: Make) -> Make:
    """Return what makes members that speak text."""
    store = MemoryStore()

    def make(url: str, **options: Any) -> Any:
        return member(coordinator=url, protocol="text", **{"offsets": store, **options})

    return make


async def read(consumer: Any, count: int) -> list[tuple[str, int]]:
    """Read so many records, and come back for more after the last one."""
    seen: list[tuple[str, int]] = []
    while len(seen) < count:
        batch = await consumer.poll()
        seen += [(record.topic, int(record.value)) for record in batch]
    await consumer.poll(0)
    return seen


def whole(names: list[str], count: int) -> list[tuple[str, int]]:
    """Return every record of these topics."""
    return sorted((name, number) for name in names for number in range(count))


async def test_reads_everything(worker: Make, either: str, topics: Any) -> None:
    """Who is alone in a group gets every record of every topic."""
    async with worker(either) as consumer:
        assert sorted(await read(consumer, 40)) == whole(topics.names, 10)


async def test_group_goes_on_where_it_ended(worker: Make, either: str, topics: Any) -> None:
    """Another member of the group goes on after what was committed to the shared store."""
    async with worker(either) as consumer:
        await read(consumer, 40)
    for name in topics.names:
        topics.append(name, 5, first=10)
    async with worker(either) as consumer:
        seen = await read(consumer, 20)
    assert sorted(seen) == [(name, n) for name in sorted(topics.names) for n in range(10, 15)]


async def test_two_members_share(worker: Make, either: str, topics: Any) -> None:
    """Topics go over to a second member in good order, each where the first one was."""
    revoked: list[str] = []

    def give_up(found: Any) -> None:
        revoked.extend(topic.label for topic in found)

    async with worker(either, on_revoked=give_up) as first:
        await read(first, 40)
        async with worker(either) as second:
            while not (second.assignment and len(first.assignment) == 2):
                await first.poll(0.01)
                assert await second.poll(0.01) is None, "nothing is read twice"
            assert sorted(revoked) == [topic.label for topic in second.assignment]
            for name in topics.names:
                topics.append(name, 1, first=10)
            seen = [*await read(first, 2), *await read(second, 2)]
    assert sorted(seen) == sorted((name, 10) for name in topics.names)


async def test_store_that_locks_has_one_owner(
    worker: Make, peer: Published, tmp_path: Path
) -> None:
    """A published coordinator gives topics away at once; a store that locks makes them wait."""
    options = {"offsets": f"file:{tmp_path}"}
    async with worker(peer.url, **options) as first:
        await first.poll()
        async with worker(peer.url, **options) as second:
            while not any(said.startswith("GET") and second.member in said for said in peer.heard):
                await second.poll(0.01)
            assert await second.poll(0.2) is None
            assert second.assignment == ()  # the first one has not come back yet
            while len(second.assignment) < 2:
                await first.poll(0.01)
                await second.poll(0.01)


async def test_forgotten_worker_joins_again(worker: Make, peer: Published) -> None:
    """Who was taken for dead joins again by itself, and keeps what it is given again."""
    lost: list[Any] = []
    async with worker(peer.url, on_lost=lost.append, on_revoked=lost.append) as consumer:
        await read(consumer, 40)
        peer.forget(consumer.member)
        while consumer.generation < 3:
            await consumer.poll(0.01)
        assert (lost, len(consumer.assignment)) == ([], 4)
        await consumer.commit()
    assert sum(said.startswith("JOIN:") for said in peer.heard) == 2


async def test_restarted_coordinator_counts_anew(
    worker: Make, peer: Published, topics: Any
) -> None:
    """A generation that began again keeps no member from committing."""
    store = MemoryStore()
    for number, name in zip(peer.topics, topics.names, strict=True):
        topic = TopicIdentity(number, name)
        store.save(Commit(consumer="g", topic=topic, offset=0, generation=7))
    async with worker(peer.url, offsets=store) as consumer:
        await read(consumer, 40)
        peer.restart()
        while len(peer.workers) < 1:
            await consumer.poll(0.01)
        await consumer.commit()


async def test_late_commit_is_fenced(worker: Make, peer: Published) -> None:
    """What another member has claimed meanwhile the old one cannot move."""
    store = MemoryStore()
    async with worker(peer.url, offsets=store, auto_commit="off") as consumer:
        await read(consumer, 10)
        for topic in consumer.assignment:
            store.save(Commit(consumer="g", topic=topic, offset=0, generation=50))
        with pytest.raises(CommitRefused, match="STALE_GENERATION"):
            await consumer.commit()


async def test_topic_that_nobody_asked_for(worker: Make, peer: Published, topics: Any) -> None:
    """A topic that the member does not read is named, with what to do."""
    async with worker(peer.url, topics=topics.names[:3]) as consumer:
        with pytest.raises(GroupRefused, match=rf"topic #{peer.topics[3]} .*give topics= all"):
            await consumer.poll(10.0)


async def test_refusal_is_told(worker: Make, peer: Published) -> None:
    """What the coordinator refuses in words of its own reaches the application."""
    peer.reply = lambda _said: b'Error { message: "no more \\"workers\\"" }'
    async with worker(peer.url) as consumer:
        with pytest.raises(GroupRefused, match='refused JOIN: no more "workers"'):
            await consumer.poll(10.0)


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"LANC\x01\x40\x00\x00" + bytes(36),
        b'JoinAccepted { worker_id: "' + b"x" * 100_000,
        b'JoinAccepted { worker_id: "somebody", generation: 1, assignments: [] }',
        b"HeartbeatAck { generation: 1 }",
        b"HeartbeatAck { generation: 99999999999999999999 }",
        b"LeaveAcknowledgedLeaveAcknowledged",
        b'Error { message: "\\u{d800}" }',
        b"\xff\xfe\x00",
        None,
    ],
)
async def test_nonsense_is_survived(worker: Make, peer: Published, garbage: bytes | None) -> None:
    """A coordinator that answers nonsense loses the connection, and is tried again."""
    tries = iter([garbage, garbage])
    peer.reply = lambda said: next(tries, peer.answer(said).encode())
    async with worker(peer.url) as consumer:
        assert len(await read(consumer, 40)) == 40
    assert next(tries, "all") == "all"


async def test_coordinator_that_hangs_up_after_each_answer(
    worker: Make, peer: Published, topics: Any
) -> None:
    """A connection for each request is enough, and no more are made than heartbeats need."""
    peer.hangs_up = True
    async with worker(peer.url) as consumer:
        assert sorted(await read(consumer, 40)) == whole(topics.names, 10)
        await consumer.commit()
        assert len(consumer.assignment) == 4
        before = list(peer.heard)
        while len(peer.heard) < len(before) + 3:
            await consumer.poll(0.01)
        after = peer.heard[len(before) :]
    assert set(after) == {f"HEARTBEAT:{consumer.member}"}
    assert sum(said.startswith("JOIN:") for said in peer.heard) == 1
    assert peer.heard[-1] == f"LEAVE:{consumer.member}"


async def test_commits_do_not_wait_for_a_connection_that_is_not_due(
    worker: Make, peer: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each request takes a connection, one is made for what the application asks for."""
    monkeypatch.setattr(text_connection, "HEARTBEAT_INTERVAL", 30.0)
    peer.hangs_up = True
    async with worker(peer.url, session_timeout=120.0) as consumer:
        await read(consumer, 40)
        await consumer.commit()
    assert peer.heard[-1] == f"LEAVE:{consumer.member}"


async def test_coordinator_that_forgets_whoever_hangs_up(
    worker: Make, peer: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where joining again and again leads to nothing, the member ends with the reason."""
    monkeypatch.setattr(factory, "_RETRY_BASE", 0.01)
    monkeypatch.setattr(factory, "_RETRY_CAP", 0.02)

    def forgetful(said: str) -> bytes:
        peer.workers = [said.partition(":")[2]] if said.startswith("JOIN:") else []
        return peer.answer(said).encode()

    peer.hangs_up, peer.reply = True, forgetful
    async with worker(peer.url) as consumer:
        with pytest.raises(GroupRefused, match="8 times in a row"):
            await consumer.poll(60.0)
    assert sum(said.startswith("JOIN:") for said in peer.heard) == 8


async def test_silent_coordinator(worker: Make, peer: Published) -> None:
    """A request that is not answered in time is asked again on a new connection."""
    stalled = threading.Event()

    def stall_once(said: str) -> bytes:
        if len(peer.heard) == 1:
            stalled.wait(20.0)
        return peer.answer(said).encode()

    peer.reply = stall_once
    slow = {"request_timeout": 0.2, "keepalive_interval": 0.1}
    async with worker(peer.url, coordinator_options=slow) as consumer:
        assert len(await consumer.poll(20.0) or ()) == 10
        stalled.set()


async def test_member_away_from_its_coordinator_stops(worker: Make, peer: Published) -> None:
    """Who hears nothing of its coordinator for a session timeout lets go of what it has."""
    store, lost = MemoryStore(), []
    options = {"session_timeout": 0.3, "offsets": store}
    async with worker(peer.url, on_lost=lost.extend, **options) as consumer:
        await read(consumer, 40)
        peer.reply = lambda _said: None
        while not lost:
            await consumer.poll(0.01)
        assert consumer.assignment == ()
        while "claimed=0" not in repr(store):  # so that others can have them
            await consumer.poll(0.01)


async def test_store_that_breaks(worker: Make, peer: Published) -> None:
    """A store that fails is told where the application commits, and may work again."""
    store = Breaking()
    async with worker(peer.url, offsets=store, auto_commit="off") as consumer:
        await consumer.poll()
        store.broken = True
        with pytest.raises(CommitRefused, match="STORE_FAILED") as caught:
            await consumer.commit()
        assert caught.value.retryable
        store.broken = False
        await consumer.commit()


async def test_store_that_cannot_be_claimed_yet(
    worker: Make, peer: Published, caplog: pytest.LogCaptureFixture
) -> None:
    """Topics whose offsets are not to be had are begun once they are, and not before."""
    store = Breaking()
    store.broken = True
    caplog.set_level(logging.WARNING, "lance_sdk")
    async with worker(peer.url, offsets=store) as consumer:
        while "offset is not to be had" not in caplog.text:
            assert await consumer.poll(0.2) is None
        store.broken = False
        assert len(await read(consumer, 40)) == 40


class Breaking(MemoryStore):
    """A store that can be broken."""

    broken = False

    def claim(self, consumer: str, topic: TopicIdentity, generation: int = 0) -> Commit | None:
        """Claim, or fail."""
        if self.broken:
            raise StoreUnavailable("broken")
        return super().claim(consumer, topic, generation)

    def save(self, commit: Commit) -> None:
        """Save, or fail in a way that no store should."""
        if self.broken:
            raise RuntimeError("broken")
        super().save(commit)


async def test_own_store_is_left_open(worker: Make, peer: Published, tmp_path: Path) -> None:
    """A store that the application brought is released, and not closed."""
    store = FileStore(tmp_path)
    async with worker(peer.url, offsets=store) as consumer:
        await read(consumer, 40)
    assert "claimed=0" in repr(store)
    assert len(store.commits("g")) == 4
    store.close()


async def test_no_such_store(worker: Make, peer: Published) -> None:
    """A store that cannot be opened is told when the member is opened."""
    with pytest.raises(ConfigError, match="is not a kind of offset store"):
        async with worker(peer.url, offsets="ftp:x"):
            pass


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"offsets": None}, "keeps no offsets; give offsets="),
        ({"strategy": "range"}, "strategy='range': protocol='text' cannot carry it"),
        ({"metadata": b"x"}, "metadata=b'x': protocol='text' cannot carry it"),
        ({"coordinator_options": {"token": "t"}}, "token= .*cannot carry it"),
        ({"protocol": "morse"}, "protocol='morse': expected 'lwp' or 'text'"),
        ({"protocol": "lwp"}, "offsets= is decided by the group"),
    ],
)
async def test_impossible_options_are_refused(
    member: Make, options: dict[str, Any], reason: str
) -> None:
    """What the protocol has no word for is refused at once."""
    with pytest.raises(ConfigError, match=reason):
        member(**{"protocol": "text", "offsets": "memory:", **options})


async def test_text_side_beside_members_that_speak_lwp(
    worker: Make, member: Make, numbers: list[int]
) -> None:
    """One coordinator answers both, each in its own group."""
    options: Any = {"text_group": "workers", "text_topics": numbers}
    with Coordinator("127.0.0.1:0", **options) as coordinator:
        async with worker(coordinator.url) as text, member(coordinator=coordinator.url) as lwp:
            with anyio.fail_after(20):
                assert len(await read(text, 40)) == len(await read(lwp, 40)) == 40


async def test_text_side_has_no_token() -> None:
    """Text workers cannot authenticate, so a coordinator with a token does not speak text."""
    with pytest.raises(ConfigError, match="cannot authenticate"):
        await to_thread.run_sync(lambda: Coordinator(token="t", text_group="g"))
