"""Servers that have, keep or serve at most so many of something."""

import json
from collections.abc import Sequence
from itertools import accumulate

from lance_conformance.server.golden.codec import Wire, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import (
    Body,
    Connection,
    Refused,
    Replies,
    Subscription,
    Topic,
)
from lance_conformance.server.mutants.operators.common import (
    INGEST,
    MOST,
    register,
)
from lance_conformance.server.mutants.registry import golden


def _commits(most: int) -> None:
    def commit_kept(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
        golden(server).commit_kept(topic_id, consumer, offset)
        mine = [key for key in server.memory.commits if key[0] == topic_id]
        for key in mine[:-most]:
            del server.memory.commits[key]

    register(
        Specified.commit_kept,
        f"keeps-{most}-commits",
        f"A topic has at most {most} commits.",
        commit_kept,
    )


def _commits_of_a_consumer(most: int) -> None:
    def commit_kept(server: Specified, topic_id: int, consumer: int, offset: int, /) -> None:
        golden(server).commit_kept(topic_id, consumer, offset)
        mine = [key for key in server.memory.commits if key[1] == consumer]
        for key in mine[:-most]:
            del server.memory.commits[key]

    register(
        Specified.commit_kept,
        f"keeps-{most}-commits-of-a-consumer",
        f"A consumer has at most {most} commits.",
        commit_kept,
        "specified",
    )


def _objects(most: int) -> None:
    def next_id(server: Specified) -> int:
        if len(server.memory.topics) >= most:
            raise Refused(0x04, f"there are {most} topics already")
        return golden(server).next_id()

    def fetch_topic(server: Specified, topic_id: int, /) -> Topic:
        return golden(server).fetch_topic(
            topic_id - most if topic_id - most in server.memory.topics else topic_id
        )

    def consumer_topic(server: Specified, topic_id: int, /) -> Topic:
        counts = server.memory.speaker.counts
        counts["subscribed"] += 1
        if counts["subscribed"] > most:
            raise Refused(0x04, f"a connection has at most {most} subscriptions")
        return golden(server).consumer_topic(topic_id)

    register(Specified.next_id, f"has-{most}-topics", f"There are at most {most} topics.", next_id)
    _lists(most)
    register(
        Specified.fetch_topic,
        f"mixes-up-topics-beyond-{most}",
        f"A Fetch from a topic brings the data of the one {most} before it.",
        fetch_topic,
    )
    _connections(most)
    register(
        Specified.consumer_topic,
        f"has-{most}-subscriptions",
        f"A connection has at most {most} subscriptions.",
        consumer_topic,
    )


def _connections(most: int) -> None:
    def waits(server: Specified, crowd: int, unfinished: int, unread: int, /) -> bool:
        return crowd > most or golden(server).waits_for_others(crowd, unfinished, unread)

    register(
        Specified.waits_for_others,
        f"serves-{most}-connections",
        f"At most {most} connections are served.",
        waits,
    )


def _mixed_up(most: int) -> None:
    def ingest_topic(server: Specified, connection: Connection, topic_id: int, /) -> Topic:
        if topic_id in server.memory.topics:
            topic_id = connection.counts.setdefault(f"topic-{topic_id % most}", topic_id)
        return golden(server).ingest_topic(connection, topic_id)

    register(
        Specified.ingest_topic,
        f"mixes-up-batches-for-topics-{most}-apart",
        f"A batch goes to the topic {most} before its own, where its connection wrote to that.",
        ingest_topic,
    )


def _lists(most: int) -> None:
    def listed(server: Specified) -> list[Body]:
        return golden(server).listed()[-most:]

    register(Specified.listed, f"lists-{most}-topics", f"Only {most} topics are listed.", listed)


def _lists_bytes(most: int) -> None:
    def listed(server: Specified) -> list[Body]:
        rows = golden(server).listed()
        ends = accumulate(len(json.dumps(row)) for row in rows)
        return [row for row, end in zip(rows, ends, strict=True) if end <= most]

    register(
        Specified.listed,
        f"lists-{most}-bytes",
        f"Of the list of topics {most} bytes are told.",
        listed,
    )


def _records(most: int) -> None:
    def types_ok(server: Specified, payload: bytes, /) -> bool:
        return len(walk(payload)[0]) - 1 <= most and golden(server).types_ok(payload)

    def drops_record(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
        ends = walk(payload)[0]
        if len(ends) > most + 1:
            payload = payload[: ends[most]] + payload[ends[most + 1] :]
        return golden(server).stored(topic, payload)

    def swaps_records(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
        ends = walk(payload)[0]
        if len(ends) > most + 1:
            a, b, c = ends[most - 1], ends[most], ends[most + 1]
            payload = payload[:a] + payload[b:c] + payload[a:b] + payload[c:]
        return golden(server).stored(topic, payload)

    register(
        Specified.types_ok,
        f"takes-{most}-records",
        f"A batch has at most {most} records.",
        types_ok,
    )
    register(
        Specified.stored,
        f"loses-a-record-after-{most}",
        f"The record after the first {most} of a batch is lost.",
        drops_record,
    )
    register(
        Specified.stored,
        f"swaps-records-after-{most}",
        f"The record after the first {most} of a batch stands before the one before it.",
        swaps_records,
    )


def _place(server: Specified, group: object, subscription: Subscription) -> int:
    """Which of the subscriptions of a group this one is, in the order in which they began."""
    known: list[Subscription] = server.memory.kept.setdefault(group, [])
    if all(each is not subscription for each in known):
        known.append(subscription)
    return next(place for place, each in enumerate(known) if each is subscription)


def _followers(most: int) -> None:
    def topics(server: Specified, topic: Topic, subscription: Subscription, /) -> Replies:
        late = _place(server, ("consumer", subscription.consumer), subscription) >= most
        return [] if late else golden(server).pushed(topic, subscription)

    def connections(server: Specified, topic: Topic, subscription: Subscription, /) -> Replies:
        late = _place(server, ("topic", topic.id), subscription) >= most
        return [] if late else golden(server).pushed(topic, subscription)

    register(
        Specified.pushed,
        f"pushes-{most}-topics",
        f"A consumer is pushed what {most} topics get; further subscriptions bring nothing.",
        topics,
        "specified",
    )
    register(
        Specified.pushed,
        f"pushes-to-{most}-connections",
        f"Of a topic {most} connections are pushed what it gets, the others nothing.",
        connections,
        "specified",
    )


def _counts(most: int) -> None:
    def count_ok(server: Specified, announced: int, payload: bytes, /) -> bool:
        many = len(walk(payload)[0]) - 1 > most
        return many or golden(server).count_ok(announced, payload)

    register(
        Specified.count_ok,
        f"takes-any-count-above-{most}",
        f"The record count of a batch of more than {most} records is not looked at.",
        count_ok,
        "specified",
    )


def _batches(most: int) -> None:
    def served(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
        found = golden(server).served(frames)
        ingests = [frame for frame in found if frame.flags == INGEST]
        late = {id(frame) for frame in ingests[most:]}
        return [frame for frame in found if id(frame) not in late]

    def drops_batch(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
        server.memory.counts[topic.id] += 1
        lost = server.memory.counts[topic.id] == most + 1
        return topic.log if lost else golden(server).stored(topic, payload)

    def own(server: Specified, connection: Connection, frame: Wire, /) -> str:
        recent = [*connection.batches][-most:]
        known = (frame.topic, frame.batch_id) in recent
        return golden(server).seen(connection, frame) if known else "new"

    def elsewhere(server: Specified, key: tuple[int, int], content: tuple[int, bytes], /) -> bool:
        recent = [*server.memory.batches][-most:]
        return key in recent and golden(server).seen_elsewhere(key, content)

    register(
        Specified.served,
        f"takes-{most}-batches-a-read",
        f"Of one read {most} batches are served.",
        served,
    )
    register(
        Specified.stored,
        f"loses-a-batch-after-{most}",
        f"The batch after the first {most} of a topic is acknowledged and lost.",
        drops_batch,
    )
    register(
        Specified.seen,
        f"remembers-{most}-own-batches",
        f"The last {most} batches of a connection are known there.",
        own,
        "specified",
    )
    register(
        Specified.seen_elsewhere,
        f"remembers-{most}-batches",
        f"The last {most} batches are known on other connections.",
        elsewhere,
        "specified",
    )


def _answers(most: int) -> None:
    def cut(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
        counts = server.memory.speaker.counts
        counts["fetch"] += 1
        return b"" if counts["fetch"] > most else golden(server).cut(log, start, limit)

    def cursor_after(server: Specified, start: int, data: bytes, /) -> int:
        counts = server.memory.speaker.counts
        counts["pushes"] += 1
        lost = counts["pushes"] == most
        return golden(server).cursor_after(start, data) + len(data) * lost

    def found_body(server: Specified, topic: Topic, /) -> Body:
        counts, kept = server.memory.speaker.counts, server.memory.kept
        counts["found"] += 1
        late = counts["found"] > most and "found" in kept
        body = kept["found"] if late else golden(server).found_body(topic)
        kept["found"] = golden(server).found_body(topic)
        return dict(body)

    register(
        Specified.cut, f"brings-data-{most}-times", f"A connection gets data {most} times.", cut
    )
    if most <= MOST_AT_ONCE:
        register(
            Specified.cursor_after,
            f"skips-a-push-after-{most}",
            f"After {most} pushes of a connection one is left out.",
            cursor_after,
            "specified",
        )
    register(
        Specified.found_body,
        f"finds-the-last-after-{most}",
        f"After {most} answers about topics a connection is told of the topic before.",
        found_body,
    )


def _backwards(most: int) -> None:
    def arranged(server: Specified, replies: Replies, /) -> Replies:
        found = golden(server).arranged(replies)
        return [*found[:most], *reversed(found[most:])] if len(found) > most + 1 else found

    register(
        Specified.arranged,
        f"answers-backwards-after-{most}",
        f"After {most} answers of one read the others come backwards.",
        arranged,
    )


MOST_OBJECTS = 64
"""Topics, connections or subscriptions of a connection."""
MOST_AT_ONCE = 128
"""Answers: one read has hardly more."""
for _number in MOST:
    _records(_number)
    _counts(_number)
    _batches(_number)
    _answers(_number)
    _commits(_number)
    if _number <= MOST_OBJECTS:
        _objects(_number)
        _commits_of_a_consumer(_number)
    if _number <= MOST_AT_ONCE:
        _backwards(_number)
        _followers(_number)
for _number in (512, 1000):
    _commits(_number)
for _number in (100, 200, 256):
    _connections(_number)
for _number in (64, 256):
    _mixed_up(_number)
for _number in (1000, 1024):
    _counts(_number)
    _records(_number)
    _batches(_number)
for _number in (100, 128, 256):
    _lists(_number)
for _number in (16_384, 65_536):
    _lists_bytes(_number)
