"""The golden rules of Produce: what is opened, stored, refused and answered."""

import gzip
import struct
from importlib import import_module
from typing import Any, NamedTuple

from lance_conformance.fluvio.golden.codec import (
    Cursor,
    Entry,
    Malformed,
    Packed,
    each,
    unpack_batch,
    unpack_entries,
    words,
)
from lance_conformance.fluvio.golden.objects import Objects, code, told
from lance_conformance.fluvio.golden.state import Partition, Refused
from lance_conformance.server.golden.codec import castagnoli


class Item(NamedTuple):
    """One entry of a request: batches for one partition."""

    partition: int
    batches: list[Packed]


class Asked(NamedTuple):
    """A Produce request."""

    isolation: int
    timeout: int
    topics: list[tuple[str, list[Item]]]


class EntryResult(NamedTuple):
    """What became of an entry."""

    partition: int
    outcome: bytes
    base: int


Lists = list[list[Entry]]


class Produce(Objects):
    """Rules about batches. Every public method is a hook."""

    # Reading -------------------------------------------------------------------------------------

    def speaks_of_modules(self, version: int, /) -> bool:
        """Whether a request ends in SmartModules."""
        return version >= 8

    def timeout_ok(self, timeout: int, /) -> bool:
        """A time to wait is not negative."""
        return timeout >= 0

    def produce_request(self, body: bytes, version: int, /) -> Asked:
        """A Produce request."""
        cursor = Cursor(body)
        cursor.maybe(cursor.words)
        isolation, timeout = cursor.take("h"), cursor.take("i")
        if not self.timeout_ok(timeout):
            raise Malformed(f"a timeout of {timeout}")
        topics = cursor.each(lambda: (cursor.words(), cursor.each(lambda: _item(cursor))))
        if self.speaks_of_modules(version) and cursor.take("i") > 0:
            raise Malformed("no SmartModules here")
        self.finished(cursor)
        return Asked(isolation, timeout, topics)

    # Opening -------------------------------------------------------------------------------------

    def crc_ok(self, batch: Packed, /) -> bool:
        """The checksum fits what it covers."""
        return batch.crc == castagnoli(batch.covered)

    def attributes_ok(self, attributes: int, /) -> bool:
        """Only the kind of compression may be set."""
        return attributes in range(5)

    def opened(self, kind: int, records: bytes, /) -> bytes:
        """The records, decompressed."""
        return _open(kind, records)

    def unpacked(self, batch: Packed, /) -> list[Entry]:
        """The records of a batch."""
        raw = self.opened(batch.attributes, batch.records)
        return unpack_entries(raw, batch.first_time)

    def count_fits(self, batch: Packed, entries: list[Entry], /) -> bool:
        """There are as many records as the header says."""
        return batch.last + 1 == len(entries)

    def bad_batch(self, reason: str, /) -> bytes:
        """The error for a batch that is none."""
        return told(reason)

    def entries(self, batch: Packed, /) -> list[Entry]:
        """What of a batch is stored."""
        if not self.attributes_ok(batch.attributes):
            raise Refused(self.bad_batch("attributes"))
        if not self.crc_ok(batch):
            raise Refused(self.bad_batch("checksum"))
        try:
            found = self.unpacked(batch)
        except Malformed as problem:
            raise Refused(self.bad_batch(str(problem))) from problem
        if not self.count_fits(batch, found):
            raise Refused(self.bad_batch("count"))
        return found

    # Storing -------------------------------------------------------------------------------------

    def missing_code(self) -> bytes:
        """The error for a partition that nobody has."""
        return code(6)

    def partition_of(self, topic: str, number: int, /) -> Partition:
        """The partition to write to."""
        found = self.memory.topics.get(topic)
        if found is None or number >= len(found.partitions):
            raise Refused(self.missing_code())
        return found.partitions[number]

    def waits(self, _isolation: int, /) -> bool:
        """Whether an answer is held back for other replicas: there are none to wait for."""
        return False

    def stored(self, partition: Partition, entries: list[Entry], /) -> None:
        """Keep a batch."""
        partition.batches.append((partition.end, entries))

    def stored_though_refused(self, _partition: Partition, _lists: Lists, /) -> None:
        """What of a refused entry ends up in the log: nothing."""

    def kept_batches(self, lists: Lists, /) -> Lists:
        """Every batch of an entry is kept."""
        return lists

    def told_base_offset(self, base: int, _entries: int, /) -> int:
        """The offset of the first record of an entry."""
        return base

    def append(self, topic: str, item: Item, /) -> EntryResult:
        """Store one entry, whole or not at all."""
        lists: Lists = []
        partition = None
        try:
            partition = self.partition_of(topic, item.partition)
            for batch in item.batches:
                lists.append(self.entries(batch))
            lists = self.kept_batches(lists)
        except Refused as refused:
            if partition is not None:
                self.stored_though_refused(partition, lists)
            return EntryResult(item.partition, refused.outcome, -1)
        base = partition.end
        for entries in lists:
            if entries:
                self.stored(partition, entries)
        return EntryResult(
            item.partition, code(0), self.told_base_offset(base, sum(map(len, lists)))
        )

    # Answering -----------------------------------------------------------------------------------

    def answered(self, answers: list[EntryResult], /) -> list[EntryResult]:
        """One answer for each entry, in order."""
        return answers

    def appended_topics(
        self, topics: list[tuple[str, list[EntryResult]]], /
    ) -> list[tuple[str, list[EntryResult]]]:
        """Every topic of the request, in order."""
        return topics

    def tells_time(self, version: int, /) -> bool:
        """Whether entries carry the time of appending."""
        return version >= 2

    def tells_start(self, version: int, /) -> bool:
        """Whether entries carry the lowest offset."""
        return version >= 5

    def tells_throttle(self, version: int, /) -> bool:
        """Whether the answer ends in a time of throttling."""
        return version >= 1

    def produced(self, answers: list[tuple[str, list[EntryResult]]], version: int, /) -> bytes:
        """The answer to Produce."""
        topics = each(
            words(name) + each(self._told(answer, version) for answer in self.answered(told_of))
            for name, told_of in self.appended_topics(answers)
        )
        return topics + (struct.pack(">i", 0) if self.tells_throttle(version) else b"")

    def _told(self, answer: EntryResult, version: int) -> bytes:
        data = struct.pack(">I", answer.partition) + answer.outcome + struct.pack(">q", answer.base)
        data += struct.pack(">q", -1) if self.tells_time(version) else b""
        return data + (struct.pack(">q", 0) if self.tells_start(version) else b"")

    def produce(self, body: bytes, version: int, /) -> bytes | None:
        """Serve a Produce request."""
        asked = self.produce_request(body, version)
        answers = [
            (name, [self.append(name, item) for item in items]) for name, items in asked.topics
        ]
        return None if self.waits(asked.isolation) else self.produced(answers, version)


def _item(cursor: Cursor) -> Item:
    number = cursor.take("I")
    batches = Cursor(cursor.octets(cursor.take("i")))
    found = []
    while not batches.spent:
        found.append(unpack_batch(batches))
    return Item(number, found)


def _open(kind: int, data: bytes) -> bytes:
    try:
        if kind == 1:
            return gzip.decompress(data)
        if kind == 3:
            return bytes(import_module("lz4.frame").decompress(data))
        return bytes(_cramjam(kind).decompress(data)) if kind in (2, 4) else data
    except Exception as problem:
        raise Malformed(str(problem)) from problem


def _cramjam(kind: int) -> Any:
    return getattr(import_module("cramjam"), "snappy" if kind == 2 else "zstd")
