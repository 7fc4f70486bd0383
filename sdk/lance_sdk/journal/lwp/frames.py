"""Frames of an LWP slot as batches, and what a server at hand cannot take of them."""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from lance_sdk.journal.transport import Outgoing
from lance_spec.dialect import Dialect
from lance_spec.enums import RecordType
from lance_spec.errors import DecodeError
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.messages.store_forward import StoredBatch

_RECORD_HEADER: Final = Struct("<BL")
_UNSAFE: Final = {0x00, RecordType.NULL}


@dataclass(slots=True)
class OutgoingBatch:
    """A stored batch on its way.

    Attributes:
        frame: the frame it was read from.
        stored: what it holds.
        topic: its topic's name for messages, once known.
    """

    frame: Outgoing
    stored: StoredBatch
    topic: str | None = None


def read_frame(frame: Outgoing) -> OutgoingBatch:
    """Read a frame.

    Raises:
        ValueError: it is not a stored batch.
    """
    try:
        return OutgoingBatch(frame, StoredBatch.decode(frame.payload))
    except DecodeError as error:
        raise ValueError(f"not a stored batch: {error}") from None


def unsupported(batch: OutgoingBatch, dialect: Dialect, *, allow_unsafe: bool) -> str:
    """Return why a server of this dialect cannot take a batch; "" when it can."""
    records = batch.stored.records
    if len(records) > dialect.max_payload:
        return (
            f"{len(records)} bytes of records: a server of dialect {dialect.name!r} takes "
            f"{dialect.max_payload} (AMB-32)"
        )
    if not (dialect.all_record_types or allow_unsafe):
        unsafe = _first_unsafe_type(records)
        if unsafe is not None:
            return (
                f"record type {unsafe:#04x}: a server of dialect {dialect.name!r} cuts its log "
                "there when it recovers (AMB-13)"
            )
    return ""


def _first_unsafe_type(records: bytes) -> int | None:
    offset, end = 0, len(records)
    while offset + RECORD_HEADER_SIZE <= end:
        kind, length = _RECORD_HEADER.unpack_from(records, offset)
        if kind in _UNSAFE:
            return int(kind)
        offset += RECORD_HEADER_SIZE + length
    return None
