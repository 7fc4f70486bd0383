"""Family ``error_payload``: what an ErrorResponse says, in JSON and in text."""

import json
from collections.abc import Iterator
from typing import Any

from generate.document import ACCEPT, Test, document, group, note

NOTES = {
    "NoCode": note(
        "EDGE_CASE",
        "The payload has no code that could be read.",
        "A client that drops it waits for an answer that has come; one that guesses retries what "
        "cannot work.",
        "AMB-10",
    ),
    "TextForm": note(
        "CAN_OF_WORMS",
        "The error is a sentence instead of JSON.",
        "A client that expects JSON loses the error, or fails while it reads it.",
        "AMB-10",
    ),
}

CODES = {
    0x00: "Success",
    0x01: "UnknownError",
    0x02: "InvalidMagic",
    0x03: "PayloadTooLarge",
    0x04: "InvalidPayload",
    0x05: "CrcMismatch",
    0x06: "VersionMismatch",
    0x10: "TopicNotFound",
    0x11: "TopicAlreadyExists",
    0x12: "InvalidTopicName",
    0x13: "TopicDeleted",
    0x20: "NotLeader",
    0x21: "QuorumNotReached",
    0x22: "LeaderUnknown",
    0x23: "ClusterNotReady",
    0x30: "RateLimited",
    0x31: "Backpressure",
    0x32: "ConnectionLimit",
    0x40: "AuthenticationRequired",
    0x41: "AuthenticationFailed",
    0x42: "AccessDenied",
    0x50: "InvalidOffset",
    0x51: "OffsetOutOfRange",
    0x52: "ConsumerNotFound",
    0x60: "InternalError",
    0x61: "StorageError",
    0x62: "TimeoutError",
    0xFF: "Reserved",
}
"""The codes of LWP section 12.2."""

DETAILS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("batch-id", 0x04, {"batch_id": 2**64 - 1}),
    ("leader", 0x20, {"leader_addr": "192.168.1.10:1992"}),
    ("earliest", 0x50, {"earliest": 1034}),
    ("next-offset", 0x61, {"next_offset": 4096}),
    ("nothing", 0x60, {}),
    ("unknown", 0x60, {"shard": [1, 2], "node": {"id": 7}}),
)
"""Id, code and details of errors that say more."""

JSON_FORMS: tuple[tuple[str, bytes, int, str], ...] = (
    ("spaces", b' \n{ "code" : 16 , "message" : "gone" }\n', 0x10, "gone"),
    ("order", b'{"message":"gone","code":16}', 0x10, "gone"),
    ("no-message", b'{"code":16}', 0x10, ""),
    ("escaped", b'{"code":1,"message":"a\\u00fcb\\n"}', 0x01, "aüb\n"),
    ("utf-8", '{"code":1,"message":"größer"}'.encode(), 0x01, "größer"),
    ("unlisted", b'{"code":153,"message":"new"}', 153, "new"),
    ("largest", b'{"code":254,"message":"new"}', 254, "new"),
    ("null-details", b'{"code":16,"message":"gone","details":null}', 0x10, "gone"),
    ("list-details", b'{"code":16,"message":"gone","details":[1]}', 0x10, "gone"),
    ("more", b'{"code":16,"message":"gone","retry":true}', 0x10, "gone"),
)
"""Id, payload, code and message of JSON as others may write it."""

NO_CODES: tuple[tuple[str, bytes], ...] = (
    ("empty-object", b"{}"),
    ("no-code", b'{"message":"gone"}'),
    ("text-code", b'{"code":"16","message":"gone"}'),
    ("true-code", b'{"code":true,"message":"gone"}'),
    ("wide-code", b'{"code":256,"message":"gone"}'),
    ("negative-code", b'{"code":-1,"message":"gone"}'),
    ("fraction-code", b'{"code":16.5,"message":"gone"}'),
    ("cut-json", b'{"code":16,"mess'),
    ("two-objects", b'{"code":16}{"code":17}'),
    ("list", b'[{"code":16}]'),
    ("number", b"16"),
    ("text", b"It broke"),
    ("empty", b""),
)
"""Id and payload of what has no code that could be read: its text is all there is."""

TEXTS: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("redirect", "NOT_LEADER: redirect to 10.0.0.1:1992", 0x20, {"leader_addr": "10.0.0.1:1992"}),
    ("no-leader", "NOT_LEADER: leader unknown", 0x22, {}),
    ("quorum", "FORWARD_FAILED: Quorum not reached", 0x21, {}),
    ("forward", "FORWARD_FAILED: connection refused", 0x23, {}),
    ("replicate", "Failed to replicate to followers", 0x23, {}),
    ("unknown-topic", "Unknown topic", 0x10, {}),
    ("topic", "Topic not found", 0x10, {}),
    ("topic-42", "Topic 42 not found", 0x10, {}),
    ("exists", "Topic 'my-events' already exists", 0x11, {}),
    ("name-required", "Topic name required", 0x12, {}),
    ("characters", "Topic name contains invalid characters", 0x12, {}),
    ("rate", "Rate limit exceeded", 0x30, {}),
    ("authentication", "Authentication required", 0x40, {}),
    ("token", "Invalid token", 0x41, {}),
    ("no-token", "No token provided", 0x41, {}),
    ("access", "Access denied", 0x42, {}),
    ("large", "Payload too large", 0x03, {}),
    ("invalid", "Invalid payload length", 0x04, {}),
    ("fetch", "Fetch request payload too short", 0x04, {}),
    ("protocol", "Protocol error: unexpected frame", 0x04, {}),
    ("storage", "Storage error: disk full", 0x61, {}),
    ("io", "I/O error: broken pipe", 0x61, {}),
    ("other", "Something else entirely", 0x01, {}),
    ("lower-case", "unknown topic", 0x01, {}),
    ("within", "Sorry: Unknown topic", 0x01, {}),
)
"""Id, text, code and details of the sentences that deployed servers send."""


def build() -> dict[str, Any]:
    """Return the family's file."""
    header = [
        "The payload of an ErrorResponse, and the error that a client makes of it.",
        "A client reads both forms from any server: an error is never lost for its form.",
    ]
    groups = [
        group("ErrorPayload", _json(), dialect="specified"),
        group("ErrorPayload", _texts(), dialect="deployed"),
    ]
    return document("error_payload", header, NOTES, groups)


def _json() -> Iterator[Test]:
    for code, name in CODES.items():
        body = {"code": code, "message": f"This is {name}"}
        yield _test(f"code-{code:02x}", f"Code {name}.", _dump(body), body)
    for name, code, details in DETAILS:
        body = {"code": code, "message": "See details", "details": details}
        yield _test(f"details-{name}", "An error with details.", _dump(body), body)
    for name, payload, code, message in JSON_FORMS:
        body = {"code": code, "message": message}
        yield _test(f"json-{name}", "JSON as others write it.", payload, body)
    for name, payload in NO_CODES:
        body = {"code": 1, "message": payload.decode()}
        test = _test(f"no-code-{name}", "No code: the text is shown.", payload, body)
        yield test | {"flags": ["NoCode"]}


def _texts() -> Iterator[Test]:
    for name, text, code, details in TEXTS:
        body = {"code": code, "message": text, "details": details}
        test = _test(f"text-{name}", f"A text that means code {code:#04x}.", text.encode(), body)
        yield test | {"flags": ["TextForm"]}


def _dump(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _test(name: str, comment: str, payload: bytes, body: dict[str, Any]) -> Test:
    return {
        "id": f"error-{name}",
        "comment": comment,
        "clause": "AMB-10/form",
        "level": "MUST",
        "basis": "decision",
        "bytes": payload.hex(),
        "fields": {"details": {}} | body,
        "result": "valid",
        "outcome": ACCEPT,
        "flags": [],
    }
