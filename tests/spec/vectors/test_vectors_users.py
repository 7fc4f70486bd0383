"""What the floors above make of the vectors: the code that runs, not the adapter's."""

from typing import Any

import pytest

from lance_sdk.journal._slot.scan import follow, last_nonzero
from lance_sdk.journal._slot.side_files import select, select_watermark, signed
from lance_sdk.offsets.consumer_ids import consumer_id
from lance_server.lwp.compression import decompress
from lance_server.lwp.refusals import Refusal
from lance_spec import vectors
from lance_spec.errors import DecodeError
from lance_spec.limits import MAX_PAYLOAD
from lance_spec.messages.store_forward import (
    FsnFloorRecord,
    ManifestRecord,
    SegmentHeader,
    WatermarkRecord,
)
from lance_spec.vectors import Vector

RECORDS: dict[str, Any] = {
    "manifest": ManifestRecord,
    "watermark": WatermarkRecord,
    "floor": FsnFloorRecord,
}


def params(family: str) -> Any:
    """Every vector of a family."""
    return [pytest.param(vector, id=vector.id) for vector in vectors.load(family)]


@pytest.mark.parametrize("vector", params("lz4_frame"))
def test_the_server_opens_compressed_payloads(vector: Vector) -> None:
    """AMB-20: exactly one frame, and what it holds; a bare block is no case of this family."""
    if vector.result == "valid":
        assert decompress(vector.data, MAX_PAYLOAD).hex() == vector.test["fields"]["content"]
        return
    with pytest.raises(Refusal) as refused:
        decompress(vector.data, MAX_PAYLOAD)
    assert refused.value.code == vector.outcomes[0]["code"]


@pytest.mark.parametrize("vector", params("consumer_id"))
def test_the_sdk_numbers_consumers(vector: Vector) -> None:
    """As the published Rust client does, so that both find each other's commits."""
    assert str(consumer_id(vector.data.decode())) == vector.test["fields"]["consumer_id"]


def _side_file(vector: Vector) -> Any:
    kind = vector.group["file"]
    chosen = (
        select_watermark(vector.data) if kind == "watermark" else select(vector.data, RECORDS[kind])
    )
    return chosen.record


@pytest.mark.parametrize(
    "vector", [each for each in vectors.load("slot_file") if each.group["file"] in RECORDS], ids=str
)
def test_the_journal_reads_side_files(vector: Vector) -> None:
    """SF-03: the whole record with the highest generation, in each size that programs wrote."""
    record = _side_file(vector)
    wanted = vector.test.get("fields", {}).get("record")
    if wanted is None:
        assert record is None
        return
    assert {name: getattr(record, name) for name in wanted} == {
        k: int(v) for k, v in wanted.items()
    }


@pytest.mark.parametrize("vector", params("slot_segment"))
def test_the_journal_finds_the_frames_of_a_segment(vector: Vector) -> None:
    """The same run of frames; what lies behind damage is more than these vectors ask for."""
    header = vector.data[: SegmentHeader.SIZE]
    if vector.result != "valid":
        with pytest.raises(DecodeError):
            SegmentHeader.decode(header)
        return
    view, fields = memoryview(vector.data), vector.test["fields"]
    run = follow(view, SegmentHeader.SIZE)
    assert str(SegmentHeader.decode(header).base_seq) == fields["base_seq"]
    assert (run.count, run.end) == (len(fields["frames"]), fields["end"])
    assert (last_nonzero(view, run.end) > run.end) == fields["torn"]


def test_a_watermark_of_none_has_a_sign() -> None:
    """It is -1 in every client."""
    (vector,) = [
        each for each in vectors.load("slot_message") if each.id == "slot-WatermarkRecord-none"
    ]
    assert signed(WatermarkRecord.decode(vector.data).fsn) == -1
