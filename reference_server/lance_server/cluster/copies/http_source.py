"""A node that offers a copy at its HTTP address."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlencode

from lance_server.errors import PeerError
from lance_server.log.copies import Offer
from lance_spec.checksum import CRC32C

_ATTEMPTS: Final = 3
_MAX_LISTING: Final = 64 * 1024 * 1024
"""Bytes of the longest list of a copy's files: those of about half a million."""
_MAX_WORDS: Final = 4096
"""Bytes of the longest answer that only says something."""
_MAX_SIZE: Final = 2**48
_ID: Final = re.compile(r"[0-9a-f]{1,32}")
"""What a copy may be called."""
_NAME: Final = re.compile(r"((segments/([0-9]+/)?|cluster/)?[A-Za-z0-9_-][A-Za-z0-9_.-]*)")
"""What a file of a copy may be called: nothing outside of the directory, whoever answers."""


class _Answer(NamedTuple):
    status: int
    crc: str
    body: bytes


class HttpSource:
    """A node that offers a copy.

    Args:
        address: ``HOST:PORT`` of its ``--http``.
        token: of the server, where it has any.
        timeout: seconds that a whole answer may take.
    """

    def __init__(self, address: str, token: str | None = None, timeout: float = 60.0) -> None:
        self._address = address
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._timeout = timeout
        self._connection = HTTPConnection(address, timeout=timeout)

    def __repr__(self) -> str:
        return f"<HttpSource {self._address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    def take(self) -> Offer:
        """Have a copy made.

        Raises:
            PeerError: the node refuses, or does not answer.
        """
        answer = self._ask("POST", "/copies", _MAX_LISTING).body
        try:
            told = json.loads(answer)
            files = {_checked(name, _NAME): _size(size) for name, size in told["files"]}
            return Offer(_checked(told["id"], _ID), str(told["identity"]), files)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise PeerError(f"{self._address} sent no valid copy: {answer[:80]!r}") from error

    def piece(self, copy: str, name: str, start: int, size: int, known: int | None) -> bytes | None:
        """Return a piece of a file, or None where its CRC-32C is the one that is known.

        Raises:
            PeerError: the node refuses, does not answer, or the piece came damaged again and again.
        """
        asked: dict[str, Any] = {"file": name, "from": start, "size": size}
        if known is not None:
            asked["known"] = known
        path = f"/copies/{copy}?{urlencode(asked)}"
        for _ in range(_ATTEMPTS):
            status, crc, data = self._ask("GET", path, size)
            if status == HTTPStatus.NO_CONTENT and known is not None:
                return None
            if len(data) == size and crc == str(CRC32C(data)):
                return data
        raise PeerError(f"{self._address}: {name} arrives damaged at {start}; repeat the command")

    def end(self, copy: str) -> None:
        """Say that the copy is needed no more.

        Raises:
            PeerError: the node refuses, or does not answer.
        """
        self._ask("POST", f"/copies/{copy}/end", _MAX_WORDS)

    def _ask(self, method: str, path: str, most: int) -> _Answer:
        """Ask, and take an answer of so many bytes at most, all of it in time."""
        body = "{}" if method == "POST" else None
        try:
            answer = self._exchange(method, path, body, most)
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise PeerError(
                f"{self._address} does not answer: {error}; repeat the command"
            ) from error
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise PeerError(
                f"{self._address} needs a valid token: give one of the node's with "
                "--token or in LANCE_TOKEN"
            )
        if answer.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            told = answer.body[:_MAX_WORDS].decode(errors="replace").strip()
            raise PeerError(f"{self._address} refused: {told}")
        return answer

    def _exchange(self, method: str, path: str, body: str | None, most: int) -> _Answer:
        """Send a request and read its answer.

        Raises:
            OSError: the node does not answer in time, or answers more than was asked for.
        """
        connection = self._connection
        if connection.sock is None:
            connection.connect()
        with _ending(connection.sock, self._timeout) as is_late:
            try:
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
                data = response.read(max(most, _MAX_WORDS) + 1)
            except (OSError, HTTPException) as error:
                if is_late():
                    raise TimeoutError(f"no whole answer within {self._timeout:g} s") from error
                raise
        if is_late():
            raise TimeoutError(f"no whole answer within {self._timeout:g} s")
        if len(data) > most and response.status == HTTPStatus.OK:
            raise OSError(f"it sends more than the {most} bytes that were asked for")
        if not response.isclosed():
            connection.close()  # the rest of an answer that is too long
        return _Answer(response.status, response.headers.get("x-crc32c", ""), data)


@contextmanager
def _ending(connected: socket.socket, seconds: float) -> Iterator[Callable[[], bool]]:
    """End a connection unless the block is left in time; yield what tells whether it was."""
    late = threading.Event()

    def end() -> None:
        late.set()
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late.is_set
    finally:
        timer.cancel()


def _checked(name: object, allowed: re.Pattern[str]) -> str:
    """Return a name.

    Raises:
        ValueError: it is not one that is allowed.
    """
    if not isinstance(name, str) or not allowed.fullmatch(name):
        raise ValueError(name)
    return name


def _size(size: object) -> int:
    """Return the size of a file of a copy.

    Raises:
        ValueError: it is not a number of bytes.
    """
    if not isinstance(size, int) or not 0 <= size <= _MAX_SIZE:
        raise ValueError(size)
    return size
