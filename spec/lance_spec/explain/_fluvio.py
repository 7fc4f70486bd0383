"""Explaining Fluvio's messages: their fields, and the records inside their batches (FLV-01)."""

import dataclasses
from collections.abc import Iterator
from typing import Final

from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError
from lance_spec.explain._model import Part, Row
from lance_spec.explain._values import size
from lance_spec.explain._watched import Watched
from lance_spec.fluvio.batches import Compression, DecompressionLimitError, decompressed
from lance_spec.ir.families import composed
from lance_spec.limits import MAX_PAYLOAD
from lance_spec.messages import fluvio

_COMPRESSION: Final = 0x07
_MOST_BATCHES: Final = 100
_HEAD: Final = fluvio.Batch.MIN_SIZE


def explain_batches(watched: Watched, most: int) -> Iterator[Part]:
    """Explain the records of every batch that was read.

    Args:
        watched: what was read.
        most: show at most this many fields of each batch.
    """
    for path, start, batch in watched.batches[:_MOST_BATCHES]:
        title = f"Records of the batch at byte {start}"
        kind = batch.attributes & _COMPRESSION
        if kind == Compression.NONE:
            first = start + _HEAD
            data = watched.whole[: first + len(batch.records)]
            part = _records(title, data, first, batch, most)
        else:
            part = _compressed(title, batch, kind, most)
        yield Part(part.title, tuple(_renamed(row, path) for row in part.rows))
    if (hidden := len(watched.batches) - _MOST_BATCHES) > 0:
        yield Part(f"The records of {hidden} more batches are not shown", ())


def _compressed(title: str, batch: fluvio.Batch, kind: int, most: int) -> Part:
    name = Compression(kind).name if kind in set(Compression) else f"compression {kind}"
    told = f"{title}, {name}"
    try:
        raw = decompressed(batch, MAX_PAYLOAD)
    except DecodeError as error:
        row = _unread(batch).judged("fault", f"expected {error.expected}, got {error.got}")
    except DecompressionLimitError:
        row = _unread(batch).judged("note", f"more than {size(MAX_PAYLOAD)}: not shown")
    except ModuleNotFoundError as error:
        advice = f"not shown: {error.name} is missing; pip install 'lance-sdk[fluvio]'"
        row = _unread(batch).judged("note", advice)
    else:
        return _records(f"{told}, decompressed", raw, 0, batch, most)
    return Part(told, (row,))


def _records(title: str, data: Buffer, start: int, batch: fluvio.Batch, most: int) -> Part:
    part = Watched(composed()["fluvio"], data, 0).explain(
        title, fluvio.Records, start, whole="fluvio.Records", most=most
    )
    count, *rest = part.rows
    stated = batch.last_offset_delta + 1
    if count.verdict == "" and count.value.split(" ")[0] != str(stated):
        count = count.judged("note", f"last_offset_delta says {stated}; a server may have filtered")
    return Part(part.title, (dataclasses.replace(count, field="records.count"), *rest))


def _unread(batch: fluvio.Batch) -> Row:
    stored = size(len(batch.records))
    return Row(0, "", "records.count", stored, "What is compressed", "FLV-01")


def _renamed(row: Row, path: str) -> Row:
    return dataclasses.replace(row, field=f"{path}.{row.field}" if path else row.field)
