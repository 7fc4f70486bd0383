"""Batches of Fluvio as records of the log."""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from lance_server.listeners.fluvio.refusals import FluvioRefusal, told
from lance_spec.errors import EncodeError
from lance_spec.fluvio.batches import FluvioRecord
from lance_spec.fluvio.record_mapping import to_tlv
from lance_spec.messages.fluvio import ErrorCode

_HEADER: Final = Struct("<BL")  # type and length (LWP section 8.1)


class Chain(NamedTuple):
    """Records of the log.

    Attributes:
        data: the records, back to back.
        records: how many.
    """

    data: bytes
    records: int


def to_log(records: Iterable[FluvioRecord], limit: int) -> Chain:
    """Return records as the log keeps them.

    Args:
        records: the records of a batch.
        limit: most bytes that they may take.

    Raises:
        FluvioRefusal: one cannot be kept, or they take more than ``limit`` bytes.
    """
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
