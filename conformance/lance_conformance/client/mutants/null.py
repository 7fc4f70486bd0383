"""Drivers without a client: no case may pass with one of them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.client.driver import DriverDiedError

Request = Mapping[str, Any]
Respond = Callable[[Request], Mapping[str, Any]]


class NullDriver:
    """A driver that does the same whatever it is told.

    Args:
        answer: What it says.
    """

    def __init__(self, answer: Respond) -> None:
        self._answer = answer

    async def call(self, request: Request) -> Mapping[str, Any]:
        """Say it."""
        return self._answer(request)

    async def end(self) -> None:
        """Nothing to end."""


class Caller(NullDriver):
    """A driver that connects, and does nothing over its connection.

    Args:
        answer: What it says.
        first: What it sends when it has connected.
    """

    def __init__(self, answer: Respond, first: bytes = b"") -> None:
        super().__init__(answer)
        self._first = first
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, request: Request) -> Mapping[str, Any]:
        """Connect when told, and say it."""
        if request["op"] == "connect":
            _, self._writer = await asyncio.open_connection(request["host"], request["port"])
            self._writer.write(self._first)
        return await super().call(request)

    async def end(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.close()


def always_well(_request: Request) -> Mapping[str, Any]:
    """Says that all went well."""
    return {"ok": {"acked": [], "failed": [], "records": [], "topics": [], "ticket": 1}}


def never_well(_request: Request) -> Mapping[str, Any]:
    """Says that all failed."""
    return {"error": {"kind": "protocol", "text": "no"}}


def never_can(_request: Request) -> Mapping[str, Any]:
    """Says that it cannot."""
    return {"unsupported": True}


def never_says(_request: Request) -> Mapping[str, Any]:
    """Says something that is not an answer."""
    return {"maybe": 1}


def dies(_request: Request) -> Mapping[str, Any]:
    """Ends."""
    raise DriverDiedError("it has ended")


def polite(request: Request) -> Mapping[str, Any]:
    """Connects and closes well, and fails in between."""
    well = request["op"] in ("connect", "close", "subscribe")
    return {"ok": {}} if well else {"error": {"kind": "closed", "text": "no"}}


NULLS: Mapping[str, Callable[[], NullDriver]] = {
    "says-that-all-is-well": lambda: NullDriver(always_well),
    "says-that-all-failed": lambda: NullDriver(never_well),
    "says-that-it-cannot": lambda: NullDriver(never_can),
    "says-nothing-that-counts": lambda: NullDriver(never_says),
    "dies-at-once": lambda: NullDriver(dies),
    "is-polite-and-does-nothing": lambda: NullDriver(polite),
    "connects-and-claims": lambda: Caller(always_well),
    "speaks-http-and-claims": lambda: Caller(always_well, b"GET / HTTP/1.1\r\n\r\n" * 4),
}
"""Makers by name."""
