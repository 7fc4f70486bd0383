"""The write-ahead log of the first release: entries, ended by a length of 0 (AMB-47, AMB-50).

Its files are still read. The one that is written today begins with one of its entries, which
that release refuses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from lance_spec.checksum import CRC32C, Buffer

_FRAME: Final = Struct("<LL")
_BODY: Final = Struct("<QQH")
END: Final = bytes(4)


@dataclass(frozen=True, slots=True)
class Entry:
    """A write that is to be repeated if the machine stops.

    Attributes:
        sequence: rises with each entry, over all files of the write-ahead log.
        name: the file, relative to the data directory.
        offset: where in the file.
        data: what to write.
    """

    sequence: int
    name: str
    offset: int
    data: Buffer

    def encode(self) -> bytes:
        """Return the entry as bytes."""
        return encode_entry(self.sequence, self.name.encode(), self.offset, self.data)


def encode_entry(sequence: int, name: bytes, offset: int, data: Buffer) -> bytes:
    """Return an entry as bytes: length, CRC32C, and what both are about."""
    body = b"".join((_BODY.pack(sequence, offset, len(name)), name, data))
    return _FRAME.pack(len(body), CRC32C.compute(body)) + body


def decode_entries(data: Buffer) -> Iterator[Entry]:
    """Yield the entries from the start on, up to the first that is not valid.

    Entries after the end, from an earlier use of the file, have lower sequences, and end it.
    """
    view, place, last = memoryview(data), 0, 0
    while place + _FRAME.size <= len(view):
        length, crc = _FRAME.unpack_from(view, place)
        body = view[place + _FRAME.size : place + _FRAME.size + length]
        if length < _BODY.size or len(body) < length or CRC32C.compute(body) != crc:
            return
        sequence, offset, name_length = _BODY.unpack_from(body)
        name = bytes(body[_BODY.size : _BODY.size + name_length])
        if sequence <= last or len(name) < name_length:
            return
        yield Entry(sequence, name.decode(), offset, body[_BODY.size + name_length :])
        place, last = place + _FRAME.size + length, sequence
