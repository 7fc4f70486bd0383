"""What an application sees of its group, the same on threads, asyncio and trio."""

import dataclasses
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio import to_thread

from lance_sdk import Client
from lance_sdk.errors import ConfigError, TopicChanged
from lance_sdk.groups import AssignedTopic, CommitRefused, Coordinator, GroupError, GroupRefused
from lance_sdk.groups._member.membership import Membership
from lance_sdk.groups._protocol.group import Group
from lance_sdk.hooks import CommitEvent, Hooks, RebalanceEvent
from lance_sdk.offsets import (
    Commit,
    Fingerprint,
    HookedStore,
    MemoryStore,
    StaleGeneration,
    TopicIdentity,
)
from lance_server.testing import free_port

pytestmark = pytest.mark.anyio

Make = Callable[..., Any]


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


def group_of(coordinator: Coordinator) -> Group:
    """Return the group at its coordinator."""
    return coordinator._service.groups["g"]


async def test_one_member_reads_everything(member: Make, topics: Any) -> None:
    """Who is alone in a group gets every record of every topic, in order within each."""
    async with member() as consumer:
        seen = await read(consumer, 40)
        assert sorted(seen) == whole(topics.names, 10)
        for name in topics.names:
            assert [number for topic, number in seen if topic == name] == list(range(10))


async def test_records_one_by_one(member: Make, topics: Any) -> None:
    """A group can be read record by record, to the end of all topics."""
    async with member(stop_at_end=True) as consumer:
        seen = [(record.topic, int(record.value)) async for record in consumer]
    assert sorted(seen) == whole(topics.names, 10)


async def test_group_goes_on_where_it_ended(member: Make, topics: Any) -> None:
    """What one member was done with, no later member reads again."""
    async with member() as consumer:
        await read(consumer, 40)
    for name in topics.names:
        topics.append(name, 5, first=10)
    async with member() as consumer:
        seen = await read(consumer, 20)
    assert sorted(seen) == [(name, n) for name in sorted(topics.names) for n in range(10, 15)]


async def test_unfinished_record_is_read_again(member: Make, topics: Any) -> None:
    """A loop that is left in the middle commits what it was done with, and no more."""
    async with member(topics=topics.names[:1]) as consumer:
        async for record in consumer:
            if record.value == b"4":
                break
    async with member(topics=topics.names[:1]) as consumer:
        assert [number for _, number in await read(consumer, 6)] == [4, 5, 6, 7, 8, 9]


async def test_end_of_all_is_committed(member: Make) -> None:
    """A loop that came to the end of all topics was done with the last record, too."""
    async with member(stop_at_end=True) as consumer:
        assert len([record async for record in consumer]) == 40
    async with member(stop_at_end=True) as consumer:
        assert [record async for record in consumer] == []


async def test_interval_commits_what_is_being_worked_on(member: Make, topics: Any) -> None:
    """With ``interval``, a loop that is left in the middle commits the record at hand, too."""
    only = {"topics": topics.names[:1], "auto_commit": "interval"}
    async with member(**only) as consumer:
        async for record in consumer:
            if record.value == b"4":
                break
    async with member(**only) as consumer:
        assert [int(record.value) for record in await consumer.poll()] == [5, 6, 7, 8, 9]
    async with member(**only) as consumer:
        assert await consumer.poll(0.2) is None  # the batch counted, although nobody came back


async def test_rest_of_a_batch_is_not_lost(member: Make, topics: Any) -> None:
    """After a loop that was left, polling goes on after the record it was left at."""
    async with member(topics=topics.names[:1]) as consumer:
        async for record in consumer:
            if record.value == b"4":
                break
        assert [int(record.value) for record in await consumer.poll()] == [5, 6, 7, 8, 9]


async def test_manual_commit_counts_what_was_handed_out(member: Make, topics: Any) -> None:
    """Without automatic commits, `commit` says what is done."""
    only = {"topics": topics.names[:1], "auto_commit": "off"}
    async with member(**only) as consumer:
        await consumer.poll()
        await consumer.commit()
        topics.append(topics.names[0], 5, first=10)
        await consumer.poll()
    async with member(**only) as consumer:
        assert [int(record.value) for record in await consumer.poll()] == [10, 11, 12, 13, 14]


async def test_polling_without_waiting(member: Make) -> None:
    """A poll that must not wait returns what is there."""
    async with member() as consumer:
        batch = None
        while batch is None:
            batch = await consumer.poll(0)
        assert len(batch) == 10


async def test_unanswered_commit_keeps_nobody_busy(
    member: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a commit waits for its answer, the application's wait is a wait."""
    looks: list[float] = []
    attention_at = Membership._attention_at

    def counted(self: Membership, now: float) -> float:
        looks.append(now)
        return attention_at(self, now)

    with Coordinator("127.0.0.1:0", heartbeat_interval=0.05) as coordinator:
        url = coordinator.url
        consumer = member(coordinator=url, commit_interval=0.01, close_timeout=0.5)
        await consumer.__aenter__()
        await read(consumer, 30)
        await to_thread.run_sync(coordinator.stop)
        monkeypatch.setattr(Membership, "_attention_at", counted)
        await consumer.poll(0.5)
        await consumer.poll(0.5)
        await consumer.__aexit__(None, None, None)
    assert len(looks) < 50


async def test_slow_records_are_committed_on_the_way(member: Make, topics: Any) -> None:
    """A loop that takes its time commits within a batch, up to the record at hand."""
    kept: list[int] = []
    seen = threading.Event()
    store = HookedStore(MemoryStore(), [lambda new, _old: (kept.append(new.offset), seen.set())])
    with Coordinator("127.0.0.1:0", store=store, heartbeat_interval=0.05) as coordinator:
        options = {"topics": topics.names[:1], "commit_interval": 0.0}
        async with member(coordinator=coordinator.url, **options) as consumer:
            async for record in consumer:
                if record.value == b"4":
                    await to_thread.run_sync(seen.wait, 10.0)  # the work on this record
                    break
            assert kept
            assert max(kept) <= group_offset(4)


async def test_two_members_share(member: Make, topics: Any, coordinator: Coordinator) -> None:
    """A second member takes over half of the topics, each where the first one was."""
    seen: list[tuple[str, int]] = []
    took_over = anyio.Event()

    async def second() -> None:
        async with member(on_assigned=lambda _topics: took_over.set()) as consumer:
            while not took_over.is_set():
                await consumer.poll(0.01)
            assert len(consumer.assignment) == 2
            for name in topics.names:
                topics.append(name, 5, first=10)
            seen.extend(await read(consumer, 10))

    async with member() as first:
        seen += await read(first, 40)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second)
            while len(seen) < 60:
                batch = await first.poll(0.01)
                seen += [] if batch is None else [(r.topic, int(r.value)) for r in batch]
        # What was not committed by the second when it left comes again.
    assert Counter(seen).keys() == set(whole(topics.names, 15))
    again = [record for record, times in Counter(seen).items() if times > 1]
    assert not again, "the second member had committed before it left"
    assert group_of(coordinator).members == {}


async def test_callbacks_tell_in_order(member: Make) -> None:
    """Topics are told as assigned before their records, and as revoked before they go."""
    story: list[tuple[str, int]] = []

    def note(what: str) -> Callable[[Any], object]:
        return lambda found: story.append((what, len(found)))

    told = {name: note(name) for name in ("on_assigned", "on_revoked", "on_lost")}
    async with member(**told) as consumer:
        await read(consumer, 40)
        async with member(member="other") as other:
            while not other.assignment:
                await consumer.poll(0.01)
                await other.poll(0.01)
            assert story == [("on_assigned", 4), ("on_revoked", 2)]
    assert story[-1] == ("on_revoked", 2)


async def test_callback_that_raises_loses_no_topic(member: Make) -> None:
    """What a callback raises reaches the application, and its topics are read all the same."""
    calls: list[int] = []

    def broken(found: Any) -> None:
        calls.append(len(found))
        raise RuntimeError("callback")

    async with member(on_assigned=broken, on_revoked=broken) as consumer:
        with pytest.raises(RuntimeError, match="callback"):
            await consumer.poll()
        assert len(await read(consumer, 40)) == 40
        async with member(member="other") as other:
            with pytest.raises(RuntimeError, match="callback"):
                await read(consumer, 1)
            while not other.assignment:
                await other.poll(0.01)
    assert calls == [4, 2, 2]


async def test_commit_in_the_revoked_callback_counts(member: Make) -> None:
    """What is committed while a topic is given up is where its new owner begins."""
    holder: dict[str, Any] = {}

    def give_up(_topics: Any) -> Any:
        return getattr(holder["consumer"], "target", holder["consumer"]).commit()

    async with member(auto_commit="off", on_revoked=give_up) as consumer:
        holder["consumer"] = consumer
        await read(consumer, 40)
    async with member(auto_commit="off") as consumer:
        assert await consumer.poll(0.3) is None


async def test_busy_application_stays_a_member(
    member: Make, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats go on while the application works for longer than its session timeout."""
    async with member(session_timeout=0.3) as consumer:
        await consumer.poll()
        group, heartbeats, enough = group_of(coordinator), [], threading.Event()
        heartbeat = Group.heartbeat

        def counted(self: Group, name: str, link: object, now: float) -> bool:
            heartbeats.append(now)
            if now - heartbeats[0] > 0.9:
                enough.set()
            return heartbeat(self, name, link, now)

        monkeypatch.setattr(Group, "heartbeat", counted)
        await to_thread.run_sync(enough.wait, 20.0)  # the application is busy
        assert enough.is_set()
        assert list(group.members) == [consumer.member]


async def test_member_that_is_too_slow_loses_its_topics(
    member: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """What is not released in time is lost: told, not to be committed, read by the other."""
    lost: list[str] = []
    slow = member(
        rebalance_timeout=0.2,
        auto_commit="off",
        on_lost=lambda found: lost.extend(topic.label for topic in found),
    )
    async with slow as consumer:
        await consumer.poll()
        with caplog.at_level(logging.WARNING, "lance_sdk"):
            async with member(member="other") as other:
                while not other.assignment:  # meanwhile the first one does not come back
                    await other.poll(0.02)
                await consumer.poll(0)
                assert sorted(lost) == [topic.label for topic in other.assignment]
                assert not {topic.label for topic in consumer.assignment} & set(lost)


async def test_commit_of_a_lost_topic_is_refused(
    member: Make, topics: Any, coordinator: Coordinator
) -> None:
    """A member that does not know yet that a topic is another's is told when it commits."""
    async with member(topics=topics.names[:1]) as consumer:
        await consumer.poll()
        group = group_of(coordinator)
        topic = next(iter(group.topics.values()))
        topic.owner, topic.target = "somebody else", "somebody else"
        with pytest.raises(CommitRefused, match="NOT_OWNER") as caught:
            await consumer.commit()
        assert not caught.value.retryable


async def test_hooks_are_told(member: Make, topics: Any) -> None:
    """Hooks learn of every change of topics, and of every commit with its generation."""
    told: list[Any] = []

    class Told(Hooks):
        def on_rebalance(self, event: RebalanceEvent) -> None:
            told.append((event.group, sorted(event.assigned), sorted(event.revoked)))

        def on_commit(self, event: CommitEvent) -> None:
            told.append((event.topic, event.offset, event.generation, event.error))

    name = topics.names[0]
    async with member(topics=[name], hooks=Told(), auto_commit="off") as consumer:
        await read(consumer, 10)
        await consumer.commit()
    gained, committed, given_up = told
    assert gained == ("g", [name], [])
    assert committed == (name, group_offset(10), 1, None)
    assert given_up == ("g", [], [name])


async def test_seek_when_assigned(member: Make, topics: Any) -> None:
    """An application can go on from a place of its own choosing."""
    holder: dict[str, Any] = {}

    def from_the_start(found: Any) -> Any:
        target = getattr(holder["consumer"], "target", holder["consumer"])
        results = [target.seek(each.topic, "beginning") for each in found]
        return _all(results) if results[0] is not None else None

    async with member() as consumer:
        await read(consumer, 40)
    async with member(on_assigned=from_the_start) as consumer:
        holder["consumer"] = consumer
        assert sorted(await read(consumer, 40)) == whole(topics.names, 10)


async def test_pause_when_assigned(member: Make, topics: Any) -> None:
    """A topic that is paused before its reading begins brings nothing until `resume`."""
    holder: dict[str, Any] = {}
    name = topics.names[0]

    def leave_one_alone(found: Any) -> Any:
        target = getattr(holder["consumer"], "target", holder["consumer"])
        (one,) = (each.topic for each in found if each.topic.label == name)
        result = target.pause(one)
        return None if result is None else _all([result])

    async with member(on_assigned=leave_one_alone) as consumer:
        holder["consumer"] = consumer
        others = whole(topics.names[1:], 10)
        assert sorted(await read(consumer, len(others))) == others
        assert [topic.label for topic in consumer.paused] == [name]
        await consumer.resume(name)
        assert sorted(await read(consumer, 10)) == whole([name], 10)


async def _all(results: list[Any]) -> None:
    for result in results:
        await result


async def test_own_transaction_is_fenced(member: Make, topics: Any) -> None:
    """With offsets in a store of its own, a member that lost a topic cannot commit there."""
    store, name = MemoryStore(), topics.names[0]
    claims: list[AssignedTopic] = []

    def claim(found: Any) -> None:
        for each in found:
            store.claim("g", each.topic, each.generation)
            store.release("g", each.topic)
            claims.append(each)

    options = {"topics": [name], "auto_commit": "off", "on_assigned": claim, "strategy": "range"}
    async with member(member="z", rebalance_timeout=0.1, **options) as slow:
        batch = await slow.poll()
        async with member(member="a", **options) as quick:
            while len(claims) < 2:  # meanwhile the slow one does not come back
                await quick.poll(0.02)
            old, new = claims
            late = Commit.of(batch, consumer="g", topic=old.topic, generation=old.generation)
            with pytest.raises(StaleGeneration):
                store.save(late)
            store.save(dataclasses.replace(late, generation=new.generation))


async def test_group_of_the_wrong_strategy_refuses(member: Make) -> None:
    """A member that wants another strategy than the group's is told so."""
    async with member(strategy="range") as consumer:
        await consumer.poll()
        async with member(strategy="round-robin") as other:
            with pytest.raises(GroupRefused, match=r"STRATEGY_REFUSED.*works under 'range'"):
                await other.poll(10.0)


async def test_unknown_strategy_is_refused(member: Make) -> None:
    """A strategy that the coordinator does not know is told with those that it does."""
    async with member(strategy="magic") as consumer:
        with pytest.raises(GroupRefused, match="knows range, round-robin, sticky"):
            await consumer.poll(10.0)


async def test_server_that_is_no_coordinator(member: Make, server: Any) -> None:
    """A member that is sent to the server itself is told what a coordinator is."""
    async with member(coordinator=server.url) as consumer:
        with pytest.raises(GroupError, match=r"not a coordinator of groups.*lwp group serve"):
            await consumer.poll(10.0)


async def test_coordinator_may_restart(member: Make, topics: Any) -> None:
    """When the coordinator comes back, the member goes on with what it holds."""
    store = MemoryStore()
    listen = f"127.0.0.1:{free_port()}"
    first = Coordinator(listen, store=store, heartbeat_interval=0.05).start()
    lost: list[Any] = []
    try:
        async with member(coordinator=first.url, on_lost=lost.append) as consumer:
            await read(consumer, 40)
            generation = consumer.generation
            await to_thread.run_sync(first.stop)
            for name in topics.names:
                topics.append(name, 5, first=10)
            with Coordinator(listen, store=store, heartbeat_interval=0.05):
                seen = await read(consumer, 20)
                while consumer.generation <= generation:
                    await consumer.poll(0.01)
                await consumer.commit()
                assert lost == []
                assert sorted({number for _, number in seen}) == [10, 11, 12, 13, 14]
                assert {c.offset for c in store.commits()} == {group_offset(15)}
    finally:
        first.stop()


def group_offset(count: int) -> int:
    """Return the bytes of so many records."""
    return sum(5 + len(str(number)) for number in range(count))


async def test_commit_of_a_topic_that_is_gone_is_noticed(
    member: Make, topics: Any, server: Any
) -> None:
    """A topic that was deleted and created again is not read on from the old offset."""
    name = topics.names[0]
    async with member(topics=[name]) as consumer:
        await read(consumer, 10)
    with Client(server.url) as client:
        client.delete_topic(name)
    topics.append(name, 10)
    async with member(topics=[name], group="h", auto_commit="off") as fresh:
        assert len(await fresh.poll()) == 10


async def test_commit_of_a_topic_with_another_number_is_noticed(member: Make, topics: Any) -> None:
    """A topic that was created again has another number: the old commit is told as such."""
    store, name = MemoryStore(), topics.names[0]
    store.save(Commit(consumer="g", topic=TopicIdentity(2**31, name), offset=12))
    with Coordinator("127.0.0.1:0", store=store, heartbeat_interval=0.05) as coordinator:
        async with member(topics=[name], coordinator=coordinator.url) as consumer:
            with pytest.raises(TopicChanged, match="which is another one now: id"):
                await consumer.poll(10.0)


async def test_other_records_are_noticed(member: Make, topics: Any, server: Any) -> None:
    """Where the log holds other records than those that were read, nothing is handed out."""
    store, name = MemoryStore(), topics.names[0]
    with Client(server.url) as client:
        identity = TopicIdentity.of(client.get_topic(name))
    mark = Fingerprint(0, 12, "00" * 16)
    store.save(Commit(consumer="g", topic=identity, offset=12, fingerprint=mark))
    with Coordinator("127.0.0.1:0", store=store, heartbeat_interval=0.05) as coordinator:
        async with member(topics=[name], coordinator=coordinator.url) as consumer:
            with pytest.raises(TopicChanged, match="not those that 'g' had read"):
                await consumer.poll(10.0)


async def test_commit_of_an_earlier_topic_is_noticed(
    member: Make, topics: Any, server: Any
) -> None:
    """The commit of a topic that was created again under its name is not gone on from."""
    store, name = MemoryStore(), topics.names[0]
    with Client(server.url) as client:
        identity = TopicIdentity.of(client.get_topic(name))
    before = dataclasses.replace(identity, created_at=1)
    store.save(Commit(consumer="g", topic=before, offset=12))
    with Coordinator("127.0.0.1:0", store=store, heartbeat_interval=0.05) as coordinator:
        async with member(topics=[name], coordinator=coordinator.url) as consumer:
            with pytest.raises(TopicChanged, match="created_at"):
                await consumer.poll(10.0)


async def test_repr_shows_state(member: Make, topics: Any) -> None:
    """A member shows its group, its name and its topics."""
    consumer = member(member="m1", topics=topics.names[:1])
    shown = getattr(consumer, "target", consumer)
    assert "NOTOPEN" in repr(shown)
    async with consumer:
        await consumer.poll()
        assert f"INSIDE generation=1 held=1> [{topics.names[0]}]>" in repr(shown)
        assert "'m1' of 'g'" in repr(shown)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"topics": "orders"}, "topics="),
        ({"topics": []}, "topics="),
        ({"group": "../x"}, "cannot be called"),
        ({"session_timeout": 0}, "session_timeout="),
        ({"consumer": "x"}, "consumer= is decided by the group"),
        ({"coordinator": "nowhere"}, "must begin with lance://"),
    ],
)
async def test_impossible_options_are_refused(
    member: Make, options: dict[str, Any], reason: str
) -> None:
    """An option that cannot be used is named at once."""
    with pytest.raises(ConfigError, match=reason):
        member(**options)
