"""ErrorResponses: which code means what, in every form in which errors come."""

import json
from collections.abc import Mapping

from lance_conformance.client.cases.registry import DEPLOYED, SPECIFIED, add_case, more
from lance_conformance.client.checks import Count, Elsewhere, Same
from lance_conformance.client.client_case import ClientCase
from lance_conformance.client.operations import Op, fetch, get_topic, list_topics, send
from lance_conformance.client.scripted.script import BATCH, ELSEWHERE, Refuse, Say, Trigger, on
from lance_conformance.wire.control import control

RETRIABLE, AUTH, FATAL = ("retriable", "timeout"), ("auth",), ("fatal",)
CODES: Mapping[int, tuple[str, tuple[str, ...]]] = {
    0x03: ("PayloadTooLarge", FATAL), 0x04: ("InvalidPayload", FATAL),
    0x10: ("TopicNotFound", FATAL), 0x11: ("TopicAlreadyExists", FATAL),
    0x12: ("InvalidTopicName", FATAL), 0x13: ("TopicDeleted", FATAL),
    0x21: ("QuorumNotReached", RETRIABLE), 0x22: ("LeaderUnknown", RETRIABLE),
    0x23: ("ClusterNotReady", RETRIABLE), 0x30: ("RateLimited", RETRIABLE),
    0x31: ("Backpressure", RETRIABLE), 0x62: ("TimeoutError", RETRIABLE),
    0x40: ("AuthenticationRequired", AUTH), 0x41: ("AuthenticationFailed", AUTH),
    0x42: ("AccessDenied", AUTH), 0x50: ("InvalidOffset", FATAL),
    0x51: ("OffsetOutOfRange", FATAL), 0x52: ("ConsumerNotFound", FATAL),
    0x02: ("InvalidMagic", ("fatal", "protocol", "closed")),
    0x05: ("CrcMismatch", ("fatal", "protocol", "closed")),
    0x06: ("VersionMismatch", ("fatal", "protocol", "closed")),
}  # fmt: skip
"""Name and kinds by code (section 12.4)."""
REDIRECTS: Mapping[int, tuple[str, tuple[str, ...]]] = {
    0x20: ("NotLeader", ("redirect", "retriable"))
}
"""The same of the code that sends a client to another server, unless the client follows it."""
CLAUSES = {RETRIABLE: "12.4/retriable", AUTH: "12.4/auth", FATAL: "12.4/data"}

for code, (name, kinds) in CODES.items():
    clause = CLAUSES.get(kinds, "12.4/fatal")
    add_case(
        f"code/{code:02x}", clause,
        f"Error {code:#04x} ({name}) is told as {' or '.join(kinds)}.",
        ClientCase((get_topic().fails(*kinds),), (on("get", Refuse(code, name), nth=0),)),
        dialects=SPECIFIED, quick=code in {0x10, 0x30, 0x41},
    )  # fmt: skip
for code in (0x120, 0x130, 0x141):
    add_case(
        f"code/{code:03x}", "12.4/fatal",
        f"Error {code:#05x}, which nobody defined, is not taken for {code & 0xFF:#04x}.",
        ClientCase((get_topic().fails("fatal", "protocol", "closed"),),
                   (on("get", Refuse(code, "Something new"), nth=0),)),
        dialects=SPECIFIED, quick=False,
    )  # fmt: skip
for code in (0x21, 0x22, 0x23, 0x30, 0x31, 0x62):
    name = CODES[code][0]
    add_case(
        f"code/ingest-{code:02x}", "12.4/retriable",
        f"A batch that is refused once with {code:#04x} ({name}) is sent again, or told retriable.",
        ClientCase((send(b"one").safe(*RETRIABLE),),
                 (on("ingest", Refuse(code, name, {"batch_id": BATCH})),), (Same("ingest", 1),)),
        dialects=SPECIFIED,
    )  # fmt: skip
for code in (0x03, 0x04, 0x10, 0x13, 0x42):
    name, kinds = CODES[code]
    add_case(
        f"code/ingest-{code:02x}", CLAUSES[kinds],
        f"A batch that is refused with {code:#04x} ({name}) fails, and is not sent again.",
        ClientCase((send(b"one").fails(*kinds),),
                 (on("ingest", Refuse(code, name, {"batch_id": BATCH}), nth=0),),
                 (Count("ingest", 1, 1),)),
        dialects=SPECIFIED,
    )  # fmt: skip
for code, kinds in ((0x50, FATAL), (0x51, FATAL), (0x10, FATAL), (0x42, AUTH)):
    add_case(
        f"code/fetch-{code:02x}", CLAUSES[kinds],
        f"A Fetch that is refused with {code:#04x} ({CODES[code][0]}) fails as {kinds[0]}.",
        ClientCase((fetch().fails(*kinds),), (on("fetch", Refuse(code, CODES[code][0]), nth=0),)),
        dialects=SPECIFIED,
    )  # fmt: skip

# -- redirects -------------------------------------------------------------------------------------

MOVED = Refuse(0x20, f"NOT_LEADER: redirect to {ELSEWHERE}",
               {"leader_addr": ELSEWHERE, "batch_id": BATCH})  # fmt: skip
add_case(
    "code/not-leader", "12.4/redirect", "NotLeader is told as a redirect, or followed.",
    ClientCase((send(b"one").safe(*REDIRECTS[0x20][1]),), (on("ingest", MOVED, nth=0),)),
)  # fmt: skip
add_case(
    "code/follows-leader", "12.4/follows", "A batch is sent to the leader that NotLeader names.",
    ClientCase((send(b"one"),), (on("ingest", MOVED, nth=0),), (Elsewhere(),), paired=False),
)  # fmt: skip
for name, words, address in (
    ("nowhere", "without an address", None), ("text", "with an address that is none", "elsewhere"),
    ("port", "with port 99999", "127.0.0.1:99999"), ("number", "with a number", 7),
):  # fmt: skip
    add_case(
        f"code/leader-{name}", "12.4/redirect",
        f"NotLeader {words} for the leader fails in time.",
        ClientCase((get_topic().fails("redirect", "retriable", "timeout"),), (
            on("get", Refuse(0x20, "NOT_LEADER", {"leader_addr": address}), nth=0),)),
        dialects=SPECIFIED,
    )  # fmt: skip

# -- forms -----------------------------------------------------------------------------------------

ANY = ("fatal", "retriable", "protocol", "closed")
UNDEFINED = (0x00, 0x07, 0x0F, 0x14, 0x1F, 0x53, 0x5F, 0x63, 0x6F, 0x70, 0x7F, 0x80, 0xA0, 0xFE)
FEW = (0x07, 0x7F)
for code in UNDEFINED:
    add_case(
        f"code/undefined-{code:02x}", "17.5/error-ends",
        f"Error {code:#04x}, which nobody defined, is an error like any other.",
        ClientCase((get_topic().fails(*ANY), list_topics()),
                   (on("get", Refuse(code, "Something new"), nth=0),)),
        dialects=SPECIFIED, quick=False,
        **more(code, FEW, "code/undefined-07", alike=True),
    )  # fmt: skip
FORMS: Mapping[str, tuple[str, bytes]] = {
    "empty": ("without a payload", b""),
    "text": ("that is text", b"Something went wrong"),
    "half-json": ("that ends in the middle", b'{"code": 16, "mess'),
    "array": ("that is an array", b"[16]"),
    "no-code": ("without a code", b'{"message": "no"}'),
    "code-text": ("whose code is a string", b'{"code": "16", "message": "no"}'),
    "code-huge": ("whose code is 70000", b'{"code": 70000, "message": "no"}'),
    "code-negative": ("whose code is -1", b'{"code": -1, "message": "no"}'),
    "no-message": ("without a message", b'{"code": 16}'),
    "message-number": ("whose message is a number", b'{"code": 16, "message": 5}'),
    "details-array": ("whose details are an array", b'{"code": 4, "message": "no", "details": []}'),
    "not-utf-8": ("that is not UTF-8", b"\xff\xfe\xfd"),
    "deep": ("that is nested twenty thousand deep", b'{"code":' + b"[" * 20_000),
    "huge": ("of 64 KiB", json.dumps({"code": 4, "message": "m" * 65_536}).encode()),
}
for name, (words, payload) in FORMS.items():
    add_case(
        f"code/form-{name}", "17.5/error-ends",
        f"An ErrorResponse {words} is an error like any other.",
        ClientCase((get_topic().fails(*ANY), list_topics()),
                 (on("get", Say(control(0xFF, payload)), nth=0),)),
    )  # fmt: skip
RIGHT_FORMS: Mapping[str, str] = {
    "white-space": ' \n{ "code" : %d ,\n\t"message" : "no" } \n',
    "other-order": '{"details": {"x": [1, {}]}, "message": "no", "code": %d}',
    "unknown-fields": '{"retry": true, "code": %d, "kind": 4, "message": "no", "x": {"code": 3}}',
    "escapes": '{"\\u0063ode": %d, "message": "n\\u00fc\\n\\"code\\": 98"}',
    "utf-8": '{"code": %d, "message": "größer 主题"}',
    "null-details": '{"code": %d, "message": "no", "details": null}',
    "wide-details": '{"code": %d, "message": "no", "details": {"next": 18446744073709551615}}',
    "deep-details": '{"code": %d, "message": "no", "details": {"a": {"b": [[[{"code": 4}]]]}}}',
}
ODDLY: tuple[tuple[int, Op, Trigger], ...] = (
    (0x41, get_topic(), "get"), (0x42, fetch(), "fetch"),
)  # fmt: skip
for name, form in RIGHT_FORMS.items():
    for code, op, what in ODDLY:
        add_case(
            f"code/odd-{name}-{what}", "12.4/auth",
            f"Error {code:#04x} in answer to {what} is told as auth in a JSON object with "
            f"{name.replace('-', ' ')}.",
            ClientCase((list_topics(), op.fails(*AUTH)),
                       (on(what, Say(control(0xFF, (form % code).encode())), nth=0),)),
            dialects=SPECIFIED, quick=False, twin_of="code/40",
        )  # fmt: skip
TEXTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "not-found": ("12.4/data", "Topic not found", FATAL),
    "unknown-topic": ("12.4/data", "Unknown topic", FATAL),
    "exists": ("12.4/data", "Topic 'it' already exists", FATAL),
    "rate-limit": ("12.4/retriable", "Rate limit exceeded", RETRIABLE),
    "authentication": ("12.4/auth", "Authentication required", AUTH),
    "invalid-token": ("12.4/auth", "Invalid token", AUTH),
    "access-denied": ("12.4/auth", "Access denied: client 'x' not authorized for topic 7", AUTH),
    "topic-42": ("12.4/data", "Topic 42 not found", FATAL),
    "exists-letters": ("12.4/data", "Topic 'größe' already exists", FATAL),
    "name-required": ("12.4/data", "Topic name required", FATAL),
    "characters": ("12.4/data", "Topic name contains invalid characters", FATAL),
    "rate-limit-topic": ("12.4/retriable", "Rate limit exceeded for topic 4242", RETRIABLE),
    "quorum": ("12.4/retriable", "FORWARD_FAILED: Quorum not reached", RETRIABLE),
    "forward": ("12.4/retriable", "FORWARD_FAILED: connection refused", RETRIABLE),
    "replicate": ("12.4/retriable", "Failed to replicate to followers", RETRIABLE),
    "leader-unknown": ("12.4/retriable", "NOT_LEADER: leader unknown", RETRIABLE),
    "no-token": ("12.4/auth", "No token provided", AUTH),
    "denied": ("12.4/auth", "Access denied", AUTH),
    "too-large": ("12.4/data", "Payload too large", FATAL),
    "invalid-length": ("12.4/data", "Invalid payload length", FATAL),
}
ALIKE = {"12.4/data": "topic-42", "12.4/retriable": "quorum", "12.4/auth": "no-token"}
"""The first of the texts that mean the same, by clause; the first seven have families."""
FIRST_SEVEN = 7
for place, (name, (clause, text, kinds)) in enumerate(TEXTS.items()):
    first = ALIKE[clause] if place >= FIRST_SEVEN else name
    add_case(
        f"code/text-{name}", clause, f"The error {text!r} is told as {' or '.join(kinds)}.",
        ClientCase((get_topic().fails(*kinds),), (on("get", Refuse(0, text), nth=0),)),
        dialects=DEPLOYED, twin_of=None if first == name else f"code/text-{first}",
    )  # fmt: skip
for name in ("exists-letters", "quorum", "no-token", "denied", "topic-42"):
    clause, text, kinds = TEXTS[name]
    add_case(
        f"code/text-fetch-{name}", clause,
        f"The error {text!r} in answer to a Fetch is told as {' or '.join(kinds)}.",
        ClientCase((list_topics(), fetch().fails(*kinds)), (on("fetch", Refuse(0, text), nth=0),)),
        dialects=DEPLOYED, quick=False, twin_of=f"code/text-{ALIKE[clause]}",
    )  # fmt: skip
