"""Batches of Fluvio as records of the log."""

from collections.abc import Iterable
from struct import Struct
from typing import Any, Final, NamedTuple

from lance_server.listeners.fluvio.refusals import FluvioRefusal, told
from lance_spec._native import accelerator
from lance_spec.errors import EncodeError
from lance_spec.fluvio.batches import FluvioRecord, each_record
from lance_spec.fluvio.record_mapping import to_tlv
from lance_spec.messages.fluvio import ErrorCode

_to_log: Final[Any] = getattr(accelerator, "fluvio_to_log", None)
_HEADER: Final = Struct("<BL")  # type and length (LWP section 8.1)


class Chain(NamedTuple):
    """Records of the log.

    Attributes:
        data: the records, back to back.
        records: how many.
    """

    data: bytes
    records: int


def to_log(raw: bytes, count: int, first_timestamp: int, limit: int) -> Chain:
    """Return the records of a batch as the log keeps them.

    Args:
        raw: the records after their count, uncompressed.
        count: how many they are.
        first_timestamp: of the batch.
        limit: most bytes that they may take in the log.

    Raises:
        FluvioRefusal: one cannot be kept, or they take more than ``limit`` bytes.
        DecodeError: they are not such records.
    """
    data = None if _to_log is None else _to_log(raw, first_timestamp, limit)
    if data is not None:
        return Chain(data, count)
    return chained(each_record(raw, count, first_timestamp), limit)


def chained(records: Iterable[FluvioRecord], limit: int) -> Chain:
    """Return records as the log keeps them; see `to_log`."""
    data, count = bytearray(), 0
    for record in records:
        try:
            kind, head = to_tlv(record)
        except EncodeError as error:
            raise told(f"nothing is stored: {error}; the log has no room for it") from None
        data += _HEADER.pack(kind, len(head) + len(record.value))
        data += head
        data += record.value
        count += 1
        if len(data) > limit:
            raise too_large(f"the batch takes more than {limit} bytes in the log")
    return Chain(bytes(data), count)


def too_large(text: str) -> FluvioRefusal:
    """Return the answer to a batch or record that is over a limit."""
    return FluvioRefusal(ErrorCode.MESSAGE_TOO_LARGE, text)
