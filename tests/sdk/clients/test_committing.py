"""Positions are committed, found again, and never ahead of what was handed out."""

from pathlib import Path
from typing import Any

import pytest

from lance_sdk.errors import (
    ConfigError,
    LogTruncated,
    StorageError,
    TopicChanged,
    UsageError,
)
from lance_sdk.offsets import Commit, MemoryStore, TopicIdentity, in_threads
from lance_sdk.offsets.consumer_ids import consumer_id
from lance_sdk.offsets.errors import StoreLocked, StoreUnavailable
from lance_sdk.testing import FakePeer, FakeServer
from lance_server import running
from lance_server.testing import free_port
from lance_spec.enums import Command, ErrorCode
from lance_spec.frames import Frame
from lance_spec.records import encode_records

pytestmark = pytest.mark.anyio

VALUES = [b"record %03d" % number for number in range(50)]
SIZE = 5 + len(VALUES[0])
ORDERS = TopicIdentity(1, "orders", 1_700_000_000, 1)
MANUAL = {"consumer": "billing", "auto_commit": "off"}


def fill(server: FakeServer, values: list[bytes] = VALUES) -> None:
    """Store records in the server's topic 1."""
    server.topics.append(1, encode_records(values))


async def take(consumer: Any, count: int) -> list[bytes]:
    """Return the next records' values."""
    values: list[bytes] = []
    async for record in consumer:
        values.append(record.value)
        if len(values) == count:
            break
    return values


async def fail_at_work(api: Any, server: FakeServer, count: int, **options: Any) -> None:
    """Take records, and fail while working on the last of them."""
    async with api.consumer(server.url(), **options) as consumer:
        await take(consumer, count)
        raise RuntimeError("at work")


@pytest.fixture
def store() -> MemoryStore:
    """Return a store that is shared by consumers of one test."""
    return MemoryStore()


async def test_a_consumer_goes_on_where_it_committed(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """In whichever object of the same name."""
    fill(server)
    async with api.consumer(server.url(), offsets=store, **MANUAL) as consumer:
        assert consumer.committed is None
        assert await take(consumer, 10) == VALUES[:10]
        assert await consumer.commit() == 10 * SIZE
        await take(consumer, 5)
    async with api.consumer(server.url(), offsets=store, **MANUAL) as consumer:
        assert consumer.committed == 10 * SIZE
        assert await take(consumer, 3) == VALUES[10:13]


async def test_a_commit_is_never_ahead(api: Any, server: FakeServer, store: MemoryStore) -> None:
    """Of what was handed out."""
    fill(server)
    async with api.consumer(server.url(), offsets=store, **MANUAL) as consumer:
        await take(consumer, 2)
        with pytest.raises(UsageError, match="ahead of what was handed out"):
            await consumer.commit(3 * SIZE)
        assert await consumer.commit(SIZE) == SIZE


async def test_a_commit_needs_somewhere_to_go(api: Any, server: FakeServer) -> None:
    """Without offsets= it says what to do."""
    async with api.consumer(server.url()) as consumer:
        with pytest.raises(UsageError, match="offsets= and consumer="):
            await consumer.commit()
    with pytest.raises(ConfigError, match="needs consumer="):
        api.consumer(server.url(), offsets="memory:")


async def test_processed_commits_what_the_application_is_done_with(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """The record it was working on when it failed comes again."""
    fill(server)
    options = {"offsets": store, "consumer": "billing", "commit_interval": 0}
    with pytest.raises(RuntimeError, match="at work"):
        await fail_at_work(api, server, 3, **options)
    (commit,) = store.commits("billing")
    assert commit.offset == 2 * SIZE
    async with api.consumer(server.url(), **options) as consumer:
        assert await take(consumer, 1) == VALUES[2:3]


async def test_interval_commits_what_was_handed_out(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """Also what the application failed on."""
    fill(server)
    options = {"offsets": store, "consumer": "billing", "auto_commit": "interval"}
    with pytest.raises(RuntimeError, match="at work"):
        await fail_at_work(api, server, 3, **options)
    assert [commit.offset for commit in store.commits("billing")] == [3 * SIZE]


async def test_a_clean_end_commits_everything_handed_out(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """Record by record and batch by batch."""
    fill(server)
    async with api.consumer(server.url(), offsets=store, consumer="a") as consumer:
        await take(consumer, 7)
    async with api.consumer(
        server.url(), offsets=store, consumer="b", max_fetch_bytes=10 * SIZE
    ) as consumer:
        batch = await consumer.poll()
    assert [commit.offset for commit in store.commits("a")] == [7 * SIZE]
    assert [commit.offset for commit in store.commits("b")] == [batch.next_offset]


async def test_a_batch_at_work_is_not_committed(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """Until the application comes for the next one."""
    fill(server)
    options = {"offsets": store, "consumer": "a", "max_fetch_bytes": 10 * SIZE}
    polled: list[Any] = []

    async def fail_at_the_second() -> None:
        async with api.consumer(server.url(), commit_interval=0, **options) as consumer:
            polled.extend([await consumer.poll(), await consumer.poll()])
            raise RuntimeError("at work")

    with pytest.raises(RuntimeError, match="at work"):
        await fail_at_the_second()
    assert [commit.offset for commit in store.commits("a")] == [polled[0].next_offset]


async def test_an_idle_consumer_commits_when_the_interval_is_over(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """It need not wait for the next record to say that it is done with the last."""
    fill(server)
    options = {"offsets": store, "consumer": "a", "commit_interval": 0.01}
    async with api.consumer(server.url(), **options) as consumer:
        await take(consumer, len(VALUES))
        while consumer.committed != len(VALUES) * SIZE:
            assert await consumer.poll(timeout=0.02) is None
    assert [commit.offset for commit in store.commits("a")] == [len(VALUES) * SIZE]


async def test_other_records_under_an_offset_are_noticed(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """The log was cut and grew again while nobody read (AMB-30, AMB-31)."""
    fill(server)
    async with api.consumer(server.url(), offsets=store, **MANUAL) as consumer:
        await take(consumer, 10)
        await consumer.commit()
    server.topics.truncate(1, 0)
    fill(server, [value[::-1] for value in VALUES])
    async with api.consumer(server.url(), offsets=store, **MANUAL) as consumer:
        with pytest.raises(LogTruncated, match="not those that were read"):
            await consumer.poll(timeout=10)
    options = {"offsets": store, "on_truncation": "reset", **MANUAL}
    async with api.consumer(server.url(), **options) as consumer:
        assert await consumer.poll(timeout=0.05) is None
        fill(server, [b"new"])
        assert await take(consumer, 1) == [b"new"]


async def test_other_records_after_a_reconnect_are_noticed(api: Any, server: FakeServer) -> None:
    """The same check at every resume, with no store at all."""
    fill(server)
    async with api.consumer(server.url(), mode="poll", poll_interval=1000) as consumer:
        assert await take(consumer, len(VALUES)) == VALUES
        server.topics.truncate(1, 0)
        fill(server, [value[::-1] for value in VALUES] * 2)
        server.drop_all()
        with pytest.raises(LogTruncated, match="not those that were read"):
            await consumer.poll(timeout=10)


async def test_the_same_records_after_a_reconnect_are_no_reason_to_stop(
    api: Any, server: FakeServer
) -> None:
    """The comparison costs one Fetch, and reading goes on with the next record."""
    fill(server)
    async with api.consumer(server.url(), mode="poll", poll_interval=0.001) as consumer:
        assert await take(consumer, len(VALUES)) == VALUES
        server.drop_all()
        fill(server, [b"next"])
        assert await take(consumer, 1) == [b"next"]


async def test_a_topic_made_anew_is_refused(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """Its name is the same, its records are not (AMB-30)."""
    fill(server)
    other = TopicIdentity(1, "orders", 1_600_000_000, 1)
    store.save(Commit(consumer="billing", topic=other, offset=SIZE))
    with pytest.raises(TopicChanged, match="created_at"):
        async with api.consumer(server.url(), offsets=store, **MANUAL):
            pytest.fail("it must not open")


async def test_the_server_keeps_commits(api: Any, server: FakeServer) -> None:
    """offsets='server': under the number that other clients make of the name (AMB-36)."""
    fill(server)
    async with api.consumer(server.url(), offsets="server", consumer="billing") as consumer:
        await take(consumer, 10)
    assert server.subscriptions.commits == {(1, consumer_id("billing")): 10 * SIZE}
    async with api.consumer(server.url(), offsets="server", consumer="billing") as consumer:
        assert consumer.committed == 10 * SIZE
        assert await take(consumer, 2) == VALUES[10:12]
        await consumer.seek("beginning")
        assert await take(consumer, 1) == VALUES[:1]


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
async def test_the_reference_server_keeps_commits(api: Any, tmp_path: Path, dialect: str) -> None:
    """In both dialects, over a restart."""
    options = {"offsets": "server", "consumer": "billing"}
    with running(tmp_path / "data", dialect=dialect, port=free_port()) as first:
        url, port = f"{first.url}/orders", first.address[1]
        async with api.producer(url, create_topic=True) as producer:
            await producer.send_many(VALUES)
        async with api.consumer(url, **options) as consumer:
            await take(consumer, 10)
    with running(tmp_path / "data", dialect=dialect, port=port):
        async with api.consumer(url, **options) as consumer:
            assert await take(consumer, 2) == VALUES[10:12]


async def test_a_file_keeps_commits_and_is_locked(
    api: Any, server: FakeServer, tmp_path: Path
) -> None:
    """Two consumers of one name are one too many."""
    fill(server)
    options = {"offsets": f"file:{tmp_path}", "consumer": "billing"}
    async with api.consumer(server.url(), **options) as consumer:
        await take(consumer, 10)
        with pytest.raises(StoreLocked, match="in use"):
            async with api.consumer(server.url(), **options):
                pytest.fail("it must not open")
    async with api.consumer(server.url(), **options) as consumer:
        assert await take(consumer, 1) == VALUES[10:11]


class Flaky(MemoryStore):
    """A store that fails once."""

    failed = False

    def save(self, commit: Commit) -> None:
        """Fail the first time."""
        if not self.failed:
            self.failed = True
            raise StoreUnavailable("the disk is away")
        super().save(commit)


async def test_who_is_refused_leaves_the_offset_to_the_first(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """A third consumer is refused as the second was, while the first reads."""
    async with api.consumer(server.url(), consumer="billing", offsets=store):
        for _ in range(2):
            with pytest.raises(StoreLocked):
                async with api.consumer(server.url(), consumer="billing", offsets=store):
                    pass


async def test_an_automatic_commit_is_tried_again(
    api: Any, server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that is away for a moment stops nobody; one warning says so."""
    fill(server)
    store = Flaky()
    options = {"offsets": store, "consumer": "a", "commit_interval": 0}
    async with api.consumer(server.url(), **options) as consumer:
        assert await take(consumer, 10) == VALUES[:10]
    assert [commit.offset for commit in store.commits("a")] == [10 * SIZE]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the disk is away" in caplog.text


async def test_stores_fit_their_apis(api: Any, server: FakeServer, store: MemoryStore) -> None:
    """An async store needs an async API; the other way around it is called in threads."""
    fill(server)
    options = {"offsets": in_threads(store), **MANUAL}
    if api.name == "threads":
        with pytest.raises(ConfigError, match="AsyncConsumer"):
            async with api.consumer(server.url(), **options):
                pytest.fail("it must not open")
        return
    async with api.consumer(server.url(), **options) as consumer:
        await take(consumer, 1)
        await consumer.commit()
    assert len(store.commits()) == 1


async def test_what_is_no_store_is_refused(api: Any, server: FakeServer) -> None:
    """With what it lacks."""
    for offsets in (object(), "nonsense:"):
        with pytest.raises(ConfigError):
            async with api.consumer(server.url(), offsets=offsets, consumer="a"):
                pytest.fail("it must not open")


async def test_a_paused_consumer_hands_nothing_out(api: Any, server: FakeServer) -> None:
    """In the middle of a batch, too; resume goes on with the very next record."""
    fill(server)
    async with api.consumer(server.url(), stop_at_end=True) as consumer:
        assert await take(consumer, 3) == VALUES[:3]
        await consumer.pause()
        assert consumer.paused
        assert await consumer.poll(timeout=0.01) is None
        assert consumer.position == 3 * SIZE
        await consumer.resume()
        assert [record.value async for record in consumer] == VALUES[3:]


async def test_a_pause_fetches_nothing(api: Any, server: FakeServer, until: Any) -> None:
    """And ends a subscription; the connection stays."""
    async with api.consumer(server.url(), poll_interval=0.001) as consumer:
        await until(server, lambda: "SUBSCRIBE" in server.frames)
        await consumer.pause()
        await until(server, lambda: "UNSUBSCRIBE" in server.frames)
        fill(server)
        assert await consumer.poll(timeout=0.02) is None
        assert consumer.stats().fetched_bytes == 0
        await consumer.resume()
        assert await take(consumer, 2) == VALUES[:2]
    assert server.accepted == 1


async def test_a_refused_commit_raises(api: Any, server: FakeServer) -> None:
    """And does not count as made."""
    fill(server)

    def refuse(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.COMMIT_OFFSET:
            return False
        peer.error(ErrorCode.STORAGE_ERROR, "the disk is full")
        return True

    server.on_control = refuse
    options = {"offsets": "server", "consumer": "billing", "auto_commit": "off"}
    async with api.consumer(server.url(), **options) as consumer:
        await take(consumer, 3)
        with pytest.raises(StorageError, match="the disk is full"):
            await consumer.commit()
        assert consumer.committed is None


async def test_a_server_commit_survives_a_lost_connection(api: Any, server: FakeServer) -> None:
    """Committing twice does no harm, so it is asked again."""
    fill(server)
    dropped: list[int] = []

    def drop_first(peer: FakePeer, frame: Frame) -> bool:
        first = frame.command is Command.COMMIT_OFFSET and not dropped
        if first:
            dropped.append(peer.number)
            peer.close()
        return first

    server.on_control = drop_first
    options = {"offsets": "server", "consumer": "billing", "auto_commit": "off"}
    async with api.consumer(server.url(), **options) as consumer:
        await take(consumer, 3)
        assert await consumer.commit() == 3 * SIZE
    assert list(server.subscriptions.commits.values()) == [3 * SIZE]
    assert dropped


async def test_what_cannot_be_handled_goes_to_a_topic_of_its_own(
    api: Any, server: FakeServer, store: MemoryStore
) -> None:
    """It is stored there before the place after it is committed."""
    fill(server, VALUES[:3])
    async with (
        api.consumer(server.url(), offsets=store, consumer="billing", stop_at_end=True) as consumer,
        api.producer(server.url("failed"), create_topic=True) as failed,
    ):
        async for record in consumer:
            if record.value == VALUES[1]:
                delivery = await failed.send_raw(record.raw, record.type)
                await delivery
                assert consumer.committed is None or consumer.committed <= record.offset
    async with api.consumer(server.url("failed"), stop_at_end=True) as consumer:
        assert [record.value async for record in consumer] == [VALUES[1]]
    (commit,) = store.commits("billing")
    assert commit.offset == 3 * SIZE
