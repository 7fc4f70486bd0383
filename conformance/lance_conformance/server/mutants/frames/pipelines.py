"""Servers that lose their way among many frames, many connections, or much data."""

from collections.abc import Sequence

from lance_conformance.server.golden.codec import SIZE, Reply, Wire, parse, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Replies, Topic
from lance_conformance.server.mutants.predicates import also_refuses, also_takes
from lance_conformance.server.mutants.registry import golden, mutant

INGEST, ACK, KEEPALIVE, CONTROL = 0x04, 0x08, 0x20, 0x40
FETCH = 0x10
HEADER = 5
MIB = 1024 * 1024

# -- pipelines -------------------------------------------------------------------------------------


@mutant(Specified.served)
def serves_150_frames_a_read(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """Of the frames of one read the first 150 are served."""
    return golden(server).served(frames)[:150]


@mutant(Specified.acks)
def acks_a_thousand_batches(server: Specified, frame: Wire, /) -> Replies:
    """After a thousand batches a connection gets no more Acks."""
    tired = len(server.memory.speaker.batches) >= 1000
    return [] if tired else golden(server).acks(frame)


@mutant(Specified.served)
def serves_topic_by_topic(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """The frames of one read are served in the order of their topics."""
    return sorted(golden(server).served(frames), key=lambda frame: frame.topic)


@mutant(Specified.stored, asked=("pipe/large-then-small",))
def stores_large_batches_after_small_ones(
    server: Specified, topic: Topic, payload: bytes, /
) -> bytes:
    """A batch of 64 KiB or more is stored together with the batch that follows it, after that."""
    late: bytes = server.memory.kept.pop(("late", topic.id), b"")
    if len(payload) >= 65536 and not late:
        server.memory.kept["late", topic.id] = payload
        return topic.log
    return golden(server).stored(topic, payload) + late


def _at_most(frames: Sequence[Wire], which: Sequence[Wire], most: int) -> Sequence[Wire]:
    beyond = {id(frame) for frame in which[most:]}
    return [frame for frame in frames if id(frame) not in beyond]


@mutant(Specified.served)
def answers_16_pings_between_batches(
    server: Specified, frames: Sequence[Wire], /
) -> Sequence[Wire]:
    """Of the Keepalives between batches of one read at most 16 are answered."""
    found = golden(server).served(frames)
    batches = any(frame.flags == INGEST for frame in found)
    return _at_most(found, [f for f in found if batches and f.flags == KEEPALIVE], 16)


@mutant(Specified.served)
def answers_30_fetches_a_read(server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """Of the Fetches of one read at most 30 are answered."""
    found = golden(server).served(frames)
    return _at_most(found, [f for f in found if f.flags == CONTROL and f.batch_id == FETCH], 30)


# -- connections -----------------------------------------------------------------------------------

also_refuses(
    Specified.has_room, "has-room-for-16", "The seventeenth connection is closed at once.",
    lambda server, *_: len(server.memory.crowd) > 16,
)  # fmt: skip


also_takes(
    Specified.spreads, "lets-faults-of-a-stream-spread",
    "Whatever closes one connection closes all of them.", lambda _, fault, __: fault == "stream",
)  # fmt: skip


@mutant(Specified.keepalives)
def tells_bystanders_of_batches(server: Specified, frame: Wire, /) -> Replies:
    """The first Keepalive of a third connection brings the last Ack of another one, too."""
    notes, others = server.memory.speaker.notes, len(server.memory.crowd) > 2
    told = not others or "told" in notes or not server.memory.batches
    notes.add("told")
    more = [] if told else [Reply(ACK, [*server.memory.batches][-1][1])]
    return [*more, *golden(server).keepalives(frame)]


@mutant(Specified.kept)
def keeps_one_beginning_at_a_time(server: Specified, tail: bytes, _whole: int, /) -> bytes:
    """When two connections are in the middle of a frame, the earlier one loses its beginning."""
    me = server.memory.speaker
    other: Connection | None = getattr(server, "unfinished", None)
    if tail and other is not None and other is not me:
        other.tail = b""
    setattr(server, "unfinished", me if tail else None)  # noqa: B010 - only this mutant has it
    return tail


@mutant(Specified.last_words)
def writes_faults_into_the_log(server: Specified, header: Wire, /) -> Replies:
    """What stands after a whole batch is written to its topic, though it is not a frame."""
    for topic in [*server.memory.topics.values()][-1:]:
        topic.log += header.magic
    return golden(server).last_words(header)


# -- frames that are not whole ---------------------------------------------------------------------


@mutant(Specified.kept)
def stores_records_as_they_come(server: Specified, tail: bytes, _whole: int, /) -> bytes:
    """The whole records of a frame are stored before the frame is whole, and again afterwards."""
    header = parse(tail) if len(tail) > SIZE else None
    topic = server.memory.topics.get(header.topic) if header else None
    if topic is not None and header is not None and header.flags == INGEST:
        topic.log += tail[SIZE : SIZE + walk(tail[SIZE:])[0][-1]]
    return tail


@mutant(Specified.orphaned)
def stores_an_empty_record_for_a_lost_payload(server: Specified, tail: bytes, /) -> None:
    """A header whose payload never comes leaves an empty record."""
    topic = server.memory.topics.get(parse(tail).topic) if len(tail) == SIZE else None
    if topic is not None:
        topic.log += bytes([1, 0, 0, 0, 0])


@mutant(Specified.orphaned)
def writes_half_headers_into_the_log(server: Specified, tail: bytes, /) -> None:
    """Half a header ends up in the topic that was created last."""
    for topic in [*server.memory.topics.values()][-1:] if len(tail) < SIZE else []:
        topic.log += tail


@mutant(Specified.orphaned)
def takes_back_what_lost_clients_wrote(server: Specified, tail: bytes, /) -> None:
    """The topic of a frame that never becomes whole is emptied."""
    topic = server.memory.topics.get(parse(tail).topic) if len(tail) >= SIZE else None
    if topic is not None:
        topic.log = b""


# -- sizes -----------------------------------------------------------------------------------------

for size, name in (
    (4096, "4-kib"),
    (16384, "16-kib"),
    (65536, "64-kib"),
    (65537, "64-kib-and-1"),
    (262144, "256-kib"),
    (MIB, "1-mib"),
):
    also_refuses(
        Specified.announced_ok, f"trips-over-frames-of-{name}",
        f"A frame of exactly {size} bytes finds no room in a buffer.",
        lambda _, header, size=size: header.length == size - SIZE,
    )  # fmt: skip
also_refuses(
    Specified.announced_ok, "counts-headers-into-the-limit",
    "The limit is that of a whole frame, not of its payload.",
    lambda server, header: not server.length_ok(header.length + SIZE),
)  # fmt: skip
