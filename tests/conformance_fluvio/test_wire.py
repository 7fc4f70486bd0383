"""The profile's codec: against the published vectors, the golden servers' codec and itself."""

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_conformance.engine.expectations import Violation
from lance_conformance.fluvio.golden import codec
from lance_conformance.fluvio.golden.server import Rules
from lance_conformance.fluvio.peer import Frames, Response
from lance_conformance.fluvio.wire import calls, responses
from lance_conformance.fluvio.wire.compression import Compression
from lance_conformance.fluvio.wire.objects import ObjectKind
from lance_conformance.fluvio.wire.primitives import Reader, UnreadableError, varint
from lance_conformance.fluvio.wire.records import (
    NOW_MS,
    Record,
    StoredRecord,
    batch,
    read_batches,
    with_schema,
    with_wrong_crc,
)

VECTORS = Path(__file__).parents[2] / "vectors"
Read = Callable[[Reader], object]


def _readers(version: int) -> dict[str, Read]:
    watched = {
        f"Watch{kind.title()}Response": partial(responses.read_watched, kind=kind, version=version)
        for kind in ObjectKind
    }
    listed = {
        f"List{kind.title()}Response": partial(responses.read_listed, kind=kind, version=version)
        for kind in ObjectKind
    }
    return {
        **watched,
        **listed,
        "ApiVersionsResponse": responses.read_versions,
        "ProduceResponse": partial(responses.read_produced, version=version),
        "FetchOffsetsResponse": responses.read_offsets,
        "StreamFetchResponse": partial(responses.read_piece, version=version),
        "UpdateOffsetsResponse": responses.read_stream_outcomes,
        "FetchConsumerOffsetsResponse": responses.read_consumer_offsets,
        "UpdateConsumerOffsetResponse": responses.read_committed,
        "DeleteConsumerOffsetResponse": responses.read_forgotten,
        "Status": responses.read_status,
    }


def _tests(file: str, **wanted: object) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    groups = json.loads((VECTORS / file).read_text(encoding="utf-8"))["testGroups"]
    for group in groups:
        if all(group.get(name) == value for name, value in wanted.items()):
            for test in group["tests"]:
                yield group, test


def _answer(message: str, test: dict[str, Any]) -> object:
    """Read the bytes of one answer as the kit reads them from a connection."""
    frames = Frames()
    frames.feed(bytes.fromhex(test["bytes"]))
    response = frames.next()
    if not isinstance(response, Response) or frames.pending:
        raise UnreadableError("frame", str(response))
    reader = Reader(response.body)
    found = _readers(test["version"])[message](reader)
    reader.end()
    return found


def _whole(answer: object) -> None:
    """Refuse a piece of a stream whose last batch is cut, as the strict layout does."""
    if isinstance(answer, responses.StreamPiece) and answer.cut:
        raise UnreadableError("records", "a batch is cut")


def test_a_cut_batch_is_passed_over() -> None:
    """What published servers cut at max_bytes is no batch, and tells how large it is."""
    data = Rules().batch(0, [codec.Entry(None, b"value", 0)])
    for place in range(1, len(data)):
        ((_, *more), cut) = read_batches(Reader(data + data[:place]))
        assert not more
        assert cut == (len(data) if place >= 12 else 12)


def test_answers_of_the_vectors_are_read_and_broken_ones_are_not() -> None:
    """Every valid answer is read; none that is cut, has bytes after it or a wrong length is."""
    seen = 0
    for group, test in _tests("fluvio_exchange.json", side="answer"):
        message = group["message"].replace("StreamFetchPiece", "StreamFetchResponse")
        if test["result"] == "valid":
            _answer(message, test)
        else:
            with pytest.raises(UnreadableError):
                _whole(_answer(message, test))
        seen += 1
    assert seen > 100


def test_requests_are_those_of_the_vectors() -> None:
    """What the kit sends is, byte for byte, what the vectors call a valid request."""
    valid = {
        test["bytes"][:16] + test["bytes"][24:]  # whatever the correlation id
        for _, test in _tests("fluvio_exchange.json", side="request")
        if test["result"] == "valid"
    }
    sent: list[calls.Call[Any]] = [
        calls.fetch_offsets([("hello", [0])]),
        calls.stream_fetch("hello"),
        calls.produce([("hello", [])]),
        calls.update_offsets((1, 1)),
    ]
    for call in sent:
        data = call.frame(1).hex()
        assert data[:16] + data[24:] in valid, call


@pytest.mark.parametrize("kind", Compression)
def test_records_of_the_vectors_are_read_by_kit_and_golden_servers(kind: Compression) -> None:
    """Two codecs that know nothing of each other agree with the vectors on every record set."""
    for _, test in _tests("fluvio_records.json", attributes=int(kind)):
        raw = bytes.fromhex(test["bytes"])
        valid = test["result"] == "valid"
        wanted = [_record(each) for each in test.get("fields", {}).get("records", [])]
        assert _read_by_the_kit(raw, kind) == (wanted if valid else None), test["id"]
        assert _read_by_the_golden(raw, kind) == (wanted if valid else None), test["id"]


def _record(row: dict[str, Any]) -> Record:
    key = None if row["key"] is None else bytes.fromhex(row["key"])
    return Record(bytes.fromhex(row["value"]), key, NOW_MS + int(row["timestamp_delta"]))


def _read_by_the_kit(raw: bytes, kind: Compression) -> list[Record] | None:
    head = batch([Record(b"")])[:57]
    covered = head[21:57]
    data = head[:8] + (45 + len(raw)).to_bytes(4, "big") + head[12:21]
    data += int(kind).to_bytes(2, "big") + covered[2:] + raw
    try:
        ((found,), _) = read_batches(Reader(data))
    except UnreadableError:
        return None
    return [each.record for each in found.records]


def _read_by_the_golden(raw: bytes, kind: Compression) -> list[Record] | None:
    try:
        entries = codec.unpack_entries(Rules().opened(kind, raw), NOW_MS)
    except codec.Malformed:
        return None
    return [Record(each.value, each.key, each.time) for each in entries]


RECORDS = st.lists(
    st.builds(
        Record,
        st.binary(max_size=40),
        st.none() | st.binary(max_size=20),
        st.integers(NOW_MS - 2**30, NOW_MS + 2**30),
    ),
    min_size=1,
    max_size=8,
)


@given(RECORDS, st.sampled_from(Compression))
def test_golden_servers_read_what_the_kit_writes(records: list[Record], kind: Compression) -> None:
    """Batches of the kit are read by a codec that was written without a look at it."""
    found = Rules().entries(codec.unpack_batch(codec.Cursor(batch(records, kind))))
    assert [Record(each.value, each.key, each.time) for each in found] == records


@given(RECORDS, st.integers(0, 2**40))
def test_the_kit_reads_what_golden_servers_write(records: list[Record], base: int) -> None:
    """Batches of the golden servers are read by the kit, checksum and header right."""
    entries = [codec.Entry(each.key, each.value, each.time) for each in records]
    ((found,), _) = read_batches(Reader(Rules().batch(base, entries)))
    assert found.crc_right
    assert found.last_offset_delta == len(records) - 1
    assert found.max_time == max(each.time for each in records)
    assert found.records == tuple(
        StoredRecord(base + n, record) for n, record in enumerate(records)
    )


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_records_come_back(number: int) -> None:
    """In both codecs, which write the same bytes."""
    assert varint(number) == codec.zigzag(number)
    assert Reader(varint(number)).varint("number") == number
    assert codec.Cursor(varint(number)).zigzag() == number


@given(st.binary(max_size=200), st.sampled_from(sorted(_readers(24))), st.integers(0, 25))
def test_noise_is_unreadable_and_nothing_else(noise: bytes, message: str, version: int) -> None:
    """Whatever bytes a server sends, reading them ends, with an answer or with that one error."""
    reader = Reader(noise)
    with contextlib.suppress(UnreadableError):  # any other exception fails the test
        _readers(version)[message](reader)
        assert reader.left <= len(noise)


def test_faults_are_one_each() -> None:
    """The wrong checksum differs in a bit; a schema changes attributes, length and checksum."""
    good = batch([Record(b"value")])
    wrong = with_wrong_crc(good)
    assert sum((a ^ b).bit_count() for a, b in zip(good, wrong, strict=True)) == 1
    schema = with_schema(good)
    assert len(schema) == len(good) + 4
    assert schema[23:57] == good[23:57]
    ((found,), _) = read_batches(Reader(wrong))
    assert not found.crc_right


def test_an_unknown_error_code_is_unreadable() -> None:
    """Published clients lose the whole response, so the kit names the code."""
    with pytest.raises(UnreadableError, match="no published client knows the error 9999"):
        responses.read_forgotten(Reader((9999).to_bytes(2, "big")))


@pytest.mark.parametrize("length", [-1, 3, 2**31 - 1])
def test_a_frame_of_an_impossible_length_is_a_violation(length: int) -> None:
    """No memory is set aside for it, and nothing is waited for."""
    frames = Frames()
    frames.feed(length.to_bytes(4, "big", signed=True))
    assert isinstance(frames.next(), Violation)
