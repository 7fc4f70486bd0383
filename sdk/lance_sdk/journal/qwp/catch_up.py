"""The dictionary for a host that has not seen it: messages without tables, sent first."""

from collections.abc import Iterator, Sequence
from typing import Final

from lance_sdk.journal.symbol_file import encode_entries, leb128
from lance_spec.messages.qwp import MessageFlag, QwpMessage

_PLENTY: Final = 1 << 20
"""Bytes of a catch-up message where the host did not say what it takes."""
_HEAD: Final = QwpMessage.MIN_SIZE + 20
"""Bytes of a catch-up message beside its symbols, at most."""


def catch_up_messages(
    symbols: Sequence[str], max_message: int | None, *, first: int = 0
) -> Iterator[bytes]:
    """Yield messages that define symbols, in order.

    Args:
        symbols: the symbols.
        max_message: largest message that the host takes, in bytes; None when it did not say. A
            symbol that does not fit goes into a message of its own, for the host to judge.
        first: id of the first of them.
    """
    limit = (_PLENTY if max_message is None else min(max_message, _PLENTY)) - _HEAD
    start = size = 0
    for number, symbol in enumerate(symbols):
        length = len(symbol.encode()) + 10
        if size and size + length > limit:
            yield _message(first + start, symbols[start:number])
            start, size = number, 0
        size += length
    if size:
        yield _message(first + start, symbols[start:])


def _message(first: int, symbols: Sequence[str]) -> bytes:
    payload = leb128(first) + leb128(len(symbols)) + encode_entries(symbols)
    flags = int(MessageFlag.DELTA_DICTIONARY)
    return QwpMessage(flags=flags, table_count=0, payload=payload).encode()
