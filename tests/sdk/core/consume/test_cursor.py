"""Where the application is: nothing is committed ahead of it, nothing is skipped."""

import gc
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._api.consumer_position import ConsumerPosition
from lance_sdk.offsets.contract import Fingerprint
from lance_sdk.types import RecordBatch
from lance_spec.records import encode_records, scan_records

VALUES = [b"%03d" % number + bytes(number % 40) for number in range(60)]
LOG = encode_records(VALUES)


@dataclass
class SessionHandler:
    """Takes records from a log in batches, as a client hands them out."""

    sizes: list[int]

    def __post_init__(self) -> None:
        self.cursor = ConsumerPosition(commits=True)
        self.fetched = 0
        self.returned: list[RecordBatch] = []
        self.seen: list[bytes] = []

    def fetch(self) -> RecordBatch | None:
        """Return the next batch of the log, or what was given back."""
        if self.returned:
            return self.returned.pop()
        if not self.sizes or self.fetched >= len(LOG):
            return None
        count = self.sizes.pop(0)
        begin, end = self.fetched, self.fetched
        for _ in range(count):
            if end < len(LOG):
                end += 5 + int.from_bytes(LOG[end + 1 : end + 5], "little")
        self.fetched = end
        data = LOG[begin:end]
        return RecordBatch("t", begin, scan_records(data).count, data)

    def one(self) -> None:
        """Take one record, as iteration does."""
        record = next(self.cursor.records, None)
        if record is None:
            self.cursor.finish()
            if (batch := self.fetch()) is None:
                return
            self.cursor.load(batch)
            record = next(self.cursor.records)
        self.cursor.last = record
        self.seen.append(record.value)

    def batch(self) -> None:
        """Take a batch, as poll does."""
        batch = self.cursor.rest()
        if batch is None:
            self.cursor.finish()
            batch = self.fetch()
        if batch is not None:
            self.seen += [record.value for record in self.cursor.skip(batch, batch)]

    def pause(self) -> None:
        """Give the rest of a batch back, as a pause does."""
        if (rest := self.cursor.give_back()) is not None:
            self.returned.append(rest)


STEPS = st.lists(st.sampled_from(["one", "one", "one", "batch", "pause"]), max_size=40)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), STEPS)
def test_every_record_is_handed_out_once_and_in_order(sizes: list[int], steps: list[str]) -> None:
    """However records, batches and pauses are mixed; the position is behind what was seen."""
    application = SessionHandler(sizes)
    for step in steps:
        getattr(application, step)()
        seen = application.seen
        assert seen == VALUES[: len(seen)]
        if seen:
            assert application.cursor.position == len(encode_records(seen))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), STEPS)
def test_what_is_unfinished_is_never_ahead(sizes: list[int], steps: list[str]) -> None:
    """It is a record's boundary, and not after the last thing that was finished."""
    application = SessionHandler(sizes)
    before = 0
    for step in steps:
        getattr(application, step)()
        unfinished, position = application.cursor.unfinished, application.cursor.position
        if unfinished is None or position is None:
            continue
        assert before <= unfinished <= position
        assert scan_records(LOG[:unfinished]).fault is None
        before = unfinished


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), STEPS)
def test_evidence_is_whole_records_that_end_at_the_offset(
    sizes: list[int], steps: list[str]
) -> None:
    """So a commit can be recognised in the log (AMB-30)."""
    application = SessionHandler(sizes)
    for step in steps:
        getattr(application, step)()
        position = application.cursor.position
        if position:
            records = bytes(application.cursor.records_before(position))
            assert records
            assert LOG[position - len(records) : position] == records
            assert scan_records(records).fault is None


def test_evidence_stays_small_however_large_the_batch() -> None:
    """Committing after every record costs no walk through the batch."""
    data = encode_records([bytes(995)] * 1000)
    cursor = ConsumerPosition(commits=True)
    cursor.load(RecordBatch("t", 0, 1000, data))
    walked = 0
    for record in cursor.records:
        cursor.last = record
        records = cursor.records_before(record.next_offset)
        walked += len(records) > 70_000
        assert Fingerprint.of(records, record.next_offset) is not None
    assert walked == 0


def test_without_commits_what_was_taken_up_is_let_go() -> None:
    """Nobody will ask for a fingerprint, so only the application may keep a batch."""
    data = encode_records([bytes(995)] * 1000)
    cursor = ConsumerPosition(commits=False)
    for offset in (0, len(data)):
        cursor.skip(RecordBatch("t", offset, 1000, data), None)
    assert gc.get_referrers(data) == []
    assert cursor.position == 2 * len(data)
