"""Explaining conversations: which protocol they are in, and what each side said."""

from collections.abc import Callable, Iterator
from functools import cache
from ipaddress import ip_address
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from lance_spec.bodies import decode_json
from lance_spec.codec.composed import codec
from lance_spec.codec.length_prefix import PrefixSplitter
from lance_spec.errors import DecodeError
from lance_spec.explain._captures.reader import Conversation, Endpoint, conversations
from lance_spec.explain._captures.websockets import explain_web_socket
from lance_spec.explain._lwp.frames import explain
from lance_spec.explain._model import Part, Row
from lance_spec.explain._nested import explain_part, explain_parts
from lance_spec.explain._values import hexadecimal, size, text
from lance_spec.fluvio import apis
from lance_spec.fluvio.apis import Api, Server
from lance_spec.grammar.rustlog import MAX_FRAME
from lance_spec.ir.families import composed
from lance_spec.limits import DEFAULT_PORT, MAGIC
from lance_spec.messages import fluvio

Explain: TypeAlias = Callable[[Conversation, int], Iterator[Part]]

_MOST_FRAME: Final = 2**27
"""Fluvio sets no limit; what is larger is taken for no frame."""


def explain_conversations(data: memoryview, protocol: str | None, most: int) -> Iterator[Part]:
    """Explain the TCP conversations of a capture.

    Args:
        data: the capture.
        protocol: one of `PROTOCOLS`; None finds out by port and first bytes.
        most: explain at most this many conversations, and frames of each.
    """
    found = conversations(data, frozenset(_PORTS))
    for number, each in enumerate(found[:most], start=1):
        chosen = protocol or _protocol_of(each)
        said = (size(len(each.said(by_client=side))) for side in (True, False))
        places = f"{_place(each.client)} to {_place(each.server)}"
        gap = "; bytes are missing in the capture" if each.missing else ""
        lengths = " and ".join(said)
        yield Part(f"Conversation {number}, {places}, {chosen or 'unknown'}: {lengths}{gap}", ())
        if chosen:
            yield from PROTOCOLS[chosen](each, most)
        else:
            yield from _raw(each)
    if not found:
        yield Part("No TCP conversation in this capture", ())


def _place(endpoint: Endpoint) -> str:
    address, port = endpoint
    text = str(ip_address(address))
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"


def _protocol_of(conversation: Conversation) -> str | None:
    """Return the protocol by the port, or by what the client says first."""
    if conversation.server[1] in _PORTS:
        return _PORTS[conversation.server[1]]
    opening = conversation.said(by_client=True)[:64]
    if opening.startswith(MAGIC):
        return "lwp"
    if b"/write" in opening and opening.startswith(b"GET "):
        return "qwp"
    key = int.from_bytes(opening[4:6], "big")
    known = {each.key for each in apis.APIS}
    return "fluvio" if len(opening) >= 14 and key in known else None


def _raw(conversation: Conversation) -> Iterator[Part]:
    for by_client, name in ((True, "client"), (False, "server")):
        raw = conversation.said(by_client=by_client)
        if raw:
            row = Row(0, hexadecimal(raw), "bytes", size(len(raw)), "Of no protocol known here", "")
            yield Part(f"From the {name}", (row,))


def _lwp(conversation: Conversation, most: int) -> Iterator[Part]:
    for by_client, name in ((True, "client"), (False, "server")):
        for each in explain(conversation.said(by_client=by_client), most=most).parts:
            yield Part(f"From the {name}: {each.title}", each.rows)


class _Frame(NamedTuple):
    """A frame that begins with its length, or why there are no more of them on a side."""

    asks: bool
    place: int
    payload: bytes
    fault: Row | None = None

    @property
    def title(self) -> str:
        """Who sent it, and where on that side it stands."""
        return f"From the {'client' if self.asks else 'server'}, frame at byte {self.place}"


def _frames(conversation: Conversation, maximum: int, minimum: int) -> Iterator[_Frame]:
    """Return the frames of both sides in the order of the capture, then what ended them."""
    sides = {asks: PrefixSplitter(maximum=maximum, minimum=minimum) for asks in (True, False)}
    places = {True: 0, False: 0}
    for asks, piece in conversation.turns:
        for payload in sides[asks].receive_data(piece):
            yield _Frame(asks, places[asks], payload)
            places[asks] += _PREFIX + len(payload)
    for asks, splitter in sides.items():
        if splitter.fault or splitter.pending:
            yield _Frame(asks, places[asks], b"", _ended(splitter, places[asks]))


def _ended(splitter: PrefixSplitter, place: int) -> Row:
    meaning = "Length of the frame that begins here"
    row = Row(place, "", "length", "", meaning, "")
    if splitter.fault:
        fault = splitter.fault
        return row.judged("fault", f"expected {fault.expected}, got {fault.got}")
    return row.judged("note", f"the capture ends inside it, after {size(splitter.pending)}")


def _fluvio(conversation: Conversation, most: int) -> Iterator[Part]:
    asked: dict[int, tuple[Api, int, str]] = {}
    server = _fluvio_server(conversation.server[1])
    for frame in islice(_frames(conversation, _MOST_FRAME, 0), most):
        if frame.fault:
            yield Part(frame.title, (frame.fault,))
        elif frame.asks:
            yield from _fluvio_request(frame, server, asked)
        else:
            yield from _fluvio_response(frame, asked)


def _fluvio_server(port: int) -> Server | None:
    for server, known in apis.PORTS.items():
        if port == known:
            return server
    return None


def _fluvio_request(
    frame: _Frame, server: Server | None, asked: dict[int, tuple[Api, int, str]]
) -> Iterator[Part]:
    header, request = _fluvio_head(frame, "Request")
    yield header
    if not isinstance(request, fluvio.Request):
        return
    key, version = request.api_key, request.api_version
    try:
        api = apis.api(server or apis.server_of(key, version), key)
    except KeyError as error:
        yield Part(frame.title, (_unknown("api_key", str(error.args[0])),))
        return
    body = memoryview(request.body)
    asked[request.correlation_id] = (api, version, _object_type(body))
    yield from explain_parts(
        f"{api.name} request, version {version}", f"fluvio.{api.request}", body, version=version
    )


def _fluvio_response(frame: _Frame, asked: dict[int, tuple[Api, int, str]]) -> Iterator[Part]:
    header, response = _fluvio_head(frame, "Response")
    yield header
    if not isinstance(response, fluvio.Response):
        return
    if response.correlation_id not in asked:
        yield Part(frame.title, (_unknown("correlation_id", "its request was not captured"),))
        return
    api, version, kind = asked[response.correlation_id]
    name = api.responses.get(kind, api.responses.get(""))
    if name is None:
        yield Part(frame.title, (_unknown("object_type", f"no objects of type {kind!r}"),))
        return
    title = f"{api.name} response, version {version}"
    yield from explain_parts(title, f"fluvio.{name}", response.body, version=version)


def _fluvio_head(frame: _Frame, name: str) -> tuple[Part, object]:
    """Return the fields before a body, and the message that holds them, if it can be read."""
    head = explain_part(f"{frame.title}: {name}", f"fluvio.{name}", frame.payload)
    rows = tuple(row for row in head.rows if row.field != "body")
    try:
        return Part(head.title, rows), codec(f"fluvio.{name}").decode(frame.payload)
    except DecodeError:
        return head, None


def _object_type(body: memoryview) -> str:
    """Return the text that requests about objects begin with; nothing where there is none."""
    length = int.from_bytes(body[:2], "big")
    return body[2 : 2 + length].tobytes().decode(errors="replace")


def _unknown(field: str, remark: str) -> Row:
    return Row(0, "", field, "", "", "FLV-01").judged("note", remark)


def _rustlog(conversation: Conversation, most: int) -> Iterator[Part]:
    for frame in islice(_frames(conversation, MAX_FRAME, 1), most):
        if frame.fault:
            yield Part(frame.title, (frame.fault,))
        else:
            yield rustlog_message(frame.payload, asks=frame.asks, title=frame.title)


def rustlog_message(data: bytes, *, asks: bool, title: str) -> Part:
    """Explain one message of RustLog, in either dialect (RL-01)."""
    if data[:1] in _JSON_OPENINGS:
        return Part(f"{title}, JSON", (_json_row(data),))
    name = _rustlog_names(asks=asks).get(data[0])
    if name is None:
        row = Row(0, hexadecimal(data), "type", str(data[0]), "Type of the message", "RL-01")
        return Part(title, (row.judged("fault", "expected the type of a message"),))
    return explain_part(f"{title}: {name}", f"rustlog.{name}", data)


def _json_row(data: bytes) -> Row:
    row = Row(0, hexadecimal(data), "json", text(data), "A message of the JSON dialect", "RL-01")
    try:
        decode_json(data, "Frame")
    except DecodeError as error:
        return row.judged("fault", f"expected {error.expected}, got {error.got}")
    return row


@cache
def _rustlog_names(*, asks: bool) -> dict[int, str]:
    """Return the messages of one side by the byte that opens them."""
    other = "Response" if asks else "Request"
    found = {}
    for each in composed()["rustlog"].messages:
        first = each.fields[0]
        if first.name == "type" and isinstance(first.const, int) and not each.name.endswith(other):
            found[first.const] = each.name
    return found


def _qwp(conversation: Conversation, most: int) -> Iterator[Part]:
    for asks, name in ((True, "client"), (False, "server")):
        said = memoryview(conversation.said(by_client=asks))
        for each in explain_web_socket(said, asks=asks, most=most):
            yield Part(f"From the {name}: {each.title}", each.rows)


_PREFIX: Final = 4
_JSON_OPENINGS: Final = {b"{", b" ", b"\t", b"\n", b"\r"}

PROTOCOLS: Final[dict[str, Explain]] = {
    "lwp": _lwp,
    "fluvio": _fluvio,
    "rustlog": _rustlog,
    "qwp": _qwp,
}
"""What takes the conversations of each protocol apart."""
_PORTS: Final = {
    DEFAULT_PORT: "lwp",
    **dict.fromkeys((9003, 9005, 9010), "fluvio"),
    9092: "rustlog",
    9000: "qwp",
}
"""Ports on which published servers listen."""
