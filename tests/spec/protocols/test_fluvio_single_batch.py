"""The quick reading of a Produce request with one batch, held against the grammar's."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_spec.fluvio.batches import FluvioRecord, pack_batches
from lance_spec.fluvio.single_batch import SingleBatch, appended, single_batch
from lance_spec.messages.fluvio import (
    Batch,
    ErrorCode,
    Outcome,
    PartitionAppended,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    RecordSet,
    Request,
    TopicAppended,
)

_VERSIONS = range(8, 26)
_COUNT = 4


def _batch(*values: bytes) -> Batch:
    return next(pack_batches([FluvioRecord(each, b"k", 1_700_000_000_000) for each in values]))


def _asked(batches: list[Batch], **changes: object) -> ProduceRequest:
    entry = ProducePartition(partition=3, records=RecordSet(batches=batches))
    request = ProduceRequest(
        transactional_id=None,
        isolation=1,
        timeout_ms=1500,
        topics=[ProduceTopic(name="örders", partitions=[entry])],
    )
    return replace(request, **changes)  # type: ignore[arg-type]  # names and types are the fields'


def _frame(asked: ProduceRequest, version: int = 25, key: int = 0) -> bytes:
    return Request(
        api_key=key,
        api_version=version,
        correlation_id=-7,
        client_id="fluvio",
        body=asked.encode(version),
    ).encode()


def _by_the_grammar(frame: bytes) -> SingleBatch:
    request = Request.decode(frame)
    asked = ProduceRequest.decode(request.body, request.api_version)
    (topic,) = asked.topics
    (part,) = topic.partitions
    (batch,) = part.records.batches
    assert (request.api_key, asked.smartmodules, asked.transactional_id) == (0, [], None)
    assert batch.attributes == 0
    assert batch.crc_ok()
    return SingleBatch(
        correlation_id=request.correlation_id,
        version=request.api_version,
        isolation=asked.isolation,
        timeout_ms=asked.timeout_ms,
        topic=topic.name,
        partition=part.partition,
        first_timestamp=batch.first_timestamp,
        record_count=batch.last_offset_delta + 1,
        records=batch.records,
    )


@pytest.mark.parametrize("version", _VERSIONS)
def test_it_reads_what_the_grammar_reads(version: int) -> None:
    """In every version that a list of SmartModules ends."""
    frame = _frame(_asked([_batch(b"a", b"b")]), version)
    assert single_batch(frame) == _by_the_grammar(frame)


@given(st.data())
def test_what_it_reads_of_broken_requests_the_grammar_reads_as_well(data: st.DataObject) -> None:
    """It never takes a request that is to be refused, or another than it is."""
    frame = bytearray(_frame(_asked([_batch(b"a", b"bc")])))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)) | st.just(len(frame)))
    found = single_batch(bytes(frame[:cut]))
    if found is not None:
        assert found == _by_the_grammar(bytes(frame[:cut]))
        assert int.from_bytes(found.records[:_COUNT], "big") == found.record_count


@pytest.mark.parametrize(
    "frame",
    [
        _frame(_asked([])),
        _frame(_asked([_batch(b"a"), _batch(b"b")])),
        _frame(_asked([replace(_batch(b"a"), attributes=1).with_crc()])),
        _frame(_asked([replace(_batch(b"a"), crc=1)])),
        _frame(_asked([replace(_batch(b"a"), last_offset_delta=1).with_crc()])),
        _frame(_asked([replace(_batch(b"a"), records=b"\0" * 4, last_offset_delta=-1).with_crc()])),
        _frame(_asked([replace(_batch(b"a"), records=b"").with_crc()])),
        _frame(_asked([_batch(b"a")], transactional_id="t")),
        _frame(_asked([_batch(b"a")], topics=[])),
        _frame(_asked([_batch(b"a")]), version=7),
        _frame(_asked([_batch(b"a")]), key=1002),
        _frame(_asked([_batch(b"a")])) + b"\0",
        b"",
    ],
)
def test_every_other_request_is_left(frame: bytes) -> None:
    """Whoever carries it out tells what is wrong with it."""
    assert single_batch(frame) is None


def test_a_checksum_may_be_passed_over() -> None:
    """As Fluvio's own servers do."""
    frame = _frame(_asked([replace(_batch(b"a"), crc=1)]))
    assert single_batch(frame, check_crc=False) is not None


@pytest.mark.parametrize("version", _VERSIONS)
def test_the_answer_is_the_grammars(version: int) -> None:
    """With an offset of any size."""
    asked = single_batch(_frame(_asked([_batch(b"a")]), version))
    assert asked is not None
    stored = PartitionAppended(
        partition=3,
        outcome=Outcome(code=ErrorCode.NONE, detail=None),
        base_offset=1 << 40,
        log_append_time_ms=-1,
    )
    response = ProduceResponse(topics=[TopicAppended(name="örders", partitions=[stored])])
    assert appended(asked, 1 << 40) == response.encode(version)
