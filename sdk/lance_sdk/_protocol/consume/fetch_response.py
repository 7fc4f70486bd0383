"""Every answer to Fetch in the same words (LWP sections 5.9 and 5.9.1, AMB-05, AMB-18)."""

from dataclasses import dataclass

from lance_spec.dialect import Dialect
from lance_spec.enums import Command
from lance_spec.messages.lwp import CatchingUp, FetchResponse, FetchResponseExtended

FETCH_ANSWERS = frozenset({Command.FETCH_RESPONSE, Command.CATCHING_UP})
"""The codes of answers to Fetch."""


@dataclass(frozen=True, slots=True)
class DecodedFetch:
    """What a server says to a Fetch.

    Attributes:
        next_offset: where to fetch next; with CATCHING_UP, where the log ends.
        data: record bytes; a view into the received buffer.
        record_count: whole records in the data where the server counts them, 0 when the start
            is not a boundary; None where the number means nothing.
        catching_up: whether the start lies beyond the end.
    """

    next_offset: int
    data: memoryview
    record_count: int | None = None
    catching_up: bool = False


def read_answer(code: int, payload: memoryview, dialect: Dialect) -> DecodedFetch:
    """Read an answer to Fetch; its header must agree with its length (AMB-05).

    Raises:
        DecodeError: naming the field, and the option that may be wrong.
    """
    if code == Command.CATCHING_UP:
        end = CatchingUp.decode(payload).current_max_offset
        return DecodedFetch(end, memoryview(b""), catching_up=True)
    if dialect.fetch_header == 24:
        extended = FetchResponseExtended.decode(payload)
        return DecodedFetch(extended.end_offset, memoryview(extended.data))
    response = FetchResponse.decode(payload)
    count = response.record_count if dialect.strict else None
    return DecodedFetch(response.next_offset, memoryview(response.data), count)
