"""A node that offers a copy at its HTTP address."""

import json
import re
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Final, Self
from urllib.parse import urlencode

from lance_server.errors import PeerError
from lance_server.log.copies import Offer
from lance_spec.checksum import CRC32C

_ATTEMPTS: Final = 3
_NAME: Final = re.compile(r"((segments/([0-9]+/)?|cluster/)?[A-Za-z0-9_-][A-Za-z0-9_.-]*)")
"""What a file of a copy may be called: nothing outside of the directory, whoever answers."""


class HttpSource:
    """A node that offers a copy.

    Args:
        address: ``HOST:PORT`` of its ``--http``.
        token: of the server, where it has any.
        timeout: seconds that an answer may take.
    """

    def __init__(self, address: str, token: str | None = None, timeout: float = 60.0) -> None:
        self._address = address
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
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
        _, answer = self._ask("POST", "/copies")
        try:
            told = json.loads(answer)
            files = {_checked(name): int(size) for name, size in told["files"]}
            return Offer(str(told["id"]), str(told["identity"]), files)
        except (ValueError, KeyError, TypeError) as error:
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
            response, data = self._ask("GET", path)
            if response.status == HTTPStatus.NO_CONTENT:
                return None
            if len(data) == size and response.headers.get("x-crc32c") == str(CRC32C(data)):
                return data
        raise PeerError(f"{self._address}: {name} arrives damaged at {start}")

    def end(self, copy: str) -> None:
        """Say that the copy is needed no more.

        Raises:
            PeerError: the node refuses, or does not answer.
        """
        self._ask("POST", f"/copies/{copy}/end")

    def _ask(self, method: str, path: str) -> tuple[HTTPResponse, bytes]:
        body = "{}" if method == "POST" else None
        try:
            self._connection.request(method, path, body, self._headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException) as error:
            raise PeerError(
                f"{self._address} does not answer: {error}; repeat the command"
            ) from error
        if response.status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            told = answer.decode(errors="replace").strip()
            raise PeerError(f"{self._address} refused: {told}")
        return response, answer


def _checked(name: object) -> str:
    """Return the name of a file of a copy.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(name)
    return name
