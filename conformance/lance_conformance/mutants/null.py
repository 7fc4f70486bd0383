"""Servers that do not speak LWP at all: no case may pass against them."""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import cast

from lance_conformance.golden.codec import SIZE, Reply, parse
from lance_conformance.golden.server import GOLDEN, Connections
from lance_conformance.golden.specified import Specified

React = Callable[["Null", bytes], None]


class Null(asyncio.Protocol):
    """One connection to a server that does the same thing whatever comes.

    Args:
        react: What it does with each read; once with no bytes at the beginning.
        rules: A golden server, for its encoding.
    """

    def __init__(self, react: React, rules: Specified) -> None:
        self.previous = b""
        self.rules = rules
        self.dice = Random(1992)  # noqa: S311 - the same noise every time
        self._react = react
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._react(self, b"")

    def data_received(self, data: bytes) -> None:
        """React."""
        self._react(self, data)

    def say(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def reply(self, reply: Reply) -> None:
        """Send a right frame."""
        self.say(self.rules.encode(reply))

    def hang_up(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


_NULLS: dict[str, React] = {}


def _null(react: React) -> React:
    _NULLS[react.__name__.replace("_", "-")] = react
    return react


@_null
def closes_on_accept(server: Null, _data: bytes) -> None:
    """Closes every connection at once."""
    server.hang_up()


@_null
def closes_on_data(server: Null, data: bytes) -> None:
    """Closes every connection at the first byte."""
    if data:
        server.hang_up()


@_null
def is_silent(_server: Null, _data: bytes) -> None:
    """Accepts, reads and says nothing."""


@_null
def echoes(server: Null, data: bytes) -> None:
    """Sends back what it gets."""
    server.say(data)


@_null
def makes_noise(server: Null, data: bytes) -> None:
    """Answers with random bytes."""
    if data:
        server.say(server.dice.randbytes(64))


@_null
def speaks_http(server: Null, data: bytes) -> None:
    """Is a web server."""
    if data:
        server.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        server.hang_up()


@_null
def speaks_tls(server: Null, data: bytes) -> None:
    """Is a TLS listener: it answers plain text with an alert and closes."""
    if data:
        server.say(b"\x15\x03\x03\x00\x02\x02\x46")
        server.hang_up()


@_null
def stalls_in_the_header(server: Null, data: bytes) -> None:
    """Answers with half a header, and then nothing."""
    if data:
        server.say(server.rules.encode(Reply(0x20))[: SIZE // 2])


@_null
def replays_what_came_before(server: Null, data: bytes) -> None:
    """Answers each read with the one before it."""
    server.say(server.previous)
    server.previous = data


@_null
def acks_everything(server: Null, data: bytes) -> None:
    """Answers whatever comes with an Ack."""
    if len(data) >= SIZE:
        server.reply(Reply(0x08, parse(data).batch_id))


@_null
def refuses_everything(server: Null, data: bytes) -> None:
    """Answers whatever comes with an ErrorResponse."""
    if data:
        server.reply(server.rules.error(0x04, "Unknown topic not found, already exists", {}))


def nulls() -> Mapping[str, React]:
    """Every null server by its name."""
    return _NULLS


def connections(name: str, dialect: str) -> Connections:
    """The connections of a null server.

    Args:
        name: A key of `nulls`.
        dialect: The dialect in which it encodes what it says.
    """
    return lambda: Null(_NULLS[name], GOLDEN[dialect]())
