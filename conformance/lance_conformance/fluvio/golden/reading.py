"""The golden rules of reading: offsets, streams, and what consumers have them store."""

import struct

from lance_conformance.fluvio.golden.codec import (
    Cursor,
    Entry,
    Malformed,
    behind_length,
    each,
    maybe,
    pack_batch,
    pack_entry,
    words,
)
from lance_conformance.fluvio.golden.objects import code
from lance_conformance.fluvio.golden.produce import Produce
from lance_conformance.fluvio.golden.state import Connection, Partition, Refused, Stream

Commit = tuple[str, str, int, int]
"""Consumer, topic, partition, offset."""


class ReadingRules(Produce):
    """Rules about what is read. Every public method is a hook."""

    # Offsets -------------------------------------------------------------------------------------

    def speaks_of_consumer(self, version: int, /) -> bool:
        """Whether FetchOffsets ends in a consumer."""
        return version == 23

    def told_end(self, partition: Partition, /) -> int:
        """The offset after the last record."""
        return partition.end

    def told_start(self, _partition: Partition, /) -> int:
        """The lowest offset."""
        return 0

    def offsets_missing(self) -> bytes:
        """The error for a partition that is not there."""
        return code(3001)

    def offsets_of(self, topic: str, number: int, /) -> bytes:
        """Where a partition begins and ends, after the error."""
        try:
            part = self.partition_of(topic, number)
        except Refused:
            return self.offsets_missing() + struct.pack(">Iqq", number, -1, -1)
        return code(0) + struct.pack(">Iqq", number, self.told_start(part), self.told_end(part))

    def asked_offsets(self, numbers: list[int], /) -> list[int]:
        """Every partition that was asked about, in order."""
        return numbers

    def fetch_offsets(self, body: bytes, version: int, /) -> bytes:
        """The answer to FetchOffsets."""
        cursor = Cursor(body)
        topics = cursor.each(lambda: (cursor.words(), cursor.each(lambda: cursor.take("I"))))
        if self.speaks_of_consumer(version):
            cursor.maybe(cursor.words)
        self.finished(cursor)
        return each(
            words(name) + each(self.offsets_of(name, n) for n in self.asked_offsets(numbers))
            for name, numbers in topics
        )

    # Streams -------------------------------------------------------------------------------------

    def names_consumer(self, version: int, /) -> bool:
        """Whether StreamFetch ends in a consumer."""
        return version >= 23

    def isolation_ok(self, isolation: int, /) -> bool:
        """The two there are."""
        return isolation in (0, 1)

    def stream_number(self) -> int:
        """An id that no other stream has."""
        return self.memory.streams

    def opened_stream(self, body: bytes, correlation: int, version: int, /) -> Stream:
        """The stream that a StreamFetch opens."""
        cursor = Cursor(body)
        topic, number, wanted = cursor.words(), cursor.take("I"), cursor.take("q")
        max_bytes, isolation = cursor.take("i"), cursor.take("B")
        if cursor.take("i") or not self.isolation_ok(isolation):
            raise Malformed("no such stream")
        consumer = cursor.maybe(cursor.words) if self.names_consumer(version) else None
        self.finished(cursor)
        self.memory.streams += 1
        return Stream(
            self.stream_number(), correlation, version, topic, number, wanted, max_bytes,
            isolation, consumer,
        )  # fmt: skip

    def range_error(self) -> bytes:
        """The error for an offset that is not there."""
        return code(1)

    def range_ok(self, wanted: int, end: int, /) -> bool:
        """Any offset that there is, or the one to come."""
        return 0 <= wanted <= end

    def may_send(self, stream: Stream, /) -> bool:
        """Whether a stream may go on: what it sent was acknowledged."""
        return not stream.waiting

    def visible(self, partition: Partition, _isolation: int, /) -> int:
        """The end of what a stream shows."""
        return partition.end

    def pieces(self, stream: Stream, partition: Partition, /) -> list[tuple[int, list[Entry]]]:
        """Whole batches from the wanted offset on, as many as fit and at least one."""
        found: list[tuple[int, list[Entry]]] = []
        size = 0
        for base, entries in partition.batches:
            if base + len(entries) <= stream.wanted:
                continue
            size += len(self.batch(base, entries))
            if found and size > self.room(stream):
                break
            found.append((base, entries))
        return found

    def room(self, stream: Stream, /) -> int:
        """Most bytes in a piece."""
        return stream.max_bytes

    def read_from(self, stream: Stream, /) -> Partition:
        """The partition of a stream, which has the wanted offset now or next."""
        part = self.partition_of(stream.topic, stream.partition)
        if not self.range_ok(stream.wanted, part.end):
            raise Refused(self.range_error())
        return part

    def pushed_piece(self, stream: Stream, /) -> bytes | None:
        """What a stream sends now, if anything."""
        try:
            part = self.read_from(stream)
        except Refused as refused:
            stream.ended = True
            return self.piece(stream, refused.outcome, (-1, -1), b"")
        if stream.wanted >= self.visible(part, stream.isolation) or not self.may_send(stream):
            return None
        found = self.pieces(stream, part)
        if not found:
            return None
        stream.waiting = True
        stream.wanted = found[-1][0] + len(found[-1][1])
        data = b"".join(self.batch(base, entries) for base, entries in found)
        return self.piece(stream, code(0), (self.watermark(part), 0), data)

    def watermark(self, partition: Partition, /) -> int:
        """The end of what can be read."""
        return partition.end

    def shown(self, entries: list[Entry], /) -> list[Entry]:
        """Records as they were stored."""
        return entries

    def crc_fault(self) -> int:
        """Bits in which a served checksum is wrong."""
        return 0

    def last_delta(self, count: int, /) -> int:
        """What the header of a batch says of the number of its records."""
        return count - 1

    def highest(self, entries: list[Entry], /) -> int:
        """What the header of a batch says of the times of its records."""
        return max(entry.time for entry in entries)

    def numbered(self, place: int, /) -> int:
        """The place of a record in its batch."""
        return place

    def batch(self, base: int, entries: list[Entry], /) -> bytes:
        """A batch as it is served."""
        found = self.shown(entries)
        first = found[0].time
        records = [pack_entry(e, self.numbered(n), first) for n, e in enumerate(found)]
        times = first, self.highest(found)
        last = self.last_delta(len(found))
        return pack_batch(base, last, times, each(records), self.crc_fault())

    def told_topic(self, stream: Stream, /) -> str:
        """The topic that a piece names."""
        return stream.topic

    def told_partition(self, stream: Stream, /) -> int:
        """The partition that a piece names."""
        return stream.partition

    def tells_filter(self, version: int, /) -> bool:
        """Whether a piece says where a SmartModule goes on."""
        return version >= 11

    def piece(self, stream: Stream, outcome: bytes, ends: tuple[int, int], data: bytes, /) -> bytes:
        """A piece of a stream."""
        head = words(self.told_topic(stream))
        head += struct.pack(">II", stream.number, self.told_partition(stream)) + outcome
        head += struct.pack(">q", ends[0])
        head += struct.pack(">q", -1) if self.tells_filter(stream.version) else b""
        return head + struct.pack(">q", ends[1]) + maybe(None) + behind_length(data)

    # Acknowledging -------------------------------------------------------------------------------

    def no_stream(self) -> bytes:
        """The error for a stream that is not there."""
        return code(3002)

    def acknowledged(self, stream: Stream, offset: int, /) -> None:
        """Let a stream go on from an offset."""
        stream.waiting = False
        stream.wanted = offset

    def told_stream(self, number: int, /) -> int:
        """The stream that an answer is about."""
        return number

    def update_offsets(self, connection: Connection, body: bytes, /) -> bytes:
        """The answer to UpdateOffsets."""
        cursor = Cursor(body)
        told = []
        for offset, number in cursor.each(lambda: (cursor.take("q"), cursor.take("I"))):
            stream = connection.streams.get(number)
            outcome = self.no_stream() if stream is None else code(0)
            if stream is not None:
                self.acknowledged(stream, offset)
            told.append(struct.pack(">I", self.told_stream(number)) + outcome)
        return each(told)

    # Consumer offsets ----------------------------------------------------------------------------

    def nameless(self) -> bytes:
        """The error for a stream whose consumer has no name."""
        return code(3004)

    def committed(self, partition: Partition, consumer: str, offset: int, /) -> None:
        """Keep what a consumer has read."""
        partition.commits[consumer] = offset

    def commit_outcome(self, stream: Stream | None, offset: int, /) -> bytes:
        """Whether an offset was stored."""
        if stream is None:
            return self.no_stream()
        if not stream.consumer:
            return self.nameless()
        self.committed(self.partition_of(stream.topic, stream.partition), stream.consumer, offset)
        return code(0)

    def update_consumer(self, connection: Connection, body: bytes, /) -> bytes:
        """The answer to UpdateConsumerOffset."""
        cursor = Cursor(body)
        offset, number = cursor.take("q"), cursor.take("I")
        outcome = self.commit_outcome(connection.streams.get(number), offset)
        return struct.pack(">q", offset) + outcome

    def forgotten(self, partition: Partition, consumer: str, /) -> None:
        """Forget what a consumer has read."""
        partition.commits.pop(consumer, None)

    def delete_consumer(self, body: bytes, /) -> bytes:
        """The answer to DeleteConsumerOffset."""
        cursor = Cursor(body)
        topic, number, consumer = cursor.words(), cursor.take("I"), cursor.words()
        try:
            self.forgotten(self.partition_of(topic, number), consumer)
        except Refused as refused:
            return refused.outcome
        return code(0)

    def speaks_of_filter(self, version: int, /) -> bool:
        """Whether FetchConsumerOffsets says which are wanted."""
        return version >= 24

    def wanted_replica(self, commit: Commit, replica: tuple[str, int] | None, /) -> bool:
        """Whether an offset is of the partition that is wanted."""
        return replica is None or replica == commit[1:3]

    def wanted_consumer(self, commit: Commit, consumer: str | None, /) -> bool:
        """Whether an offset is of the consumer that is wanted."""
        return consumer is None or consumer == commit[0]

    def told_commit(self, commit: Commit, /) -> bytes:
        """A stored offset."""
        consumer, topic, number, offset = commit
        return words(consumer) + words(topic) + struct.pack(">IqQ", number, offset, 1_706_918_400)

    def fetch_consumers(self, body: bytes, version: int, /) -> bytes:
        """The answer to FetchConsumerOffsets."""
        cursor = Cursor(body)
        replica, consumer = None, None
        if self.speaks_of_filter(version) and cursor.take("B"):
            replica = cursor.maybe(lambda: (cursor.words(), cursor.take("I")))
            consumer = cursor.maybe(cursor.words)
        self.finished(cursor)
        commits = [
            (name, topic.name, number, offset)
            for topic in self.memory.topics.values()
            for number, part in enumerate(topic.partitions)
            for name, offset in part.commits.items()
        ]
        return code(0) + each(
            self.told_commit(commit)
            for commit in commits
            if self.wanted_replica(commit, replica) and self.wanted_consumer(commit, consumer)
        )
