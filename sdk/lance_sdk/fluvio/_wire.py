"""One connection as bytes: requests out, responses in, matched by their number.

No socket and no clock here; an I/O driver moves the bytes.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from lance_sdk.errors import (
    ConnectionLost,
    LanceError,
    LocalProtocolError,
    RemoteProtocolError,
    TransportError,
    Unsupported,
)
from lance_sdk.fluvio._asks import Ask
from lance_spec.errors import DecodeError, EncodeError
from lance_spec.fluvio.apis import Api, Server, api
from lance_spec.messages import fluvio
from lance_spec.messages._cursor import whole, written
from lance_spec.messages.fluvio import ApiVersionsRequest, ApiVersionsResponse, Frame, Request

_CLIENT: Final = "lance-sdk"
_VERSIONED: Final = 18
_AS_READ: Final = {"StreamFetchResponse": "StreamFetchPiece"}
"""Responses that clients read in another way than servers write them."""
_UNREAD: Final = 16
"""Responses to one request that may wait to be read: a server that keeps to the flow control of
streams sends one."""


@dataclass(slots=True)
class _Open:
    """A request that responses may come to.

    Attributes:
        api: what was asked.
        version: of the request, and so of the responses.
        kind: the type of object that it was about, or nothing.
        unread: responses that nobody has taken yet.
    """

    api: Api
    version: int
    kind: str
    unread: deque[Any] = field(default_factory=deque)


class Wire:
    """A connection to one of the two servers.

    Args:
        server: which of the two.
        max_frame: largest response to accept.
    """

    def __init__(self, server: Server, max_frame: int) -> None:
        self.server = server
        self._max_frame = max_frame
        self._out = bytearray()
        self._in = bytearray()
        self._next = 1
        self._open: dict[int, _Open] = {}
        self._versions: dict[int, tuple[int, int]] | None = None

    def __repr__(self) -> str:
        return f"<Wire to the {self.server}, {len(self._open)} requests open>"

    # Requests ----------------------------------------------------------------------------------

    def greet(self) -> int:
        """Ask for the versions that the server speaks; it must come first."""
        hello = ApiVersionsRequest(client_version="0.15.2", client_os="python", client_arch="any")
        return self._put(api(self.server, _VERSIONED), 2, hello.encode(), "")

    def greeted(self, response: ApiVersionsResponse) -> None:
        """Take in which versions there are.

        Raises:
            RemoteProtocolError: the server refuses.
        """
        if response.error_code:
            raise RemoteProtocolError(
                f"the Fluvio {self.server} refuses this client: error {response.error_code}"
            )
        self._versions = {
            each.api_key: (each.min_version, each.max_version) for each in response.api_keys
        }

    def request(self, ask: Ask) -> int:
        """Send a request; return its number.

        Args:
            ask: what is asked.

        Raises:
            Unsupported: the server does not know it in a version that this client speaks.
            LocalProtocolError: a value does not fit.
        """
        what = api(self.server, ask.key)
        version = self._version(what)
        try:
            body = written(ask.message, version)
        except EncodeError as error:
            raise LocalProtocolError(str(error)) from None
        return self._put(what, version, body, ask.kind)

    def _version(self, what: Api) -> int:
        assert self._versions is not None, "the server was greeted"
        low, high = what.versions
        if what.key not in self._versions:
            return high  # a server that does not list a request may know it all the same
        least, most = self._versions[what.key]
        if max(low, least) > min(high, most):
            raise Unsupported(
                f"{what.name}: the Fluvio {self.server} speaks versions {least} to {most}, "
                f"this client {low} to {high}"
            )
        return min(high, most)

    def _put(self, what: Api, version: int, body: bytes, kind: str) -> int:
        number, self._next = self._next, self._next % 0x7FFFFFFF + 1
        request = Request(
            api_key=what.key,
            api_version=version,
            correlation_id=number,
            client_id=_CLIENT,
            body=body,
        )
        self._out += Frame(body=request.encode()).encode()
        self._open[number] = _Open(what, version, kind)
        return number

    def data_to_send(self) -> bytes:
        """Return what must go out now."""
        data = bytes(self._out)
        self._out.clear()
        return data

    # Responses ---------------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> None:
        """Take in what came.

        Raises:
            RemoteProtocolError: it is not a response, or one that nobody waits for.
        """
        self._in += data
        while len(self._in) >= 4:
            size = int.from_bytes(self._in[:4], "big", signed=True)
            if not 4 <= size <= self._max_frame:
                raise RemoteProtocolError(
                    f"the Fluvio {self.server} announces a response of {size} bytes; expected 4 "
                    f"to {self._max_frame} (max_frame)"
                )
            if len(self._in) < 4 + size:
                return
            frame = bytes(memoryview(self._in)[4 : 4 + size])
            del self._in[: 4 + size]
            self._take(int.from_bytes(frame[:4], "big", signed=True), frame[4:])

    def _take(self, number: int, body: bytes) -> None:
        asked = self._open.get(number)
        if asked is None:
            raise RemoteProtocolError(
                f"the Fluvio {self.server} answers request {number}, which was never made"
            )
        if len(asked.unread) >= _UNREAD:
            raise RemoteProtocolError(
                f"the Fluvio {self.server} sent {_UNREAD} responses to {asked.api.name} without "
                "waiting for an acknowledgement"
            )
        asked.unread.append(self._decoded(asked, body))

    def _decoded(self, asked: _Open, body: bytes) -> Any:
        name = asked.api.responses[asked.kind]
        kind = getattr(fluvio, _AS_READ.get(name, name))
        try:
            return whole(kind, body, asked.version)
        except DecodeError as error:
            raise RemoteProtocolError(
                f"the Fluvio {self.server} answers {asked.api.name} with bytes that are no "
                f"{kind.__name__} of version {asked.version}: {error}"
            ) from error

    def answer(self, number: int) -> Any | None:
        """Return the next response to a request; None when it is not there yet."""
        asked = self._open[number]
        if not asked.unread:
            return None
        response = asked.unread.popleft()
        if not asked.api.stream:
            del self._open[number]
        return response


def not_greeted(error: TransportError | RemoteProtocolError, server: Server) -> LanceError:
    """Return the error for a connection that failed before the server said what it speaks."""
    text = f"{error}; is this the address of a Fluvio {server.upper()}?"
    return ConnectionLost(text) if isinstance(error, TransportError) else RemoteProtocolError(text)
