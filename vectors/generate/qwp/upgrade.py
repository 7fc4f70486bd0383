"""Family ``qwp_upgrade``: the HTTP upgrade around QWP, and how its WebSocket ends."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from generate.document import Test, document, group, note
from generate.plain import Plain
from generate.qwp import captured
from generate.qwp.grammar import SPEC

NOTES = {
    "OtherPath": note(
        "MODIFIED_PARAMETER",
        "The path is not one that takes rows.",
        "A server that does not look upgrades what wanted something else.",
        "QWP",
    ),
    "NoUpgrade": note(
        "MISSING_STEP",
        "A header that every upgrade to a WebSocket has is missing or another.",
        "A server that goes on speaks WebSocket to somebody who does not.",
        "QWP",
    ),
    "OtherVersion": note(
        "MODIFIED_PARAMETER",
        "A version of QWP is none that both sides can speak.",
        "A sender that goes on sends what the server reads as something else.",
        "QWP",
    ),
    "NotUpgraded": note(
        "STATE",
        "The server answers with another status.",
        "A sender that treats all of them alike gives up too early, or tries for ever.",
        "QWP",
    ),
    "NotOnTheWire": note(
        "LIMIT",
        "A number that no WebSocket may send as the reason of its end.",
        "A reader that accepts it takes a made-up end for an orderly one.",
        "QWP",
    ),
}
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
REQUEST = (
    "GET /api/v4/write HTTP/1.1",
    "Host: 127.0.0.1:9000",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    f"Sec-WebSocket-Key: {KEY}",
    "X-QWP-Max-Version: 1",
)
ANSWER = (
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    "X-QWP-Version: 1",
)
ASKED = {"path": "/api/v4/write", "max_version": 1, "durable_ack": False, "client_id": None}
GRANTED = {"status": 101, "version": 1, "durable_ack": False, "max_batch_size": None}

REQUESTS: tuple[tuple[str, str, dict[str, str], dict[str, Any]], ...] = (
    ("plain", "As the published sender asks.", {}, {}),
    ("old-path", "The other path.", {REQUEST[0]: "GET /write/v4 HTTP/1.1"}, {"path": "/write/v4"}),
    ("durable", "Durable acknowledgements are asked for.",
     {REQUEST[6]: f"{REQUEST[6]}\r\nX-QWP-Request-Durable-Ack: true"}, {"durable_ack": True}),
    ("named", "A sender that says who it is.",
     {REQUEST[6]: f"{REQUEST[6]}\r\nX-QWP-Client-Id: edge-1"}, {"client_id": "edge-1"}),
    ("no-version", "No version: it is 1.", {f"\r\n{REQUEST[6]}": ""}, {}),
    ("version-7", "A sender of later versions.",
     {REQUEST[6]: "X-QWP-Max-Version: 7"}, {"max_version": 7}),
    ("lower-case", "Names of headers in small letters.",
     {"X-QWP-Max-Version": "x-qwp-max-version", "Upgrade: websocket": "upgrade: WebSocket"}, {}),
    ("authorized", "A token.", {REQUEST[6]: f"{REQUEST[6]}\r\nAuthorization: Bearer t"}, {}),
)  # fmt: skip
"""Id, comment, what changes in the lines, and what changes in what is read."""
REQUEST_FAULTS = (
    ("read-path", "/api/v4/write", "/read/v1", "OtherPath"),
    ("root", "/api/v4/write", "/", "OtherPath"),
    ("older-path", "/api/v4/write", "/api/v3/write", "OtherPath"),
    ("post", "GET", "POST", "NoUpgrade"),
    ("no-upgrade", "Upgrade: websocket", "Upgrade: h2c", "NoUpgrade"),
    ("no-connection", "Connection: Upgrade", "Connection: close", "NoUpgrade"),
    ("websocket-8", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8", "NoUpgrade"),
    ("no-key", f"Sec-WebSocket-Key: {KEY}\r\n", "", "NoUpgrade"),
    ("version-0", "X-QWP-Max-Version: 1", "X-QWP-Max-Version: 0", "OtherVersion"),
    ("version-x", "X-QWP-Max-Version: 1", "X-QWP-Max-Version: one", "OtherVersion"),
)
ANSWERS: tuple[tuple[str, str, dict[str, str], dict[str, Any]], ...] = (
    ("plain", "Upgraded.", {}, {}),
    ("no-version", "No version: it is 1.", {f"\r\n{ANSWER[4]}": ""}, {}),
    ("durable", "Durable acknowledgements are granted.",
     {ANSWER[4]: f"{ANSWER[4]}\r\nX-QWP-Durable-Ack: enabled"}, {"durable_ack": True}),
    ("durable-capital", "The same in other letters, which published senders accept.",
     {ANSWER[4]: f"{ANSWER[4]}\r\nX-QWP-Durable-Ack: Enabled"}, {"durable_ack": True}),
    ("sized", "The most bytes of a message.",
     {ANSWER[4]: f"{ANSWER[4]}\r\nX-QWP-Max-Batch-Size: 131058"}, {"max_batch_size": 131058}),
    ("size-of-words", "A size that is not a number says nothing.",
     {ANSWER[4]: f"{ANSWER[4]}\r\nX-QWP-Max-Batch-Size: many"}, {}),
)  # fmt: skip
REFUSALS: tuple[tuple[str, str, str, str], ...] = (
    ("version-0", "X-QWP-Version: 1", "X-QWP-Version: 0", "transient"),
    ("version-2", "X-QWP-Version: 1", "X-QWP-Version: 2", "transient"),
    ("status-401", "101 Switching Protocols", "401 Unauthorized", "terminal"),
    ("status-403", "101 Switching Protocols", "403 Forbidden", "terminal"),
    ("status-421", "101 Switching Protocols", "421 Misdirected Request", "transient"),
    ("status-404", "101 Switching Protocols", "404 Not Found", "transient"),
    ("status-426", "101 Switching Protocols", "426 Upgrade Required", "transient"),
    ("status-503", "101 Switching Protocols", "503 Service Unavailable", "transient"),
    ("status-200", "101 Switching Protocols", "200 OK", "transient"),
    ("no-upgrade", "Upgrade: websocket", "Upgrade: h2c", "transient"),
)
"""Id, old text, new text, and whether a sender gives up or tries the next host."""
ORDERLY = (1000, 1001)
POLICY = (1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 3000, 4000, 4999)
NOT_SENT = (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "The head of an HTTP request or answer that upgrades to QWP, or the payload of a WebSocket",
        "close frame. Of a request a server reads `fields`, or does not upgrade. Of an answer a",
        "sender reads `fields`, or refuses with the reason `terminal`, which ends it, or",
        "`transient`, after which it tries another host. Of a close frame: the code, and whether",
        "it is `orderly`, which is not a sign that the message before it was bad.",
    ]
    groups = [
        group("QwpUpgrade", _requests(), side="request"),
        _captured("request"),
        _captured("answer"),
        group("QwpUpgrade", _answers(), side="answer"),
        group("QwpUpgrade", _closes(), side="close"),
    ]
    return document("qwp_upgrade", header, NOTES, groups, SPEC)


def head(lines: tuple[str, ...], changes: dict[str, str]) -> str:
    """Return the head of a message with some changes."""
    text = "\r\n".join(lines) + "\r\n\r\n"
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def _requests() -> Iterator[Test]:
    plain = Plain("qwp-upgrade-request", "QWP/upgrade", "prose", refusal("value"))
    valid = [
        plain.valid(name, comment, head(REQUEST, changes).encode(), ASKED | fields)
        for name, comment, changes, fields in REQUESTS
    ]
    yield from valid
    for name, old, new, flag in REQUEST_FAULTS:
        yield plain.replace(valid[0], name, (old, new), NOTES[flag]["description"], flag=flag)


def _captured(side: str) -> dict[str, Any]:
    """Return a head that the published client sent, or one that it took."""
    plain = Plain("captured-qwp-upgrade", "QWP/upgrade", basis="capture")
    if side == "request":
        comment = "The published sender, with durable acknowledgements and a password."
        test = plain.valid("request", comment, captured.UPGRADE, ASKED | {"durable_ack": True})
        return group("QwpUpgrade", [test], side=side) | {"source": captured.SPOKEN}
    fields = GRANTED | {"durable_ack": True, "max_batch_size": 131058}
    test = plain.valid("answer", "What it took.", captured.UPGRADED, fields)
    return group("QwpUpgrade", [test], side=side) | {"source": captured.ANSWERED}


def _answers() -> Iterator[Test]:
    plain = Plain("qwp-upgrade-answer", "QWP/upgrade", "prose")
    valid = [
        plain.valid(name, comment, head(ANSWER, changes).encode(), GRANTED | fields)
        for name, comment, changes, fields in ANSWERS
    ]
    yield from valid
    for name, old, new, reason in REFUSALS:
        refusing = replace(plain, refused=refusal(reason))
        flag = "OtherVersion" if name.startswith("version") else "NotUpgraded"
        yield refusing.replace(valid[0], name, (old, new), NOTES[flag]["description"], flag=flag)


def refusal(reason: str) -> dict[str, Any]:
    """Return the outcome of a head that is refused for a reason."""
    return {"action": "reject", "reason": reason, "field": ""}


def _closes() -> Iterator[Test]:
    plain = Plain("qwp-upgrade-close", "QWP/close", "prose")
    valid = [
        plain.valid(
            str(code),
            f"Close code {code}.",
            code.to_bytes(2, "big") + b"why",
            {"code": code, "orderly": code in ORDERLY, "text": "why"},
        )
        for code in (*ORDERLY, *POLICY)
    ]
    yield from valid
    fields = {"code": 1000, "orderly": True, "text": ""}
    yield plain.valid("no-text", "A code without a text.", b"\x03\xe8", fields)
    for code in NOT_SENT:
        comment = f"Close code {code}, which must not be sent."
        change = (0, 2, code.to_bytes(2, "big"))
        yield plain.splice(valid[0], f"is-{code}", comment, change, flag="NotOnTheWire")
    yield plain.cut(valid[0], 1, "NotOnTheWire")
    change = (2, 1, b"\xff")
    comment = "A text that is not UTF-8."
    yield plain.splice(valid[0], "no-utf-8", comment, change, flag="NotOnTheWire")
