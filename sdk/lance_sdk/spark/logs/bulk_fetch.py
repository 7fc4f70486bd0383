"""Fetching in bulk: a task receives a range into memory that becomes its rows, in its own thread.

A `Consumer` reads ahead in a thread, and copies what it hands out, because programs may keep it. A
task needs neither: it asks for the next bytes before it converts the last ones, so that
they wait in its socket meanwhile, and receives into the same memory again and again.

Only what is plain is fetched so. Where anything else comes (an error, a gap, a frame whose checksum
differs, the end of the connection), `fetched_in_bulk` ends, and a `Consumer` goes on from there
and judges it.
"""

import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from crc32c import crc32c

from lance_sdk import Client
from lance_sdk.spark.files.storage import ReadMemory
from lance_sdk.spark.options import Options
from lance_spec.codec.header_prefix import FrameKind, known_prefixes
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command
from lance_spec.errors import DecodeError
from lance_spec.frames import encode_control, encode_keepalive
from lance_spec.limits import HEADER_SIZE
from lance_spec.messages.lwp import Authenticate, AuthenticateResponse, Fetch, FetchResponse
from lance_spec.records import scan_records

_log = logging.getLogger(__name__)
_HEADER: Final = Struct("<12sQQLLLL")
_PREFIXES: Final = known_prefixes((SPECIFIED,))
_LONGEST_WORDS: Final = 64 << 10
"""Bytes that the answer to a token may have."""


class _NotPlain(Exception):  # noqa: N818 - nothing is wrong: somebody else goes on
    """Something came that is not the data that was asked for."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole records that arrived together.

    Attributes:
        offset: byte offset of the first one.
        data: the records; the memory may be written to, and is used again once nothing shows it.
    """

    offset: int
    data: memoryview

    @property
    def next_offset(self) -> int:
        """Byte offset after the last record."""
        return self.offset + len(self.data)


def can_fetch_in_bulk(options: Options, client: Client) -> bool:
    """Whether the server that a client is connected to, and the way to it, are plain."""
    return client.stats().peer_dialect == SPECIFIED.name and not options.url().tls


def fetched_in_bulk(
    options: Options,
    topic_id: int,
    memory: ReadMemory,
    *,
    start: int,
    end: int,
    stop: int | None,
) -> Iterator[Piece]:
    """Yield a range as far as that is plain; whoever wants the rest fetches it otherwise.

    Args:
        options: of the query.
        topic_id: the topic's number.
        memory: what is received into.
        start: byte offset at which a record begins.
        end: byte offset up to which records are wanted; the last piece may reach beyond it.
        stop: byte offset after which nothing is asked for, where a record ends there.
    """
    most = options.fetch_bytes

    def wanted(offset: int) -> int:
        return most if stop is None else min(most, stop - offset)

    offset = start
    try:
        with _Connection.open(options) as connection:
            connection.fetch(topic_id, offset, wanted(offset))
            while offset < end:
                piece = connection.records(offset, wanted(offset), memory)
                if piece.next_offset < end:
                    connection.fetch(topic_id, piece.next_offset, wanted(piece.next_offset))
                offset = piece.next_offset
                yield piece
                del piece  # so that its memory can be used again
    except (OSError, _NotPlain, DecodeError) as error:
        _log.debug("%s, topic %d: not in bulk from %d on: %r", options, topic_id, offset, error)


class _Connection:
    """One request at a time over a connection of its own.

    Args:
        sock: connected.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._header = memoryview(bytearray(HEADER_SIZE))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    @classmethod
    def open(cls, options: Options) -> Self:
        """Connect to the first server that can be reached, and present the token.

        Raises:
            OSError: none can be.
            _NotPlain: the token was not taken.
        """
        connection = cls(_connected(options))
        if options.token is not None:
            connection._authenticate(options.token)
        return connection

    def _authenticate(self, token: str) -> None:
        self._ask(Command.AUTHENTICATE, Authenticate(token=token.encode()).encode())
        answer = self._answer(Command.AUTHENTICATE_RESPONSE, _LONGEST_WORDS, ReadMemory())
        if not AuthenticateResponse.decode(answer).ok:
            raise _NotPlain("the token was refused")

    def fetch(self, topic_id: int, offset: int, size: int) -> None:
        """Ask for data (LWP section 5.8)."""
        request = Fetch(topic_id=topic_id, start_offset=offset, max_bytes=size)
        self._ask(Command.FETCH, request.encode())

    def records(self, offset: int, size: int, memory: ReadMemory) -> Piece:
        """Return the whole records that answer the last `fetch`.

        Raises:
            OSError: the connection is gone, or nothing came in time.
            _NotPlain: something else came, or not even one whole record.
        """
        payload = self._answer(Command.FETCH_RESPONSE, FetchResponse.MIN_SIZE + size, memory)
        answer = FetchResponse.decode(payload)
        data = payload[len(payload) - answer.bytes_returned :]
        if not answer.record_count or answer.next_offset != offset + len(data):
            raise _NotPlain(f"{len(data)} bytes, and next comes {answer.next_offset}")
        scan = scan_records(data)
        if not scan.count or (scan.fault is not None and not scan.fault.truncated):
            raise _NotPlain(f"not a chain of records: {scan.fault}")
        return Piece(offset, data[: scan.end])

    def _ask(self, command: Command, payload: bytes) -> None:
        self._sock.sendall(encode_control(SPECIFIED, command, payload))

    def _answer(self, command: Command, most: int, memory: ReadMemory) -> memoryview:
        """Return the payload of an answer, of limited size, whose checksum was compared."""
        while True:
            self._receive(self._header)
            prefix, number, _, _, length, crc, _ = _HEADER.unpack(self._header)
            known = _PREFIXES.get(prefix)
            if known is None or length > most:
                raise _NotPlain(f"header {bytes(self._header).hex()}")
            payload = memory.unused(length)
            self._receive(payload)
            if crc32c(payload) != crc:
                raise _NotPlain("a checksum differs")
            if known.kind is FrameKind.CONTROL and number == command:
                return payload
            if known.kind is not FrameKind.KEEPALIVE:
                raise _NotPlain(f"{known.kind.name} {number}")
            self._sock.sendall(encode_keepalive(SPECIFIED))

    def _receive(self, view: memoryview) -> None:
        """Fill memory.

        Raises:
            OSError: the connection ended before, or nothing came in time.
        """
        done = 0
        while done < len(view):
            count = self._sock.recv_into(view[done:])
            if not count:
                raise ConnectionResetError("the server closed the connection")
            done += count


def _connected(options: Options) -> socket.socket:
    """Return a connection to the first server that can be reached.

    Raises:
        OSError: none can be.
    """
    for endpoint in options.url().endpoints:
        with suppress(OSError, UnicodeError):
            sock = socket.create_connection(
                (endpoint.host, endpoint.port), timeout=options.request_timeout
            )
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    raise ConnectionRefusedError(f"no server of {options.servers} can be reached")
