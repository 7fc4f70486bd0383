"""Servers that are wrong about some batches, some sizes, or the order of some answers."""

from collections.abc import Sequence
from typing import Literal

from lance_conformance.server.golden.codec import SIZE, Reply, Wire, castagnoli, ieee
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Replies, Topic
from lance_conformance.server.mutants.predicates import also_refuses, also_takes
from lance_conformance.server.mutants.registry import golden, mutant

INGEST, ACK, KEEPALIVE, CONTROL = 0x04, 0x08, 0x20, 0x40
ERROR = 0xFF
ONES = 0xFFFFFFFF

# -- checksums -------------------------------------------------------------------------------------

also_takes(
    Specified.payload_crc_ok, "takes-payload-crcs-of-both-polynomials",
    "A payload checksum of the other polynomial is served, too.",
    lambda _, header, payload: header.payload_crc in (castagnoli(payload), ieee(payload)),
)  # fmt: skip
also_refuses(
    Specified.payload_crc_ok, "takes-crc-0-for-a-fault", "A payload checksum of 0 is a fault.",
    lambda _, header, payload: bool(payload) and header.payload_crc == 0,
)  # fmt: skip
also_refuses(
    Specified.payload_crc_ok, "takes-crc-ones-for-a-fault",
    "A payload checksum of FFFFFFFF is a fault.", lambda _, header, __: header.payload_crc == ONES,
)  # fmt: skip
also_refuses(
    Specified.payload_crc_ok, "checks-some-sizes-wrongly",
    "The checksum of payloads of 66 bytes is computed wrongly.",
    lambda _, __, payload: len(payload) == 66,
)  # fmt: skip

# -- batches ---------------------------------------------------------------------------------------

also_refuses(
    Specified.batch_id_ok, "takes-high-batch-ids-for-negative",
    "A batch id with its highest bit is refused.", lambda _, batch_id: batch_id >= 2**63,
)  # fmt: skip
also_refuses(
    Specified.batch_id_ok, "takes-the-highest-batch-id-for-none",
    "The highest batch id stands for none, and is refused.",
    lambda _, batch_id: batch_id == 2**64 - 1,
)  # fmt: skip


@mutant(Specified.seen)
def refuses_falling_batch_ids(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """A batch id below an earlier one of the connection is refused."""
    found = golden(server).seen(connection, frame)
    earlier = [batch for topic, batch in connection.batches if topic == frame.topic]
    return "other" if found == "new" and max(earlier, default=0) > frame.batch_id else found


@mutant(Specified.seen, only="specified", asked=("ing/*",))
def takes_refused_batches_for_stored_ones(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """A batch that comes again, as it was, counts as stored, though it was refused."""
    tried = f"tried {frame.topic}/{frame.batch_id}/{hash(frame.payload)}"
    if tried in connection.notes:
        return "again"
    connection.notes.add(tried)
    return golden(server).seen(connection, frame)


@mutant(Specified.seen, asked=("ing/*",))
def knows_batches_of_deleted_topics_by_their_name(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """A batch is taken for one of a topic that had the same name and was deleted."""
    name = server.memory.topics[frame.topic].name
    key, content = (name, frame.batch_id), (frame.timestamp, frame.payload)
    if server.memory.kept.setdefault(key, (frame.topic, content)) == (frame.topic, content):
        return golden(server).seen(connection, frame)
    earlier, known = server.memory.kept[key]
    deleted = earlier in server.memory.deleted and known == content
    return "again" if deleted else golden(server).seen(connection, frame)


@mutant(Specified.seen)
def refuses_falling_timestamps(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """A batch that is older than an earlier one of the connection is refused."""
    found = golden(server).seen(connection, frame)
    earlier = [stamp for stamp, _ in connection.batches.values()]
    return "other" if found == "new" and max(earlier, default=0) > frame.timestamp else found


@mutant(Specified.seen)
def knows_batch_ids_of_other_connections(
    server: Specified, connection: Connection, frame: Wire, /
) -> Literal["new", "again", "other"]:
    """A batch id that another connection has used for the topic is refused."""
    known = f"{frame.topic}/{frame.batch_id}"
    if known in server.memory.scars and known not in connection.notes:
        return "other"
    server.memory.scars.add(known)
    connection.notes.add(known)
    return golden(server).seen(connection, frame)


@mutant(Specified.ingest_topic)
def takes_topic_ffffffff_for_a_default(
    server: Specified, connection: Connection, topic_id: int, /
) -> Topic:
    """The highest topic id stands for the topic that was created last."""
    last = max(server.memory.topics) if topic_id == ONES else topic_id
    return golden(server).ingest_topic(connection, last)


@mutant(Specified.chain_ok, only="specified")
def loses_the_connection_at_broken_records(server: Specified, payload: bytes, /) -> bool:
    """The error for a batch of broken records is followed by a close."""
    right = golden(server).chain_ok(payload)
    server.memory.speaker.closing |= not right
    return right


@mutant(Specified.arranged, only="specified")
def acks_batches_that_it_refuses(server: Specified, replies: Replies, /) -> Replies:
    """The error for a batch is followed by an Ack."""
    found: Replies = []
    for reply in golden(server).arranged(replies):
        found.append(reply)
        if reply.batch_id == ERROR and b'"batch_id": 1}' in reply.payload:
            found.append(Reply(ACK, 1))
    return found


@mutant(Specified.chain_ok, only="specified")
def remembers_the_ids_of_refused_batches(server: Specified, payload: bytes, /) -> bool:
    """The batch id of a batch of broken records is taken, though nothing was stored."""
    right = golden(server).chain_ok(payload)
    notes = server.memory.speaker.notes
    if not right:
        notes.add("burnt")
    return right and "burnt" not in notes


# -- keepalives and order --------------------------------------------------------------------------


@mutant(Specified.served)
def answers_64_keepalives_a_read(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """Of the Keepalives of one read at most 64 are answered."""
    pings = [frame for frame in frames if frame.flags == KEEPALIVE][64:]
    return [frame for frame in golden(server).served(frames) if frame not in pings or not pings]


@mutant(Specified.keepalives)
def wants_a_command_first(server: Specified, frame: Wire, /) -> Replies:
    """The first Keepalive of a connection is not answered when no frame came before it."""
    notes = server.memory.speaker.notes
    first = "greeted" not in notes
    notes.add("greeted")
    return [] if first and not server.memory.speaker.batches else golden(server).keepalives(frame)


@mutant(Specified.served, only="specified")
def stores_before_it_reads(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """The batches of a read are stored before its commands are carried out."""
    return sorted(golden(server).served(frames), key=lambda frame: frame.flags != INGEST)


@mutant(Specified.arranged)
def sends_refusals_last(server: Specified, replies: Replies, /) -> Replies:
    """Errors leave after every other answer of the same read."""
    return sorted(golden(server).arranged(replies), key=lambda reply: reply.batch_id == ERROR)


@mutant(Specified.arranged, only="specified")
def lets_commands_overtake(server: Specified, replies: Replies, /) -> Replies:
    """The answer of a command leaves before the Acks of the same read when it is the last."""
    answers = golden(server).arranged(replies)
    if len(answers) == 3 and answers[-1].flags == CONTROL:
        return [answers[-1], *answers[:-1]]
    return answers


# -- segments --------------------------------------------------------------------------------------


@mutant(Specified.complete)
def serves_frames_that_lack_a_byte(server: Specified, there: int, needed: int, /) -> bool:
    """The last byte of a frame is not waited for."""
    return golden(server).complete(there, needed) or there == needed - 1


@mutant(Specified.kept)
def forgets_a_single_byte(_server: Specified, tail: bytes, _whole: int, /) -> bytes:
    """One byte at the end of a read is dropped."""
    return b"" if len(tail) == 1 else tail


@mutant(Specified.kept)
def forgets_a_header_alone(_server: Specified, tail: bytes, _whole: int, /) -> bytes:
    """A read that ends exactly after a header loses it."""
    return b"" if len(tail) == SIZE else tail


@mutant(Specified.kept)
def forgets_headers_behind_frames(_server: Specified, tail: bytes, whole: int, /) -> bytes:
    """The piece of a header after a whole frame is dropped."""
    return b"" if whole and len(tail) < SIZE else tail


@mutant(Specified.kept)
def has_a_buffer_of_32_kib(_server: Specified, tail: bytes, _whole: int, /) -> bytes:
    """Of a frame that is not complete only 32 KiB are kept."""
    return tail[:32768]
