"""A server whose offsets move is noticed, and the place is found again (AMB-29, AMB-31)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.events import Notice
from lance_sdk.errors import LogTruncated
from lance_spec.dialect import DEPLOYED
from lance_spec.records import encode_records

VALUES = [b"record %04d of the log" % number for number in range(400)]
SIZE = len(encode_records(VALUES[:1]))


def moved(rig: Any) -> list[str]:
    """Return what the consumer tells of offsets that moved."""
    return [
        event.message
        for event in rig.wire.events
        if isinstance(event, Notice) and event.kind == "moved"
    ]


def begun(new_consumer: Any, first: int, **options: Any) -> tuple[Any, Any]:
    """Return a consumer that has read the first so many records, and its log."""
    rig = new_consumer(dialects=(DEPLOYED,), speaks=DEPLOYED).build(**options)
    rig.wire.connect()
    log = rig.log(encode_records(VALUES[:first]), strict=False)
    found: list[bytes] = []
    for _ in range(50):
        log.serve()
        found += rig.drain()
        rig.wire.advance(0.06)
        if len(found) == first:
            break
    assert found == VALUES[:first]
    return rig, log


def rest(rig: Any, log: Any, turns: int = 300) -> list[bytes]:
    """Read on for a while."""
    found: list[bytes] = []
    for _ in range(turns):
        log.serve()
        found += rig.drain()
        if rig.fetcher.error is not None:
            break
        rig.wire.advance(0.06)
    return found


@given(gone=st.integers(1, 90), read=st.integers(91, 200))
def test_no_record_is_passed_over_or_repeated_where_retention_moves_offsets(
    new_consumer: Any, gone: int, read: int
) -> None:
    """Whatever is removed before the place, reading goes on after the last record."""
    rig, log = begun(new_consumer, read)
    log.data = encode_records(VALUES[gone:])
    assert rest(rig, log) == VALUES[read:]
    assert moved(rig)
    assert rig.fetcher.error is None


def test_records_that_were_not_read_and_are_gone_are_an_error(new_consumer: Any) -> None:
    """Both offsets are named, and nothing is passed over in silence."""
    rig, log = begun(new_consumer, 100)
    log.data = encode_records(VALUES[150:])
    assert rest(rig, log) == []
    assert isinstance(rig.fetcher.error, LogTruncated)
    assert f"offset {100 * SIZE}" in str(rig.fetcher.error)
    assert "nowhere in the log" in str(rig.fetcher.error)


def test_the_end_is_gone_on_from_where_that_was_asked_for(new_consumer: Any) -> None:
    """With on_truncation="reset", and a notice."""
    rig, log = begun(new_consumer, 100, reset=True)
    log.data = encode_records(VALUES[150:200])
    assert rest(rig, log, 50) == []
    log.data += encode_records(VALUES[200:])
    assert rest(rig, log) == VALUES[200:]


def test_a_log_that_only_grows_is_read_as_ever(new_consumer: Any) -> None:
    """The bytes that are read once more are no records for the application."""
    rig, log = begun(new_consumer, 10)
    for upto in (11, 50, 400):
        log.data = encode_records(VALUES[:upto])
        assert len(rest(rig, log, 60)) == upto - {11: 10, 50: 11, 400: 50}[upto]
    assert not moved(rig)


def test_a_stable_server_is_not_asked_twice_for_anything(new_consumer: Any) -> None:
    """Offsets of a server of dialect specified name the same byte for ever (AMB-29)."""
    rig = new_consumer().build()
    rig.wire.connect()
    log = rig.log(encode_records(VALUES[:10]))
    log.serve()
    rig.drain()
    rig.wire.advance(0.06)
    assert rig.data_fetch().start_offset == 10 * SIZE


@pytest.mark.parametrize("size", [1, 5, 100, 5000])
def test_small_answers_bring_everything(new_consumer: Any, size: int) -> None:
    """Also smaller ones than what is read once more."""
    rig, log = begun(new_consumer, 3)
    log.data = encode_records(VALUES[:6])
    found: list[bytes] = []
    for _ in range(600):
        log.serve(size)
        found += rig.drain()
        rig.wire.advance(0.06)
    assert found == VALUES[3:6]
