"""Finding records by their numbers, in segments that grow, are closed and were there before."""

import random

import pytest

from lance_server.log.log_manager import LogOptions
from lance_server.log.partition import Partition
from lance_server.log.reading.record_index import BatchLocation, RecordIndex
from lance_server.testing.log import LogDriver
from lance_server.testing.storage import MemoryStorage


class Counted:
    """A log whose batches are known.

    Args:
        segment_size: bytes after which a segment is closed.
    """

    def __init__(self, segment_size: int) -> None:
        self.storage = MemoryStorage()
        self.options = LogOptions(segment_size=segment_size)
        self.places: list[BatchLocation] = []
        self.records = 0
        self.open()

    def open(self) -> None:
        """Open the log, again if need be."""
        self.log = LogDriver(self.storage, options=self.options)
        self.record_index = RecordIndex(self.log.engine.storage, self.log.engine.scheduler)

    @property
    def partition(self) -> Partition:
        """The log of the default topic."""
        return self.log.engine.topic(0).partition

    def store(self, count: int) -> None:
        """Store a batch."""
        offset = self.log.store([b"x" * 10] * count)
        self.places.append(BatchLocation(offset, self.records))
        self.records += count

    def find(self, number: int) -> BatchLocation:
        """Return where a record's batch begins."""
        outcome = self.record_index.find(self.partition, number)
        self.log.scheduler.run_all()
        return outcome.result()

    def number_at(self, offset: int) -> int:
        """Return the number at a batch's beginning."""
        outcome = self.record_index.number_at(self.partition, offset)
        self.log.scheduler.run_all()
        return outcome.result()

    def holds(self) -> None:
        """Check every record and every batch."""
        for number in range(self.records):
            expected = max(place for place in self.places if place.record <= number)
            assert self.find(number) == expected, number
        for place in self.places:
            assert self.number_at(place.offset) == place.record
        end = BatchLocation(self.partition.end_offset, self.records)
        assert self.find(self.records) == self.find(self.records + 5) == end
        assert self.number_at(end.offset) == self.records


@pytest.mark.parametrize("segment_size", [100, 1000, 1_000_000])
def test_every_record_is_found(segment_size: int) -> None:
    """While segments are written, after they are closed, and after a start."""
    counted = Counted(segment_size)
    chance = random.Random(segment_size)
    counted.holds()
    for _ in range(4):
        for _ in range(8):
            counted.store(chance.randint(1, 9))
        counted.holds()
    closing = counted.log.engine.close()
    counted.log.scheduler.run_all()
    closing.result()
    counted.open()
    counted.holds()
    counted.store(3)
    counted.holds()


def test_few_sums_are_kept() -> None:
    """Memory does not grow with the log: what was asked for longest ago is forgotten."""
    counted = Counted(100)
    for _ in range(40):
        counted.store(2)
    counted.record_index = RecordIndex(
        counted.log.engine.storage, counted.log.engine.scheduler, max_batches=10
    )
    counted.holds()
    assert sum(len(each.starts) for each in counted.record_index._known.values()) <= 10


def test_a_batch_knows_its_number_once_it_is_stored() -> None:
    """Several batches of one flush are numbered in their order."""
    counted = Counted(1_000_000)
    counted.store(5)
    numbers = []
    for count in (2, 3, 4):
        counted.log.append([b"x"] * count, batch_id=count + 10)
        numbers.append(counted.partition.number_of_last())
    counted.log.scheduler.run_all()
    assert [each() for each in numbers] == [5, 7, 10]
