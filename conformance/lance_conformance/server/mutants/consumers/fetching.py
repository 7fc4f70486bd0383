"""Servers that are wrong about Fetch."""

import struct

from lance_conformance.server.golden.codec import Reply, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Refused, Topic
from lance_conformance.server.mutants.registry import golden, mutant


@mutant(Specified.fetch_size_ok)
def fills_up_short_fetches(_server: Specified, _size: int, /) -> bool:
    """Whatever is missing from Fetch is taken for zeros."""
    return True


@mutant(Specified.fetch_size_ok, only="specified")
def fills_up_empty_fetches(_server: Specified, size: int, /) -> bool:
    """A Fetch without a payload asks for topic 0."""
    return size in (0, 16)


@mutant(Specified.fetch_size_ok, only="specified")
def ignores_trailing_bytes_of_fetch(_server: Specified, size: int, /) -> bool:
    """Extra bytes of Fetch are ignored."""
    return size >= 16


@mutant(Specified.fetch_size_ok, only="deployed")
def demands_16_bytes_of_fetch(_server: Specified, size: int, /) -> bool:
    """Fetch must have 16 bytes, which the published server does not ask for."""
    return size == 16


@mutant(Specified.fetch_topic)
def reads_nothing_from_missing_topics(server: Specified, topic_id: int, /) -> Topic:
    """A topic that does not exist is an empty one."""
    return server.memory.topics.get(topic_id) or Topic(topic_id, "")


@mutant(Specified.readable)
def mixes_topics(server: Specified, _topic: Topic, /) -> bytes:
    """Every topic shows the records of all topics."""
    return b"".join(topic.log for topic in server.memory.topics.values())


@mutant(Specified.readable)
def shows_all_but_the_last_byte(_server: Specified, topic: Topic, /) -> bytes:
    """The last byte becomes visible with the next batch."""
    return topic.log[:-1]


@mutant(Specified.readable, asked=("log/*", "vol/512-kib", "num/records-*", "mix/*"))
def brings_the_first_record_without_end(server: Specified, topic: Topic, /) -> bytes:
    """Each Fetch finds one more copy of the first record, so that no reader gets to the end."""
    ends = walk(topic.log)[0]
    if len(ends) < 2:
        return topic.log
    server.memory.counts["endless", topic.id] += 1
    return topic.log + topic.log[: ends[1]] * server.memory.counts["endless", topic.id]


SEGMENT = 1 << 16


@mutant(Specified.readable, asked=("vol/*", "num/in-topic-*"))
def orders_segments_by_the_count_before(_server: Specified, topic: Topic, /) -> bytes:
    """Segments come by how many batches the one before them has, as at a published server."""
    starts = [at for _, at in topic.arrivals]
    segments: list[tuple[int, bytes]] = []
    begin, count, before = 0, 0, 0
    for end in [*starts[1:], len(topic.log)]:
        count += 1
        if end - begin >= SEGMENT or end == len(topic.log):
            segments.append((before, topic.log[begin:end]))
            begin, count, before = end, 0, count
    return b"".join(data for _, data in sorted(segments, key=lambda each: each[0]))


@mutant(Specified.readable)
def drops_the_oldest_bytes(_server: Specified, topic: Topic, /) -> bytes:
    """What is beyond a limit goes, and all offsets shift."""
    return topic.log[-120:]


@mutant(Specified.start_of)
def starts_at_0(_server: Specified, start: int, /) -> int:
    """The start offset is not looked at, but for the sentinel."""
    return start if start == 2**64 - 1 else 0


@mutant(Specified.start_of)
def takes_offsets_for_kilobytes(_server: Specified, start: int, /) -> int:
    """Offsets count blocks of 1024 bytes."""
    return start if start == 2**64 - 1 else start * 1024


@mutant(Specified.limit)
def ignores_max_bytes(_server: Specified, _max_bytes: int, /) -> int:
    """A Fetch brings all there is."""
    return 2**32


@mutant(Specified.limit)
def takes_max_bytes_0_for_no_limit(_server: Specified, max_bytes: int, /) -> int:
    """Max Bytes 0 brings all there is."""
    return max_bytes or 2**32


@mutant(Specified.limit)
def adds_the_header_to_max_bytes(_server: Specified, max_bytes: int, /) -> int:
    """Max Bytes is exceeded by the size of a header."""
    return max_bytes + 16


@mutant(Specified.limit, only="specified")
def refuses_max_bytes_of_4_gib(_server: Specified, max_bytes: int, /) -> int:
    """A large Max Bytes is refused."""
    if max_bytes > 2**30:
        raise Refused(0x04, "Max Bytes is too large")
    return max_bytes


@mutant(Specified.limit, only="specified")
def reads_max_bytes_as_signed(_server: Specified, max_bytes: int, /) -> int:
    """A Max Bytes of 2 GiB or more is negative."""
    return max_bytes if max_bytes < 2**31 else 0


@mutant(Specified.cut, only="specified")
def cuts_anywhere(_server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """Data ends at Max Bytes, wherever that is."""
    return log[start : start + limit]


@mutant(Specified.cut)
def stalls_on_large_records(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """A record larger than Max Bytes is never sent."""
    data = golden(server).cut(log, start, limit)
    return data if any(start < end <= start + len(data) for end in walk(log)[0]) else b""


@mutant(Specified.cut)
def sends_large_records_whole(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """A record larger than Max Bytes is sent as a whole."""
    data = golden(server).cut(log, start, limit)
    ends = [end for end in walk(log)[0] if end > start]
    return log[start : max(start + len(data), ends[0])] if ends else data


@mutant(Specified.cut)
def snaps_to_records(server: Specified, log: bytes, start: int, limit: int, /) -> bytes:
    """A start inside a record is moved to the record's beginning."""
    begin = max(end for end in walk(log)[0] if end <= start)
    return golden(server).cut(log, begin, limit)


@mutant(Specified.counted, only="specified")
def counts_1_for_any_data(_server: Specified, _log: bytes, _start: int, data: bytes, /) -> int:
    """The record count is 1 whenever there is data."""
    return 1 if data else 0


@mutant(Specified.counted, only="specified")
def counts_from_inside_a_record(_server: Specified, log: bytes, start: int, data: bytes, /) -> int:
    """The record count counts record ends, wherever the data starts."""
    return sum(start < end <= start + len(data) for end in walk(log)[0])


@mutant(Specified.counted, only="deployed")
def counts_records(_server: Specified, log: bytes, start: int, data: bytes, /) -> int:
    """The record count counts records, which the published server does not do."""
    return sum(start < end <= start + len(data) for end in walk(log)[0])


@mutant(Specified.next_offset)
def stays_where_it_is(_server: Specified, start: int, _data: bytes, /) -> int:
    """Next Offset is the offset that was asked for."""
    return start


@mutant(Specified.next_offset)
def returns_the_length_as_offset(_server: Specified, _start: int, data: bytes, /) -> int:
    """Next Offset is the number of bytes returned."""
    return len(data)


@mutant(Specified.next_offset)
def skips_a_byte(_server: Specified, start: int, data: bytes, /) -> int:
    """Next Offset is one too high."""
    return start + len(data) + 1


@mutant(Specified.announced)
def counts_the_header_as_data(_server: Specified, data: bytes, /) -> int:
    """Bytes Returned includes the 16 bytes before the data."""
    return len(data) + 16


@mutant(Specified.fetched)
def answers_with_the_extended_header(
    _server: Specified, next_offset: int, _count: int, data: bytes, /
) -> Reply:
    """FetchResponses have the 24-byte header."""
    head = struct.pack("<QQQ", next_offset - len(data), next_offset, next_offset)
    return Reply(0x40, 0x11, head + data)


@mutant(Specified.fetched)
def answers_under_the_command_of_the_request(
    server: Specified, next_offset: int, count: int, data: bytes, /
) -> Reply:
    """FetchResponses carry the command Fetch."""
    return golden(server).fetched(next_offset, count, data)._replace(batch_id=0x10)


@mutant(Specified.end_answer)
def echoes_the_sentinel(server: Specified, _log: bytes, /) -> Reply:
    """A Fetch from 2^64-1 goes on at 2^64-1."""
    return server.fetched(2**64 - 1, 0, b"")


@mutant(Specified.end_answer)
def catches_up_to_the_sentinel(_server: Specified, log: bytes, /) -> Reply:
    """A Fetch from 2^64-1 is one from beyond the end."""
    return Reply(0x40, 0x12, struct.pack("<Q", len(log)))


@mutant(Specified.at_end_answer)
def starts_over_at_the_end(server: Specified, _log: bytes, /) -> Reply:
    """A Fetch from the end goes on at 0."""
    return server.fetched(0, 0, b"")


@mutant(Specified.at_end_answer)
def refuses_the_end(_server: Specified, _log: bytes, /) -> Reply:
    """A Fetch from the end is out of range."""
    raise Refused(0x51, "the offset is beyond the end")


@mutant(Specified.at_end_answer)
def counts_a_record_at_the_end(server: Specified, log: bytes, /) -> Reply:
    """A Fetch that finds nothing says that it found one record."""
    return server.fetched(len(log), 1, b"")


@mutant(Specified.beyond_end)
def starts_over_beyond_the_end(server: Specified, log: bytes, _start: int, /) -> Reply:
    """A Fetch from beyond the end brings the log from its beginning."""
    return server.fetched(len(log), 0, log)


@mutant(Specified.beyond_end)
def catches_up_to_the_start(_server: Specified, _log: bytes, start: int, /) -> Reply:
    """CatchingUp carries the offset that was asked for."""
    return Reply(0x40, 0x12, struct.pack("<Q", start))


@mutant(Specified.beyond_end, only="deployed")
def refuses_beyond_the_end(_server: Specified, _log: bytes, _start: int, /) -> Reply:
    """A Fetch from beyond the end is an error, not CatchingUp."""
    raise Refused(0x51, "the offset is beyond the end")


@mutant(Specified.beyond_end)
def is_empty_at_0_beyond_the_end(server: Specified, _log: bytes, _start: int, /) -> Reply:
    """A Fetch from beyond the end brings nothing and goes on at 0."""
    return server.fetched(0, 0, b"")
