"""Requests to a server's HTTP port."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lance_server.embedded import EmbeddedServer

_DEADLINE = 40.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back.

    Attributes:
        status: the HTTP status.
        text: the body.
        headers: by name in lower case.
    """

    status: int
    text: str
    headers: Mapping[str, str]


def ask_http(
    server: EmbeddedServer, path: str, method: str = "GET", body: Any = None, **headers: str
) -> HttpAnswer:
    """Send one request and return the answer.

    Args:
        server: whom to ask; it has an HTTP port.
        path: what to ask for.
        method: how.
        body: sent as JSON; None means no body.
        headers: further headers, ``_`` for ``-``.
    """
    assert server.http_url is not None, "the server has an HTTP port"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named.setdefault("content-type", "application/json")
    address = server.http_url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=_DEADLINE)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), named)
        response = connection.getresponse()
        sent = {name.lower(): value for name, value in response.headers.items()}
        return HttpAnswer(response.status, response.read().decode(), sent)
    finally:
        connection.close()
