"""Handing out the copy that a node of a cluster offers."""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from lance_server.errors import ConfigError
from lance_server.http.http_messages import Request, Response, as_json, text
from lance_server.log.copies import CopyGoneError, CopyOffers
from lance_server.runtime.completion import settled
from lance_spec.checksum import CRC32C

_COPY: Final = re.compile(r"/copies/([0-9a-f]{1,32})(/end)?")
_FIELDS: Final = ("from", "size", "known")
_JSON: Final = "application/json"


async def answer_copy_request(copies: CopyOffers | None, request: Request) -> Response:
    """Answer who makes a node, or mends one.

    Args:
        copies: what the server offers, or None.
        request: ``POST /copies`` makes a copy, ``GET /copies/ID?file=…&from=…&size=…`` returns a
            piece of a file, and nothing where ``known`` is its CRC-32C; ``POST /copies/ID/end``
            says that the copy is needed no more.
    """
    if copies is None:
        return text(403, "No copies are handed out; start this node with --offer-copies")
    if "origin" in request.headers:
        return text(403, "Copies are not for pages in a browser")
    if request.method == "POST" and request.headers.get("content-type") != _JSON:
        return text(405, f"Send a POST with content-type {_JSON}", allow="GET, POST")
    try:
        return await _answer(copies, request)
    except ConfigError as error:
        return text(404 if isinstance(error, CopyGoneError) else 409, str(error))
    except OSError as error:
        return text(503, f"The copy cannot be made or read: {error}")


async def _answer(copies: CopyOffers, request: Request) -> Response:
    if request.path == "/copies" and request.method == "POST":
        offer = await settled(copies.take())
        return as_json(200, {**offer._asdict(), "files": list(offer.files.items())})
    named = _COPY.fullmatch(request.path)
    if named is None or (request.method == "POST") != bool(named[2]):
        return text(404, "Ask for POST /copies, GET /copies/ID or POST /copies/ID/end")
    if named[2]:
        copies.end(named[1])
        return as_json(200, {"ended": named[1]})
    return await _piece(copies, named[1], request.query)


async def _piece(copies: CopyOffers, copy: str, query: str) -> Response:
    given = dict(parse_qsl(query))
    name = given.pop("file", "")
    if not given.keys() <= set(_FIELDS) or not all(map(_is_number, given.values())):
        return text(400, f"Send file, and {', '.join(_FIELDS)} as numbers")
    numbers = {key: int(value) for key, value in given.items()}
    data = await settled(copies.piece(copy, name, numbers.get("from", 0), numbers.get("size", 0)))
    crc = CRC32C(data)
    if numbers.get("known") == crc:
        return Response(HTTPStatus.NO_CONTENT, b"", "application/octet-stream")
    return Response(200, data, "application/octet-stream", {"x-crc32c": str(crc)})


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) <= len(str(2**63))
