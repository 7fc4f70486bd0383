"""The records before a position are compared before reading goes on (AMB-30, AMB-31)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.consume.fetch_response import DecodedFetch
from lance_sdk._protocol.consume.truncation_check import CheckResult, TruncationCheck
from lance_sdk._protocol.events import Notice
from lance_sdk.errors import LogTruncated
from lance_sdk.offsets.contract import Fingerprint
from lance_spec.enums import ErrorCode
from lance_spec.records import encode_record, encode_records

RECORDS = encode_records([b"one", b"two", b"three"])
PRINT = Fingerprint.of(RECORDS, 100)
assert PRINT is not None


def answer(data: bytes, next_offset: int) -> DecodedFetch:
    """Return an answer to a Fetch."""
    return DecodedFetch(next_offset, memoryview(data))


@given(st.lists(st.integers(1, 12), max_size=30))
def test_any_cut_comes_to_the_same_verdict(cuts: list[int]) -> None:
    """However the server cuts its answers (AMB-19)."""
    check, verdict = TruncationCheck(PRINT), CheckResult.OPEN
    for cut in [*cuts, len(RECORDS)]:
        if not check.missing:
            break
        done = check.next_fetch - PRINT.start
        piece = RECORDS[done : done + min(cut, check.missing)]
        verdict = check.judge(answer(piece, check.next_fetch + len(piece)))
    assert verdict is CheckResult.SAME


@given(st.integers(0, len(RECORDS) - 1))
def test_one_other_byte_is_noticed(place: int) -> None:
    """Wherever it stands."""
    other = bytearray(RECORDS)
    other[place] ^= 1
    assert TruncationCheck(PRINT).judge(answer(bytes(other), PRINT.end)) is CheckResult.OTHER


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (answer(b"", PRINT.start), CheckResult.SHORT),
        (DecodedFetch(3, memoryview(b""), catching_up=True), CheckResult.SHORT),
        (answer(b"", PRINT.start + 50), CheckResult.GONE),
        (answer(RECORDS[:4], PRINT.start + 4), CheckResult.OPEN),
    ],
)
def test_what_is_not_there_is_told_apart(found: DecodedFetch, verdict: CheckResult) -> None:
    """A log that ends before, a gap, and a cut answer."""
    assert TruncationCheck(PRINT).judge(found) is verdict


def test_a_fingerprint_of_more_than_was_ever_read_is_no_proof() -> None:
    """A stored number cannot make the consumer hold a whole log in memory."""
    check = TruncationCheck(Fingerprint(0, 2**60, "00"))
    assert check.judge(answer(RECORDS, len(RECORDS))) is CheckResult.OTHER


def resumed(consumer: Any, **options: Any) -> Any:
    """Return a consumer that begins after the fingerprinted records."""
    rig = consumer.build(held=True, **options)
    rig.fetcher.begin(len(RECORDS), Fingerprint.of(RECORDS, len(RECORDS)), rig.clock.now)
    rig.wire.connect()
    return rig


def test_the_same_records_are_no_obstacle(consumer: Any) -> None:
    """They are not handed out again."""
    rig = resumed(consumer, stop_at_end=True)
    assert rig.log(RECORDS + encode_record(b"next")).consume() == [b"next"]


def test_other_records_end_the_stream(consumer: Any) -> None:
    """Before a single record is handed out."""
    rig = resumed(consumer, stop_at_end=True)
    log = rig.log(RECORDS[::-1] + encode_record(b"next"))
    log.serve()
    assert isinstance(rig.fetcher.error, LogTruncated)
    assert rig.drain() == []


def test_other_records_move_the_place_on_request(consumer: Any) -> None:
    """To the end of the log, loudly."""
    rig = resumed(consumer, reset=True)
    log = rig.log(RECORDS[::-1] + encode_record(b"old"))
    log.serve()
    log.serve()
    assert rig.fetcher.offset == len(log.data)
    assert [event.kind for event in rig.wire.events if isinstance(event, Notice)] == ["truncated"]


def test_records_that_retention_removed_prove_nothing(consumer: Any) -> None:
    """The topic's identity alone decides (AMB-30)."""
    rig = resumed(consumer, stop_at_end=True)
    rig.wire.take_all = rig.fetches()
    rig.wire.error(ErrorCode.INVALID_OFFSET, "gone", earliest=len(RECORDS))
    assert rig.log(RECORDS + encode_record(b"next")).consume() == [b"next"]


def test_a_log_that_ends_before_is_waited_for_and_then_given_up(consumer: Any) -> None:
    """As with any place beyond the end (AMB-31)."""
    rig = resumed(consumer)
    log = rig.log(RECORDS[:8])
    for _ in range(30):
        log.serve()
        rig.wire.advance(1.0)
    assert isinstance(rig.fetcher.error, LogTruncated)


def test_every_reconnect_compares(consumer: Any) -> None:
    """From the start of the last batch, at most 64 KiB."""
    rig = consumer.build()
    rig.wire.connect()
    log = rig.log(RECORDS)
    for _ in range(3):
        log.serve()
    assert rig.drain() == [b"one", b"two", b"three"]
    rig.wire.cut()
    rig.wire.advance(1.0)
    rig.wire.connect()
    (fetch,) = rig.fetches()
    assert (fetch.start_offset, fetch.max_bytes) == (0, len(RECORDS))
