"""The golden rules of frames and headers, and of the exchange of versions."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from lance_conformance.fluvio.golden.codec import Cursor, Malformed, each, words
from lance_conformance.fluvio.golden.state import Connection, Memory

LIMIT = 4 * 1024 * 1024
"""Bytes of the largest request."""


class Head(NamedTuple):
    """The header of a request."""

    key: int
    version: int
    correlation: int
    body: bytes


class Reply(NamedTuple):
    """A response that is about to be sent."""

    correlation: int
    body: bytes


Ranges = dict[int, tuple[int, int]]
Replies = list[Reply]

SC: Ranges = {18: (0, 2), 1001: (15, 19), 1002: (15, 19), 1003: (15, 19), 1004: (15, 19)}
SPU: Ranges = {
    18: (0, 2),
    0: (0, 25),
    1002: (0, 25),
    1003: (19, 25),
    1005: (0, 0),
    1006: (0, 25),
    1007: (0, 25),
    1008: (0, 25),
}


class Framing:
    """Rules about frames. Every public method is a hook: a mutant replaces exactly one."""

    memory: Memory

    def admits(self, _connection: Connection, /) -> bool:
        """Every connection is served, whatever it or others do besides."""
        return True

    def survives(self, _tail: bytes, /) -> bool:
        """A connection that ends within a request harms nobody."""
        return True

    def left(self, _connection: Connection, /) -> None:
        """What a connection has stored stays when it ends."""

    def length_ok(self, _role: str, length: int, /) -> bool:
        """A length that a request can have."""
        return 0 <= length <= LIMIT

    def closes_on_length(self, _length: int, /) -> bool:
        """Any other length ends the connection."""
        return True

    def kept(self, tail: bytes, _whole: int, /) -> bytes:
        """Bytes after the last whole frame wait for the rest."""
        return tail

    def served(self, frames: Sequence[bytes], /) -> Sequence[bytes]:
        """Every frame of a read is served."""
        return frames

    def takes(self, role: str, key: int, version: int, /) -> bool:
        """Whether a request is one of those that are offered."""
        low, high = (SC if role == "sc" else SPU).get(key, (1, 0))
        return low <= version <= high

    def serves_on(self, _connection: Connection, _head: Head, /) -> bool:
        """Whether a connection is served on after a request that cannot be answered."""
        return False

    def spent_ok(self, left: int, /) -> bool:
        """A request ends where its body does."""
        return left == 0

    def finished(self, cursor: Cursor, /) -> None:
        """Make sure that nothing stands after a request."""
        if not self.spent_ok(len(cursor.data) - cursor.at):
            raise Malformed("bytes after the request")

    def last_words(self) -> bytes:
        """Before a connection is closed nothing is said."""
        return b""

    def client_ok(self, _client: str, /) -> bool:
        """Any client id will do, and says nothing."""
        return True

    def correlation(self, correlation: int, /) -> int:
        """A response repeats the number of its request."""
        return correlation

    def repeated(self, _connection: Connection, _correlation: int, /) -> bool:
        """Whether a request is taken for one that was answered before."""
        return False

    def arranged(self, replies: Replies, /) -> Replies:
        """Responses leave in the order in which they were made."""
        return replies

    def encode(self, reply: Reply, /) -> bytes:
        """A response as bytes."""
        return struct.pack(">ii", len(reply.body) + 4, reply.correlation) + reply.body

    # Versions ------------------------------------------------------------------------------------

    def offered(self, role: str, /) -> list[tuple[int, int, int]]:
        """Key, lowest and highest version of the requests that a server takes."""
        ranges = SC if role == "sc" else SPU
        return [(key, low, high) for key, (low, high) in ranges.items()]

    def versions_error(self) -> int:
        """Nobody is refused the versions."""
        return 0

    def platform(self) -> str:
        """The version of the servers."""
        return "0.18.1"

    def versions(self, role: str, /) -> bytes:
        """The answer to ApiVersions."""
        ranges = each(struct.pack(">hhh", *row) for row in self.offered(role))
        return struct.pack(">h", self.versions_error()) + ranges + words(self.platform())
