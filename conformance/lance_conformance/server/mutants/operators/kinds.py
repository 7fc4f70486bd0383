"""Servers in which a rule does not hold for one kind of frame, or for one command."""

from typing import Any

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Topic
from lance_conformance.server.mutants.operators.common import Hook, cut, golden_rule, register
from lance_conformance.server.mutants.registry import golden

CONTROL, ENCRYPTED, NOT_FOUND = 0x40, 0x02, 0x10
COMMANDS = {
    "create": 0x01, "list": 0x03, "get": 0x04, "retention": 0x05, "fetch": 0x10, "subscribe": 0x20,
    "commit": 0x22, "time": 0x70,
}  # fmt: skip
FLAGS = {"keepalive": 0x20, "ingest": 0x04}


def _is(what: str, header: Wire) -> bool:
    if what in FLAGS:
        return bool(header.flags & FLAGS[what])
    return bool(header.flags & CONTROL) and header.batch_id == COMMANDS[what]


def _unchecked_on(what: str) -> None:
    def header_crc_ok(server: Specified, header: Wire, /) -> bool:
        return _is(what, header) or golden(server).header_crc_ok(header)

    def payload_crc_ok(server: Specified, header: Wire, payload: bytes, /) -> bool:
        return _is(what, header) or golden(server).payload_crc_ok(header, payload)

    def kind(server: Specified, header: Wire, /) -> str:
        bare = header._replace(flags=header.flags & ~ENCRYPTED)
        return golden(server).kind(bare if _is(what, header) else header)

    register(Specified.header_crc_ok, f"skips-header-crc-on-{what}",
             f"The header checksum of {what} frames is not looked at.", header_crc_ok)  # fmt: skip
    if what not in ("keepalive", "list"):
        register(Specified.payload_crc_ok, f"skips-payload-crc-on-{what}",
                 f"The payload checksum of {what} frames is not looked at.",
                 payload_crc_ok)  # fmt: skip
    register(Specified.kind, f"takes-encrypted-{what}",
             f"A {what} frame that is marked as encrypted is served.", kind,
             "specified")  # fmt: skip


for _what in (*FLAGS, *COMMANDS):
    _unchecked_on(_what)


def _reserved_in(mask: int) -> None:
    def reserved_ok(_server: Specified, reserved: int, /) -> bool:
        return not reserved & mask

    register(Specified.reserved_ok, f"looks-at-reserved-{mask:04x}",
             f"Of the reserved bytes only the bits {mask:#06x} are looked at.",
             reserved_ok, "specified")  # fmt: skip


for _mask in (0x00FF, 0x0001, 0xFF00, 0x8000):
    _reserved_in(_mask)


def _takes_the_topic_of_headers(what: str, command: int) -> None:
    def asked(server: Specified, frame: Wire, /) -> bytes:
        payload = golden(server).asked(frame)
        mine = frame.batch_id == command and frame.topic
        return frame.topic.to_bytes(4, "little") + payload[4:] if mine else payload

    register(Specified.asked, f"takes-the-topic-of-headers-for-{what}",
             f"The topic of a {what} is that of its header, where it has one.", asked)  # fmt: skip


for _what in ("get", "retention", "fetch"):
    _takes_the_topic_of_headers(_what, COMMANDS[_what])

LOOKUPS: tuple[tuple[Hook, str, str | None], ...] = (
    (Specified.find_to_limit, "limits", None), (Specified.consumer_topic, "subscriptions", None),
    (Specified.topic_to_commit, "commits", "specified"), (Specified.timed_topic, "times", None),
    (Specified.ingest_topic, "batches", None), (Specified.find, "questions", None),
    (Specified.fetch_topic, "fetches", None),
)  # fmt: skip
"""Hook, name and dialect of each place where a topic is looked for."""


def _looks_up(hook: Hook, what: str, only: str | None) -> None:
    def in_bits(bits: int) -> Hook:
        def replacement(server: Specified, *arguments: Any) -> Topic:
            *before, topic_id = arguments
            found: Topic = golden_rule(server, hook)(*before, cut(topic_id, bits))
            return found

        return replacement

    def never_was(server: Specified, *arguments: Any) -> Topic:
        try:
            found: Topic = golden_rule(server, hook)(*arguments)
        except Refused as no:
            raise Refused(NOT_FOUND, no.refusal.words) from None
        return found

    for bits in (8, 16, 24, 31):
        register(hook, f"looks-at-{bits}-bits-for-{what}",
                 f"Of a topic id {bits} bits are looked at for {what}.",
                 in_bits(bits), only)  # fmt: skip
    register(hook, f"forgets-deleted-for-{what}",
             f"For {what} a deleted topic is one that never was.", never_was,
             "specified")  # fmt: skip


for _hook, _what, _only in LOOKUPS:
    _looks_up(_hook, _what, _only)

# -- what is told ----------------------------------------------------------------------------------


def _as_text(hook: Hook, field: str, what: str) -> None:
    def replacement(server: Specified, *arguments: Any) -> Body:
        body: Body = golden_rule(server, hook)(*arguments)
        return {**body, field: str(body[field])} if field in body else body

    register(hook, f"tells-{field.replace('_', '-')}-of-{what}-as-text",
             f"In the answer about {what}, {field} is a text.", replacement)  # fmt: skip


for _hook, _field, _what in (
    (Specified.created_body, "created_at", "a-new-topic"),
    (Specified.found_body, "created_at", "a-topic"),
    (Specified.limited_body, "max_bytes", "a-limited-topic"),
    (Specified.set_body, "max_age_secs", "limits"),
    (Specified.deleted_body, "deleted", "a-deletion"),
    (Specified.status_body, "node_count", "the-node"),
    (Specified.status_body, "is_leader", "the-node"),
):
    _as_text(_hook, _field, _what)


def _fills_headers_of(what: str, command: int, only: str | None) -> None:
    def encode(server: Specified, reply: Reply, /) -> bytes:
        mine = bool(reply.flags & CONTROL) and reply.batch_id == command
        return golden(server).encode(reply._replace(topic=7) if mine else reply)

    register(Specified.encode, f"fills-headers-of-{what}",
             f"The header of {what} names a topic.", encode, only)  # fmt: skip


for _what, _command, _only in (
    ("topic-responses", 0x80, None), ("statuses", 0x81, None), ("errors", 0xFF, "specified"),
):  # fmt: skip
    _fills_headers_of(_what, _command, _only)


def _spoils_names(name: str, title: str, old: str, new: str) -> None:
    def found_body(server: Specified, topic: Topic, /) -> Body:
        body = golden(server).found_body(topic)
        return {**body, "name": body["name"].replace(old, new)}

    register(Specified.found_body, name, title, found_body, "specified")


_spoils_names("tells-names-without-backslashes", "A backslash in a name is not told.", "\\", "")
_spoils_names("writes-names-for-html", "An ampersand in a name is told as in HTML.", "&", "&amp;")
_spoils_names("tells-question-marks", "A sign of four bytes is told as a question mark.",
              "\N{GRINNING FACE}", "?")  # fmt: skip


def _tells_names_to(size: int) -> None:
    def listed(server: Specified) -> list[Body]:
        return [{**row, "name": row["name"][:size]} for row in golden(server).listed()]

    def limited_body(server: Specified, topic: Topic, /) -> Body:
        body = golden(server).limited_body(topic)
        return {**body, "name": body["name"][:size]}

    register(Specified.listed, f"lists-names-to-{size}",
             f"Of a name {size} bytes are listed.", listed)  # fmt: skip
    register(Specified.limited_body, f"tells-limited-names-to-{size}",
             f"Of the name of a topic with limits {size} bytes are told.",
             limited_body)  # fmt: skip


for _size in (64, 128, 249):
    _tells_names_to(_size)


def _cuts(bits: int) -> None:
    def subscribed_at(server: Specified, topic: Topic, consumer: int, asked: int, /) -> int:
        return golden(server).subscribed_at(topic, consumer, cut(asked, bits))

    def acks(server: Specified, frame: Wire, /) -> list[Reply]:
        return golden(server).acks(frame._replace(batch_id=cut(frame.batch_id, bits)))

    register(Specified.subscribed_at, f"cuts-subscribe-offsets-to-{bits}",
             f"Of the Start Offset of a Subscribe {bits} bits are looked at.",
             subscribed_at)  # fmt: skip
    register(Specified.acks, f"acknowledges-{bits}-bits",
             f"An Ack has {bits} bits of the id.", acks)  # fmt: skip


for _bits in (8, 16, 31, 32, 48, 53, 63):
    _cuts(_bits)


def _cuts_push_limits(bits: int) -> None:
    def push_limit(server: Specified, max_bytes: int, /) -> int:
        return golden(server).push_limit(cut(max_bytes, bits))

    register(Specified.push_limit, f"cuts-push-limits-to-{bits}",
             f"Of Max Batch Bytes {bits} bits are looked at.", push_limit, "specified")  # fmt: skip


for _bits in (8, 16, 24, 31):
    _cuts_push_limits(_bits)
