"""Files in which a client keeps a consumer's offset (Design section 19.2.1, AMB-49)."""

import re
from dataclasses import dataclass
from typing import Final, Self

from lance_spec.checksum import Buffer
from lance_spec.errors import DecodeError, EncodeError

_NAME: Final = re.compile(
    r"topic(?P<mark>[-_])(\d{1,10})(?P=mark)consumer(?P=mark)(\d{1,20})\.offset", re.ASCII
)
_CONTENT: Final = re.compile(rb"(\d{1,20})\n?")
_LIMIT: Final = 64


@dataclass(frozen=True, slots=True)
class OffsetFileName:
    """Whose offset a file holds.

    Attributes:
        topic_id: the topic that is read.
        consumer_id: who reads it.
    """

    topic_id: int
    consumer_id: int

    def __str__(self) -> str:
        return f"topic-{self.topic_id}-consumer-{self.consumer_id}.offset"

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return whose offset a file holds, by its name in either form.

        Raises:
            DecodeError: it is not such a name, or an id in it is too large.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            expected = "topic-ID-consumer-ID.offset in decimal digits"
            raise DecodeError("OffsetFileName", "", 0, expected, repr(name[:80]))
        topic_id, consumer_id = int(match[2]), int(match[3])
        if topic_id >= 2**32:
            raise DecodeError("OffsetFileName", "topic_id", match.start(2), "32 bits", match[2])
        if consumer_id >= 2**64:
            raise DecodeError("OffsetFileName", "consumer_id", match.start(3), "64 bits", match[3])
        return cls(topic_id, consumer_id)


def encode_offset(offset: int) -> bytes:
    """Return the content of an offset file: the byte offset in decimal, and a line feed.

    Raises:
        EncodeError: the offset has more than 64 bits.
    """
    if not 0 <= offset < 2**64:
        raise EncodeError("OffsetFile", "offset", f"0 to {2**64 - 1}", str(offset))
    return b"%d\n" % offset


def decode_offset(content: Buffer) -> int:
    """Return the byte offset that a file holds.

    Raises:
        DecodeError: it holds no decimal number of at most 64 bits and a line feed, which may be
            missing.
    """
    text = bytes(content[:_LIMIT])
    match = _CONTENT.fullmatch(text)
    if match is None or len(content) > _LIMIT:
        raise DecodeError("OffsetFile", "offset", 0, "decimal digits and a line feed", repr(text))
    offset = int(match[1])
    if offset >= 2**64:
        raise DecodeError("OffsetFile", "offset", 0, "64 bits", str(offset))
    return offset
