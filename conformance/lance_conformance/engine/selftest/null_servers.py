"""Servers that do the same whatever comes, and so speak no protocol: no case may pass."""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import cast

React = Callable[["NullServer", bytes], None]


class NullServer(asyncio.Protocol):
    """One connection to a server that does the same thing whatever comes.

    Args:
        react: What it does with each read; once with no bytes at the beginning.
    """

    def __init__(self, react: React) -> None:
        self.previous = b""
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

    def hang_up(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


def closes_on_accept(server: NullServer, _data: bytes) -> None:
    """Closes every connection at once."""
    server.hang_up()


def closes_on_data(server: NullServer, data: bytes) -> None:
    """Closes every connection at the first byte."""
    if data:
        server.hang_up()


def is_silent(_server: NullServer, _data: bytes) -> None:
    """Accepts, reads and says nothing."""


def echoes(server: NullServer, data: bytes) -> None:
    """Sends back what it gets."""
    server.say(data)


def makes_noise(server: NullServer, data: bytes) -> None:
    """Answers with random bytes."""
    if data:
        server.say(server.dice.randbytes(64))


def speaks_http(server: NullServer, data: bytes) -> None:
    """Is a web server."""
    if data:
        server.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        server.hang_up()


def speaks_tls(server: NullServer, data: bytes) -> None:
    """Is a TLS listener: it answers plain text with an alert and closes."""
    if data:
        server.say(b"\x15\x03\x03\x00\x02\x02\x46")
        server.hang_up()


def replays_what_came_before(server: NullServer, data: bytes) -> None:
    """Answers each read with the one before it."""
    server.say(server.previous)
    server.previous = data


def named(*reactions: React) -> Mapping[str, React]:
    """Reactions by name."""
    return {react.__name__.replace("_", "-"): react for react in reactions}


def answers_with(data: bytes) -> React:
    """A server that answers every read with the same bytes."""

    def answer(server: NullServer, read: bytes) -> None:
        if read:
            server.say(data)

    return answer


COMMON = named(
    closes_on_accept,
    closes_on_data,
    is_silent,
    echoes,
    makes_noise,
    speaks_http,
    speaks_tls,
    replays_what_came_before,
)
"""Null servers of every suite. Each suite adds those that speak its own bytes."""
