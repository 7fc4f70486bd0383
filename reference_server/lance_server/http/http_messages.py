"""Requests and responses of the HTTP port."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        method: in capitals.
        path: without the query.
        query: what follows the question mark.
        headers: by name in lower case.
        body: all of it.
        is_local: whether it comes from this machine.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_local: bool = True


@dataclass(frozen=True, slots=True)
class Response:
    """An answer.

    Attributes:
        status: the HTTP status.
        body: all of it.
        content_type: what it is.
        headers: others than those about length and type.
    """

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def text(status: int, message: str, **headers: str) -> Response:
    """Return a sentence."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, f"{message}\n".encode(), headers=named)


def as_json(status: int, body: Any) -> Response:
    """Return an object."""
    return Response(status, json.dumps(body).encode(), "application/json")
