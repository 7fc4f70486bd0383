"""Servers that are wrong about batches."""

from typing import Literal

from lance_conformance.server.golden.codec import Reply, Wire, begun, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Connection, Refused, Replies, Topic
from lance_conformance.server.mutants.registry import golden, mutant

ACK = 0x08


@mutant(Specified.empty, only="specified")
def acks_empty_batches(server: Specified, frame: Wire, /) -> Replies:
    """An Ingest without a payload is acknowledged."""
    return server.acks(frame)


@mutant(Specified.empty, only="specified")
def passes_over_empty_batches(_server: Specified, _frame: Wire, /) -> Replies:
    """An Ingest without a payload is not answered."""
    return []


@mutant(Specified.empty, only="deployed")
def answers_empty_batches(server: Specified, frame: Wire, /) -> Replies:
    """An Ingest without a payload is acknowledged, which the published server does not do."""
    return server.acks(frame)


@mutant(Specified.batch_id_ok, only="specified")
def accepts_batch_id_0(_server: Specified, _batch_id: int, /) -> bool:
    """Batch id 0 is as good as any."""
    return True


@mutant(Specified.batch_id_ok, only="deployed")
def refuses_batch_id_0(_server: Specified, batch_id: int, /) -> bool:
    """Batch id 0 is refused, which the published server does not do."""
    return batch_id != 0


@mutant(Specified.chain_ok, only="specified")
def stores_broken_chains(_server: Specified, _payload: bytes, /) -> bool:
    """Payloads that are not whole records are stored."""
    return True


@mutant(Specified.chain_ok, only="deployed")
def refuses_broken_chains(_server: Specified, payload: bytes, /) -> bool:
    """Payloads that are not whole records are refused, which the published server does not do."""
    return walk(payload)[1]


@mutant(Specified.stored_though_refused, only="specified")
def stores_what_it_refuses(_server: Specified, frame: Wire, /) -> bytes:
    """A refused batch is stored all the same."""
    return frame.payload


@mutant(Specified.stored_though_refused, only="specified")
def stores_the_good_part_of_a_refused_batch(_server: Specified, frame: Wire, /) -> bytes:
    """Of a refused batch the whole records are stored."""
    return frame.payload[: walk(frame.payload)[0][-1]]


@mutant(Specified.count_ok, only="specified")
def trusts_the_record_count(_server: Specified, _announced: int, _payload: bytes, /) -> bool:
    """The record count is not compared with the records."""
    return True


@mutant(Specified.count_ok, only="specified")
def takes_count_0_for_unknown(_server: Specified, announced: int, payload: bytes, /) -> bool:
    """A record count of 0 means that nobody counted."""
    return announced in (0, begun(payload))


@mutant(Specified.count_ok, only="specified")
def accepts_more_records_than_counted(
    _server: Specified, announced: int, payload: bytes, /
) -> bool:
    """There may be more records than announced."""
    return 0 < announced <= begun(payload)


@mutant(Specified.count_ok, only="specified")
def accepts_fewer_records_than_counted(
    _server: Specified, announced: int, payload: bytes, /
) -> bool:
    """There may be fewer records than announced."""
    return announced >= begun(payload)


@mutant(Specified.count_ok, only="deployed")
def refuses_wrong_counts(_server: Specified, announced: int, payload: bytes, /) -> bool:
    """The record count must be right, which the published server does not ask for."""
    return announced == begun(payload)


@mutant(Specified.timestamp_ok)
def refuses_the_far_future(_server: Specified, timestamp: int, /) -> bool:
    """A client whose clock runs ahead cannot write."""
    return timestamp < 2**63


@mutant(Specified.timestamp_ok)
def refuses_timestamp_0(_server: Specified, timestamp: int, /) -> bool:
    """A client without a clock cannot write."""
    return timestamp > 0


@mutant(Specified.types_ok)
def refuses_empty_values(_server: Specified, payload: bytes, /) -> bool:
    """A record must have a value."""
    return payload[:5] != b"\x01\0\0\0\0"


@mutant(Specified.types_ok)
def refuses_application_types(_server: Specified, payload: bytes, /) -> bool:
    """Record types from 0x80 on are refused."""
    return all(payload[start] < 0x80 for start in walk(payload)[0][:-1])


@mutant(Specified.seen, only="specified")
def stores_retries_again(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """A batch that is sent again is stored again."""
    found = golden(server).seen(connection, frame)
    return "new" if found == "again" else found


@mutant(Specified.seen, only="specified")
def takes_any_repeated_id_for_a_retry(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """Other content under a known batch id is acknowledged and lost."""
    found = golden(server).seen(connection, frame)
    return "again" if found == "other" else found


@mutant(Specified.ingest_topic)
def hangs_up_on_unknown_topics(
    server: Specified, connection: Connection, topic_id: int, /
) -> Topic:
    """The error for an unknown topic is followed by a close."""
    connection.closing = topic_id not in server.memory.topics
    return golden(server).ingest_topic(connection, topic_id)


@mutant(Specified.ingest_topic)
def takes_batches_for_unknown_topics(
    server: Specified, _connection: Connection, topic_id: int, /
) -> Topic:
    """Batches for topics that do not exist are acknowledged and lost."""
    return server.memory.topics.get(topic_id) or Topic(topic_id, "nowhere")


@mutant(Specified.ingest_topic)
def writes_everything_to_the_newest_topic(
    server: Specified, connection: Connection, topic_id: int, /
) -> Topic:
    """All batches go to the topic that was created last."""
    golden(server).ingest_topic(connection, topic_id)
    return server.memory.topics[max(server.memory.topics)]


@mutant(Specified.missing_code, only="specified")
def calls_every_missing_topic_an_internal_error(_server: Specified, _topic_id: int, /) -> int:
    """InternalError stands for every topic that is not there."""
    return 0x60


@mutant(Specified.missing_code, only="specified")
def forgets_what_was_deleted(_server: Specified, _topic_id: int, /) -> int:
    """A deleted topic is reported as one that never existed."""
    return 0x10


@mutant(Specified.missing_code, only="specified")
def calls_every_missing_topic_deleted(_server: Specified, _topic_id: int, /) -> int:
    """A topic that never existed is reported as deleted."""
    return 0x13


@mutant(Specified.details, only="specified")
def does_not_say_which_batch(_server: Specified, _frame: Wire, /) -> Body:
    """The error for an Ingest does not name its batch."""
    return {}


@mutant(Specified.stored)
def acks_without_storing(_server: Specified, topic: Topic, _payload: bytes, /) -> bytes:
    """Batches are acknowledged and thrown away."""
    return topic.log


@mutant(Specified.stored)
def stores_the_first_record_only(_server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """Of each batch only the first record is stored."""
    return topic.log + payload[: [*walk(payload)[0], len(payload)][1]]


@mutant(Specified.stored)
def stores_the_latest_batch_first(_server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """The log grows at its front."""
    return payload + topic.log


@mutant(Specified.stored)
def stores_every_batch_twice(_server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """Each batch is written two times."""
    return topic.log + payload + payload


@mutant(Specified.stored)
def rewrites_record_types(_server: Specified, topic: Topic, payload: bytes, /) -> bytes:
    """Every record is stored as raw data."""
    starts = walk(payload)[0][:-1]
    raw = bytearray(payload)
    for start in starts:
        raw[start] = 0x01
    return topic.log + bytes(raw)


@mutant(Specified.acks)
def acks_nothing(_server: Specified, _frame: Wire, /) -> Replies:
    """Batches are stored without an Ack."""
    return []


@mutant(Specified.acks)
def acks_twice(_server: Specified, frame: Wire, /) -> Replies:
    """Every batch is acknowledged twice."""
    return [Reply(ACK, frame.batch_id)] * 2


@mutant(Specified.acks)
def acks_half_the_batch_id(_server: Specified, frame: Wire, /) -> Replies:
    """Acks carry the lower 32 bits of the batch id."""
    return [Reply(ACK, frame.batch_id & 0xFFFFFFFF)]


@mutant(Specified.acks)
def stamps_acks(_server: Specified, frame: Wire, /) -> Replies:
    """Acks carry the timestamp of the batch."""
    return [Reply(ACK, frame.batch_id, timestamp=frame.timestamp)]


@mutant(Specified.acks)
def counts_in_acks(_server: Specified, frame: Wire, /) -> Replies:
    """Acks carry the record count of the batch."""
    return [Reply(ACK, frame.batch_id, records=frame.records)]


@mutant(Specified.acks)
def names_the_topic_in_acks(_server: Specified, frame: Wire, /) -> Replies:
    """Acks carry the topic of the batch."""
    return [Reply(ACK, frame.batch_id, topic=frame.topic)]


@mutant(Specified.acks)
def acks_with_a_payload(_server: Specified, frame: Wire, /) -> Replies:
    """Acks carry a payload."""
    return [Reply(ACK, frame.batch_id, b"ok")]


@mutant(Specified.acks)
def acks_as_control(_server: Specified, frame: Wire, /) -> Replies:
    """Batches are acknowledged by a control frame."""
    return [Reply(0x40, 0x80, b'{"acked": %d}' % frame.batch_id)]


@mutant(Specified.acks)
def refuses_large_batch_ids(_server: Specified, frame: Wire, /) -> Replies:
    """Batch ids of more than 32 bits are refused."""
    if frame.batch_id >= 2**32:
        raise Refused(0x04, "the batch id is too large")
    return [Reply(ACK, frame.batch_id)]
