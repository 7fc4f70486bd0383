"""Servers that are wrong about streams and their acknowledgements."""

import struct

from lance_conformance.fluvio.golden.codec import Entry
from lance_conformance.fluvio.golden.objects import code
from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.golden.state import (
    Connection,
    Partition,
    Refused,
    Stream,
)
from lance_conformance.fluvio.mutants.registry import golden, mutant

Batches = list[tuple[int, list[Entry]]]


@mutant(Rules.names_consumer)
def reads_consumers_from_version_22(_server: Rules, version: int, /) -> bool:
    """The consumer of a stream is looked for one version too early."""
    return version >= 22


@mutant(Rules.names_consumer)
def reads_consumers_from_version_24(_server: Rules, version: int, /) -> bool:
    """The consumer of a stream is looked for one version too late."""
    return version >= 24


@mutant(Rules.isolation_ok)
def takes_any_isolation(_server: Rules, _isolation: int, /) -> bool:
    """An isolation that there is not is taken."""
    return True


@mutant(Rules.isolation_ok)
def takes_isolation_0_only(_server: Rules, isolation: int, /) -> bool:
    """A stream of committed records ends the connection."""
    return isolation == 0


@mutant(Rules.stream_number)
def numbers_all_streams_7(_server: Rules, /) -> int:
    """Every stream has the id 7."""
    return 7


@mutant(Rules.opened_stream)
def begins_every_stream_at_0(
    server: Rules, body: bytes, correlation: int, version: int, /
) -> Stream:
    """The offset that is asked for does not matter."""
    stream = golden(server).opened_stream(body, correlation, version)
    stream.wanted = 0
    return stream


@mutant(Rules.range_error)
def waits_for_offsets_to_come(_server: Rules, /) -> bytes:
    """A stream from an offset that is not there is answered without an error."""
    return code(0)


@mutant(Rules.range_ok)
def awaits_any_offset(_server: Rules, wanted: int, _end: int, /) -> bool:
    """A stream from beyond the end waits."""
    return wanted >= 0


@mutant(Rules.range_ok)
def takes_negative_offsets_for_0(_server: Rules, wanted: int, end: int, /) -> bool:
    """A stream from a negative offset begins at 0."""
    return wanted <= end


@mutant(Rules.range_ok)
def has_no_place_at_the_end(_server: Rules, wanted: int, end: int, /) -> bool:
    """The end of a partition is out of range."""
    return 0 <= wanted < end


@mutant(Rules.read_from)
def streams_nothing_from_nowhere(server: Rules, stream: Stream, /) -> Partition:
    """A stream of a partition that is not there brings nothing, not even an error."""
    try:
        return golden(server).read_from(stream)
    except Refused:
        stream.ended = True
        return Partition(batches=[(-(2**62), [])])


@mutant(Rules.may_send)
def does_not_wait_for_acks(_server: Rules, _stream: Stream, /) -> bool:
    """Streams bring pieces as fast as they can."""
    return True


@mutant(Rules.may_send)
def waits_for_the_slowest_reader(server: Rules, stream: Stream, /) -> bool:
    """A stream waits until every reader of its partition has acknowledged."""
    readers = [each for one in server.memory.connections for each in one.streams.values()]
    place = stream.topic, stream.partition
    return not any(each.waiting for each in readers if (each.topic, each.partition) == place)


@mutant(Rules.visible)
def shows_nothing_committed(_server: Rules, partition: Partition, isolation: int, /) -> int:
    """A stream of committed records brings nothing."""
    return -1 if isolation == 1 else partition.end


@mutant(Rules.visible)
def shows_committed_only(_server: Rules, partition: Partition, isolation: int, /) -> int:
    """A stream of what the leader has brings nothing."""
    return -1 if isolation == 0 else partition.end


@mutant(Rules.visible)
def holds_back_the_last_record(_server: Rules, partition: Partition, _isolation: int, /) -> int:
    """The last record of a partition is not shown alone."""
    return partition.end - 1


@mutant(Rules.pieces)
def sends_everything_before_too(_server: Rules, stream: Stream, partition: Partition, /) -> Batches:
    """A piece begins with the first batch of the partition."""
    del stream
    return list(partition.batches)


@mutant(Rules.pieces)
def begins_behind_the_batch(server: Rules, stream: Stream, partition: Partition, /) -> Batches:
    """A stream from the middle of a batch begins with the next one."""
    found = golden(server).pieces(stream, partition)
    return [(base, entries) for base, entries in found if base >= stream.wanted]


@mutant(Rules.pieces)
def sends_nothing_large(server: Rules, stream: Stream, partition: Partition, /) -> Batches:
    """A batch that is larger than a piece may be never comes."""
    found = golden(server).pieces(stream, partition)
    return found if len(server.batch(*found[0])) <= stream.max_bytes else []


@mutant(Rules.pieces)
def leaves_out_a_batch(server: Rules, stream: Stream, partition: Partition, /) -> Batches:
    """Of three batches or more in a piece the second is missing."""
    found = golden(server).pieces(stream, partition)
    return found if len(found) <= 2 else [found[0], *found[2:]]


@mutant(Rules.pieces)
def sends_batches_backwards(server: Rules, stream: Stream, partition: Partition, /) -> Batches:
    """The batches of a piece come from the last to the first."""
    return golden(server).pieces(stream, partition)[::-1]


@mutant(Rules.pieces)
def sends_the_first_batch_without_end(
    server: Rules, stream: Stream, partition: Partition, /
) -> Batches:
    """Each piece has the first batch of the partition, whatever was acknowledged."""
    return partition.batches[:1] or golden(server).pieces(stream, partition)


@mutant(Rules.room)
def ignores_max_bytes(_server: Rules, _stream: Stream, /) -> int:
    """A piece has whatever there is."""
    return 2**31


@mutant(Rules.pushed_piece)
def repeats_the_last_batch(server: Rules, stream: Stream, /) -> bytes | None:
    """A stream at the end brings the last batch again."""
    topic = server.memory.topics.get(stream.topic)
    if topic and stream.partition < len(topic.partitions) and not stream.waiting:
        part = topic.partitions[stream.partition]
        if part.batches and stream.wanted == part.end:
            stream.wanted, _ = part.batches[-1]
    return golden(server).pushed_piece(stream)


@mutant(Rules.watermark)
def tells_no_watermark(_server: Rules, _partition: Partition, /) -> int:
    """Pieces tell -1 as the end of what can be read."""
    return -1


@mutant(Rules.told_topic)
def names_no_topic(_server: Rules, _stream: Stream, /) -> str:
    """Pieces do not name their topic."""
    return ""


@mutant(Rules.told_partition)
def names_partition_0(_server: Rules, _stream: Stream, /) -> int:
    """Pieces name partition 0."""
    return 0


@mutant(Rules.tells_filter)
def tells_no_filter(_server: Rules, _version: int, /) -> bool:
    """Pieces are written without the place where a SmartModule goes on."""
    return False


@mutant(Rules.piece)
def counts_batches_instead_of_bytes(
    server: Rules, stream: Stream, outcome: bytes, ends: tuple[int, int], data: bytes, /
) -> bytes:
    """The batches of a piece stand after their number instead of their length."""
    found = golden(server).piece(stream, outcome, ends, data)
    return found[: len(found) - len(data) - 4] + struct.pack(">i", 1 if data else 0) + data


@mutant(Rules.stream_correlation)
def streams_under_other_ids(_server: Rules, correlation: int, /) -> int:
    """Pieces carry an id of their own."""
    return correlation + 1000


@mutant(Rules.no_stream)
def acknowledges_for_nobody(_server: Rules, /) -> bytes:
    """A stream that is not there is acknowledged without an error."""
    return code(0)


@mutant(Rules.no_stream)
def has_lost_the_partition(_server: Rules, /) -> bytes:
    """A stream that is not there is taken for a partition that is not there."""
    return code(6)


@mutant(Rules.acknowledged)
def goes_on_where_it_likes(_server: Rules, stream: Stream, _offset: int, /) -> None:
    """A stream goes on after what it sent, whatever is acknowledged."""
    stream.waiting = False


@mutant(Rules.acknowledged)
def hears_no_acks(_server: Rules, _stream: Stream, _offset: int, /) -> None:
    """Acknowledgements are answered, and change nothing."""


@mutant(Rules.acknowledged)
def leaves_out_a_record(_server: Rules, stream: Stream, offset: int, /) -> None:
    """A stream goes on a record after what is acknowledged."""
    stream.waiting, stream.wanted = False, offset + 1


@mutant(Rules.acknowledged)
def ends_streams_at_the_end(server: Rules, stream: Stream, offset: int, /) -> None:
    """A stream that is acknowledged to the end brings nothing more."""
    golden(server).acknowledged(stream, offset)
    end = server.partition_of(stream.topic, stream.partition).end
    stream.ended = offset == end


@mutant(Rules.told_stream)
def answers_for_stream_0(_server: Rules, _number: int, /) -> int:
    """Acknowledgements are answered for stream 0."""
    return 0


@mutant(Rules.update_offsets)
def lets_all_streams_go_on(server: Rules, connection: Connection, body: bytes, /) -> bytes:
    """An acknowledgement lets every stream of the connection go on."""
    for stream in connection.streams.values():
        stream.waiting = False
    return golden(server).update_offsets(connection, body)


@mutant(Rules.pushes_on)
def pushes_on_the_newest_connection(server: Rules, connection: Connection, /) -> bool:
    """Only the connection that was opened last is pushed to."""
    return connection is server.memory.connections[-1]
