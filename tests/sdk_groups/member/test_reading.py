"""How a member reads its topics: side by side, each with its own place, pauses and errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from tests.sdk_groups.conftest import append

from lance_sdk import Client, Consumer
from lance_sdk.errors import ConfigError, TopicChanged, TopicDeleted, TopicNotFound, UsageError
from lance_sdk.groups import Coordinator
from lance_sdk.hooks import Hooks, RecordsEvent
from lance_sdk.offsets import Commit, MemoryStore, TopicIdentity
from lance_server import running
from lance_server.embedded import EmbeddedServer
from lance_server.testing import free_port

pytestmark = pytest.mark.anyio

Make = Callable[..., Any]
FAR = 20.0


async def read(consumer: Any, count: int) -> list[tuple[str, int]]:
    """Read so many records."""
    seen: list[tuple[str, int]] = []
    while len(seen) < count:
        batch = await consumer.poll(FAR)
        assert batch is not None, f"only {seen} came"
        seen += [(record.topic, int(record.value)) for record in batch]
    return seen


async def assigned(consumer: Any, count: int) -> None:
    """Wait until the member has so many topics."""
    while len(consumer.assignment) < count:
        await consumer.poll(0.01)


async def test_error_of_one_topic_holds_up_no_other(member: Make, topics: Any) -> None:
    """A topic that cannot be read on is told at every look, until it is paused or moved."""
    store, name = MemoryStore(), topics.names[0]
    store.save(Commit(consumer="g", topic=TopicIdentity(2**31, name), offset=12))
    with Coordinator("127.0.0.1:0", store=store, heartbeat_interval=0.05) as coordinator:
        async with member(coordinator=coordinator.url) as consumer:
            for _ in range(3):
                with pytest.raises(TopicChanged):
                    await consumer.poll(FAR)
            assert [topic.name for topic in consumer.errors] == [name]
            await consumer.pause(name)
            seen = await read(consumer, 30)
            assert {topic for topic, _ in seen} == set(topics.names[1:])
            await consumer.seek(name, "beginning")
            await consumer.resume(name)
            assert await read(consumer, 10) == [(name, number) for number in range(10)]
            assert consumer.errors == {}


async def test_deleted_topic_holds_up_no_other(member: Make, topics: Any, server: Any) -> None:
    """A topic that is deleted under a member is told as such, and the others are read on."""
    gone, *others = topics.names
    async with member() as consumer:
        await read(consumer, 40)
        with Client(server.url) as client:
            client.delete_topic(gone)
        with pytest.raises((TopicNotFound, TopicDeleted)):
            await consumer.poll(FAR)
        await consumer.pause(gone)
        for name in others:
            topics.append(name, 5, first=10)
        assert sorted(await read(consumer, 15)) == sorted(
            (name, number) for name in others for number in range(10, 15)
        )


async def test_reading_survives_a_long_outage(member: Make, tmp_path: Path) -> None:
    """A server that is away for longer than any timeout of opening is read on when it is back."""
    names = ["a", "b"]
    port = free_port()
    with running(tmp_path / "data", port=port) as first:
        for name in names:
            append(first.url, name, 3)
        timeouts = {"open_timeout": 0.05, "connect_timeout": 0.2, "backoff_cap": 0.05}
        coordinator_options = {"open_timeout": FAR}
        async with member(
            at=first.url, topics=names, coordinator_options=coordinator_options, **timeouts
        ) as consumer:
            assert len(await read(consumer, 6)) == 6
            await to_thread.run_sync(first.stop)
            for _ in range(10):
                assert await consumer.poll(0.05) is None
            with running(tmp_path / "data", port=port) as second:
                for name in names:
                    append(second.url, name, 3, first=3)
                assert sorted(await read(consumer, 6)) == whole(names, 3, 6)


async def test_one_connection_for_all_topics(member: Make, server: Any) -> None:
    """A member reads all its topics over one connection to their server."""
    before = server.stats()["connections_accepted"]
    async with member() as consumer:
        await read(consumer, 40)
        assert server.stats()["connections_accepted"] == before + 1


def subscribed(server: EmbeddedServer) -> set[int]:
    """Return the topics that the server pushes to anybody."""
    connections = list(server._running.connection_manager)
    return {topic for each in connections for topic in each.session.subscribed_topics}


async def test_idle_topics_are_pushed(member: Make, topics: Any, server: EmbeddedServer) -> None:
    """At the end of all topics nothing is asked, and what comes to any of them is pushed."""
    with Client(server.url) as client:
        ids = {each.id for each in client.list_topics() if each.name in topics.names}
    async with member(poll_interval=0.001) as consumer:
        await read(consumer, 40)
        while not ids <= subscribed(server):
            await consumer.poll(0.05)
        fetches = consumer.stats().fetches
        for name in topics.names:
            topics.append(name, 1, first=10)
        assert sorted(await read(consumer, 4)) == whole(topics.names, 10, 11)
        stats = consumer.stats()
        assert (stats.fetches, stats.pushes) == (fetches, 4)


async def test_end_is_decided_once(member: Make, topics: Any, server: Any) -> None:
    """Where a group begins at the end, what comes between two owners is not passed over."""
    names = [f"{topics.names[0]}-{number}" for number in range(3)]
    with Client(server.url) as client:
        for name in names:
            client.create_topic(name)
    options = {"topics": names, "start": "end"}
    async with member(**options) as consumer:
        await assigned(consumer, 3)
        while any(consumer.position(name) is None for name in names):
            await consumer.poll(0.01)
    for name in names:
        topics.append(name, 5)
    async with member(**options) as consumer:
        assert sorted(await read(consumer, 15)) == whole(names, 0, 5)


async def test_end_is_decided_without_automatic_commits(member: Make, topics: Any) -> None:
    """Also where the application commits, the place at which a group begins is kept."""
    name = topics.names[0]
    options = {"topics": [name], "start": "end", "auto_commit": "off"}
    async with member(**options) as consumer:
        await assigned(consumer, 1)
        while consumer.committed(name) is None:
            await consumer.poll(0.01)
    topics.append(name, 5, first=10)
    async with member(**options) as consumer:
        assert await read(consumer, 5) == whole([name], 10, 15)


async def test_end_of_a_plain_consumer_is_decided_once(
    topics: Any, server: Any, tmp_path: Path
) -> None:
    """A consumer that begins at the end and is given nothing goes on from there the next time."""
    url = f"{server.url}/{topics.names[0]}"
    options: dict[str, Any] = {"start": "end", "consumer": "c", "offsets": f"file:{tmp_path}"}
    with Consumer(url, **options) as first:
        while first.position is None:
            first.poll(0.01)
    topics.append(topics.names[0], 5, first=10)
    with Consumer(url, **options) as second:
        batch = second.poll(FAR)
    assert [record.value for record in batch or ()] == [b"%d" % number for number in range(10, 15)]


async def test_position_committed_and_lag(member: Make, topics: Any) -> None:
    """A member tells how far it is, how far it has committed, and how much is left."""
    name = topics.names[0]
    async with member(topics=[name], auto_commit="off", max_poll_records=4) as consumer:
        await read(consumer, 4)
        [topic] = consumer.assignment
        assert (consumer.position(name), consumer.committed(topic)) == (24, None)
        assert await consumer.lag() == {topic: 36}
        await consumer.commit()
        assert consumer.committed(name) == 24
        with pytest.raises(UsageError, match="'nowhere' is not assigned"):
            consumer.position("nowhere")


async def test_loops_and_polls_take_turns(member: Make, topics: Any) -> None:
    """A poll takes what a loop has left of a batch, and the next loop goes on after it."""
    got: list[bytes] = []
    async with member(topics=topics.names[:1]) as consumer:
        while len(got) < 10:
            async for record in consumer:
                got.append(record.value)
                break
            if len(got) < 10:
                batch = await consumer.poll(max_records=2)
                got += [record.value for record in batch]
    assert got == [b"%d" % number for number in range(10)]


async def test_most_records_of_a_poll(member: Make, topics: Any) -> None:
    """A batch has as many records at most as was asked for, and none is lost between two."""
    name = topics.names[0]
    async with member(topics=[name], max_poll_records=3, stop_at_end=True) as consumer:
        counts, seen = [], []
        while (batch := await consumer.poll(max_records=1 if not seen else None)) is not None:
            counts.append(batch.count)
            seen += [int(record.value) for record in batch]
    assert seen == list(range(10))
    assert (counts[0], max(counts)) == (1, 3)


async def test_paused_in_the_middle_of_a_batch(member: Make, topics: Any) -> None:
    """What is left of a batch comes after the pause, and not before."""
    first, second = topics.names[:2]
    async with member(topics=[first, second], stop_at_end=True) as consumer:
        seen = []
        async for record in consumer:
            seen.append((record.topic, int(record.value)))
            if len(seen) == 4:
                paused = record.topic
                await consumer.pause(paused)
                assert [topic.label for topic in consumer.paused] == [paused]
            if len(seen) == 14:
                await consumer.resume(paused)
    assert {topic for topic, _ in seen[4:14]} == {first, second} - {paused}
    assert sorted(seen) == whole([first, second], 0, 10)


async def test_hooks_are_told_of_records(member: Make, topics: Any) -> None:
    """Hooks learn of each batch with its topic, its place, and what is left."""
    told: list[RecordsEvent] = []

    class Told(Hooks):
        def on_records(self, event: RecordsEvent) -> None:
            told.append(event)

    async with member(hooks=Told()) as consumer:
        await read(consumer, 40)
    assert sorted({event.topic for event in told}) == sorted(topics.names)
    assert sum(event.records for event in told) == 40


def test_most_records_must_be_a_number(member: Make) -> None:
    """A number of records that makes no sense is refused at once."""
    with pytest.raises(ConfigError, match="max_poll_records=-1"):
        member(max_poll_records=-1)


def whole(names: list[str], first: int, behind: int) -> list[tuple[str, int]]:
    """Return the records of these numbers in each topic."""
    return sorted((name, number) for name in names for number in range(first, behind))
