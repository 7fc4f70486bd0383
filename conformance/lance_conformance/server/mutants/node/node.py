"""Servers that are wrong about the log as a whole, its edges, its times, and their own status."""

import struct
from typing import Literal

from lance_conformance.server.golden.codec import Reply, Wire, parse, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Refused, Topic
from lance_conformance.server.mutants.registry import golden, mutant

SENTINEL = 2**64 - 1


# -- the log ---------------------------------------------------------------------------------------


@mutant(Specified.stored)
def loses_the_17th_batch(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """The 17th batch of a topic is acknowledged and dropped."""
    return topic.log if len(topic.arrivals) == 17 else golden(server).stored(topic, payload)


@mutant(Specified.stored)
def tears_batches(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """A batch of another producer slips in before the last record of the log."""
    ends, speaker = walk(topic.log)[0], server.memory.speaker
    mixed = topic.made_by is not speaker and len(ends) > 2
    if not mixed:
        return golden(server).stored(topic, payload)
    return topic.log[: ends[-2]] + payload + topic.log[ends[-2] :]


@mutant(Specified.stored)
def puts_other_producers_first(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """What another connection than the topic's own writes is put at the beginning."""
    if topic.made_by is server.memory.speaker:
        return golden(server).stored(topic, payload)
    return payload + topic.log


@mutant(Specified.stored)
def stores_for_others_twice(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """What another connection than the topic's own writes is stored twice."""
    own = topic.made_by is server.memory.speaker
    return golden(server).stored(topic, payload if own else payload * 2)


@mutant(Specified.stored)
def stores_records_one_by_one(server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """Of a batch whose connection is not the topic's own the last record is stored too late."""
    own = topic.made_by is server.memory.speaker
    ends = walk(payload)[0]
    return topic.log + (payload if own or len(ends) < 2 else payload[: ends[-2]])


@mutant(Specified.stored)
def finds_frames_in_values(_server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """A value that has the magic of a frame in it is changed."""
    return topic.log + payload.replace(b"LANC", b"lanc")


@mutant(Specified.stored)
def ends_values_at_zeros(_server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """Forty zeros in a row are stored as spaces."""
    return topic.log + payload.replace(bytes(40), b" " * 40)


@mutant(Specified.readable)
def shows_64_kib(_server: Specified, topic: Topic, /) -> bytes:
    """What lies beyond 64 KiB cannot be read."""
    return topic.log[:65536]


@mutant(Specified.readable)
def shows_what_was_there_at_first(server: Specified, topic: Topic, /) -> bytes:
    """A connection sees of a topic what was there when it first looked."""
    notes, mark = server.memory.speaker.notes, f"saw {topic.id} "
    seen = next((int(note.removeprefix(mark)) for note in notes if note.startswith(mark)), None)
    if seen is None:
        seen = len(topic.log)
        notes.add(f"{mark}{seen}")
    return topic.log[:seen]


@mutant(Specified.readable)
def forgets_what_was_read(server: Specified, topic: Topic, /) -> bytes:
    """What a connection has read twice is gone."""
    log, notes = topic.log, server.memory.speaker.notes
    times = 1 + sum(note.startswith(f"read {topic.id} ") for note in notes)
    notes.add(f"read {topic.id} {times}")
    return log if times < 3 else b""


@mutant(Specified.cut)
def scrambles_small_steps(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """Data that is fetched in steps of less than 100 bytes is changed."""
    data = golden(server).cut(log, start, limit)
    return data[::-1] if 50 < limit < 100 else data


@mutant(Specified.ingest_topic)
def sticks_to_the_first_topic(server: Specified, connection: Connection, topic_id: int, /) -> Topic:
    """All batches of a pipeline go to the topic of the first one."""
    topic = golden(server).ingest_topic(connection, topic_id)
    first = next((note for note in connection.notes if note.startswith("writes ")), None)
    if first is None:
        connection.notes.add(f"writes {topic_id}")
        return topic
    return server.memory.topics.get(int(first.removeprefix("writes ")), topic)


@mutant(Specified.orphaned)
def stores_half_batches(server: Specified, tail: bytes, /) -> None:
    """Of a batch that did not come to its end the whole records are stored."""
    if len(tail) > 44:
        topic = server.memory.topics.get(parse(tail).topic)
        if topic is not None:
            records = tail[44:]
            topic.log += records[: walk(records)[0][-1]]


@mutant(Specified.seen_elsewhere, only="specified")
def forgets_batches_of_other_connections(
    _server: Specified, _key: tuple[int, int], _content: tuple[int, bytes], /
) -> bool:
    """A batch that comes again on another connection is stored again."""
    return False


@mutant(Specified.seen_elsewhere, only="specified")
def takes_all_producers_for_one(
    server: Specified, key: tuple[int, int], content: tuple[int, bytes], /
) -> bool:
    """Equal batches of two producers that count from 1 are stored once."""
    return server.memory.batches.get(key) == content


@mutant(Specified.seen, only="deployed")
def knows_batches_by_their_id(
    server: Specified, _connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """A batch whose id came before in its topic is not stored, unlike by the published server."""
    return "again" if (frame.topic, frame.batch_id) in server.memory.batches else "new"


# -- edges of Fetch --------------------------------------------------------------------------------


@mutant(Specified.start_of)
def reads_offsets_as_signed(_server: Specified, start: int, /) -> int:
    """Offsets from 2^63 on are negative, and begin at 0."""
    return 0 if 2**63 <= start < SENTINEL - 1 else start


@mutant(Specified.start_of)
def wraps_around(_server: Specified, start: int, /) -> int:
    """Offset 2^64-2 and what lies after it wrap around to 0."""
    return 0 if start == SENTINEL - 1 else start


@mutant(Specified.start_of)
def reads_32_bits_of_offsets(_server: Specified, start: int, /) -> int:
    """Of an offset the upper half is not looked at."""
    return start if start >= 2**63 else start % 2**32


@mutant(Specified.beyond_end)
def takes_an_empty_topic_for_a_missing_one(server: Specified, log: bytes, start: int, /) -> Reply:
    """A Fetch from beyond the end of an empty topic is TopicNotFound."""
    if not log:
        raise Refused(0x10, "Topic not found")
    return golden(server).beyond_end(log, start)


@mutant(Specified.end_answer)
def has_no_end_when_empty(server: Specified, log: bytes, /) -> Reply:
    """The end of an empty topic is 2^64-1."""
    return golden(server).end_answer(log) if log else server.fetched(SENTINEL, 0, b"")


@mutant(Specified.limit)
def brings_a_record_less(_server: Specified, max_bytes: int, /) -> int:
    """Max Bytes is taken for a bound that is never reached."""
    return max_bytes - 1 if max_bytes else 0


@mutant(Specified.limit)
def brings_a_record_header_at_least(_server: Specified, max_bytes: int, /) -> int:
    """A Max Bytes of less than a record's header is raised to it."""
    return max(max_bytes, 5) if max_bytes else 0


@mutant(Specified.cut)
def keeps_the_last_record_back(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """A Fetch that would bring only the last record brings nothing."""
    ends = walk(log)[0]
    return b"" if len(ends) > 2 and start == ends[-2] else golden(server).cut(log, start, limit)


@mutant(Specified.cut)
def begins_batches_a_byte_late(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """A Fetch from the middle of a log of four records begins a byte too late."""
    ends = walk(log)[0]
    late = len(ends) == 5 and start == ends[2]
    return golden(server).cut(log, start + 1 if late else start, limit)


@mutant(Specified.counted, only="specified")
def counts_to_the_end(_server: Specified, log: bytes, start: int, data: bytes, /) -> int:
    """The record count is the number of records from the start to the end of the log."""
    return sum(end > start for end in walk(log)[0]) if data and start in walk(log)[0] else 0


@mutant(Specified.counted, only="specified")
def counts_four_records_at_most(server: Specified, log: bytes, start: int, data: bytes, /) -> int:
    """The record count ends at four."""
    return min(4, golden(server).counted(log, start, data))


@mutant(Specified.counted, only="specified")
def counts_fetched_records_in_a_byte(
    server: Specified, log: bytes, start: int, data: bytes, /
) -> int:
    """The record count has eight bits."""
    return golden(server).counted(log, start, data) % 256


@mutant(Specified.counted, only="specified")
def counts_records_that_begin(_server: Specified, log: bytes, start: int, data: bytes, /) -> int:
    """The record count includes a record that is cut off."""
    ends = walk(log)[0]
    return sum(start <= end < start + len(data) for end in ends) if start in ends else 0


@mutant(Specified.counted, only="deployed")
def counts_up_to_two(_server: Specified, _log: bytes, _start: int, data: bytes, /) -> int:
    """The record count is 2 for more than 32 bytes, unlike the published server's."""
    return 2 if len(data) > 32 else bool(data)


@mutant(Specified.fetch_topic)
def fails_at_topic_0(server: Specified, topic_id: int, /) -> Topic:
    """A Fetch from topic 0 is an internal error."""
    if not topic_id:
        raise Refused(0x60, "oops")
    return golden(server).fetch_topic(topic_id)


@mutant(Specified.fetch_topic)
def remembers_the_topic_of_a_fetch(server: Specified, topic_id: int, /) -> Topic:
    """The second Fetch of a connection and all later ones read the topic of the first."""
    right = golden(server).fetch_topic(topic_id)
    notes = server.memory.speaker.notes
    first = next((note for note in notes if note.startswith("fetches ")), None)
    if first is None:
        notes.add(f"fetches {topic_id}")
        return right
    return server.memory.topics.get(int(first.removeprefix("fetches ")), right)


# -- times -----------------------------------------------------------------------------------------


@mutant(Specified.offset_at, only="specified")
def finds_every_time_at_the_end(_server: Specified, topic: Topic, _time: int, /) -> int:
    """Every time is the end of the log."""
    return len(topic.log)


@mutant(Specified.offset_at, only="specified")
def finds_every_time_at_the_beginning(_server: Specified, _topic: Topic, _time: int, /) -> int:
    """Every time is the beginning of the log."""
    return 0


@mutant(Specified.offset_at, only="specified")
def says_1_for_an_empty_topic(server: Specified, topic: Topic, time_ns: int, /) -> int:
    """Times of an empty topic are offset 1."""
    return golden(server).offset_at(topic, time_ns) if topic.log else 1


@mutant(Specified.offset_at, only="specified")
def finds_the_byte_behind(server: Specified, topic: Topic, time_ns: int, /) -> int:
    """Between beginning and end a time is found one byte after where its batch begins."""
    where = golden(server).offset_at(topic, time_ns)
    return where + 1 if 0 < where < len(topic.log) else where


@mutant(Specified.timed_topic, only="specified")
def looks_for_times_in_the_largest_topic(server: Specified, topic_id: int, /) -> Topic:
    """Times are those of the topic with the most bytes."""
    golden(server).timed_topic(topic_id)
    return max(server.memory.topics.values(), key=lambda topic: len(topic.log))


@mutant(Specified.timed_topic, only="specified")
def knows_times_of_missing_topics(server: Specified, topic_id: int, /) -> Topic:
    """A topic that does not exist is an empty one."""
    return server.memory.topics.get(topic_id) or Topic(topic_id, "")


@mutant(Specified.time_answer, only="specified")
def answers_times_in_32_bits(_server: Specified, offset: int, /) -> Reply:
    """The offset of a time has four bytes."""
    return Reply(0x40, 0x71, struct.pack("<I", offset % 2**32))


@mutant(Specified.arrived, only="specified")
def dates_nothing(_server: Specified, _topic: Topic, _start: int, /) -> None:
    """Nothing is dated, so that every time lies after the log."""


# -- status ----------------------------------------------------------------------------------------


@mutant(Specified.status_command)
def answers_status_as_a_topic(_server: Specified) -> int:
    """GetClusterStatus is answered by a TopicResponse."""
    return 0x80


@mutant(Specified.status_body)
def tells_no_term(server: Specified) -> Body:
    """The status has no current_term."""
    body = golden(server).status_body()
    del body["current_term"]
    return body


@mutant(Specified.status_body)
def counts_nodes_in_words(server: Specified) -> Body:
    """node_count is a text."""
    return {**golden(server).status_body(), "node_count": "one"}


@mutant(Specified.status_body)
def says_leader_as_a_number(server: Specified) -> Body:
    """is_leader is 1 in place of true."""
    return {**golden(server).status_body(), "is_leader": 1}


@mutant(Specified.status_body)
def leads_under_another_name(server: Specified) -> Body:
    """A leader names somebody else as the leader."""
    return {**golden(server).status_body(), "leader_id": 7}


@mutant(Specified.status_body)
def is_healthier_than_it_can_be(server: Specified) -> Body:
    """Of one node two are healthy."""
    return {**golden(server).status_body(), "healthy_nodes": 2}


@mutant(Specified.status_body, only="specified")
def states_a_window_in_words(server: Specified) -> Body:
    """dedup_window is a text."""
    return {**golden(server).status_body(), "dedup_window": "7 days"}


@mutant(Specified.status_alias_ok, only="specified")
def does_not_know_0x30(_server: Specified) -> bool:
    """0x30 is not a command."""
    return False
