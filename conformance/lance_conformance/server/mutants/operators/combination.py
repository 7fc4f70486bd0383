"""Servers that refuse a frame for another reason before they look at its checksums."""

from collections.abc import Callable

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.operators.common import INGEST, register
from lance_conformance.server.mutants.operators.kinds import COMMANDS, CONTROL
from lance_conformance.server.mutants.registry import golden

Refused = Callable[[Specified, Wire, bytes], bool]
UNKNOWN = 0x7E


def _is_lost(server: Specified, header: Wire, _: bytes) -> bool:
    topics, deleted = server.memory.topics, server.memory.deleted
    return header.flags == INGEST and header.topic not in topics and header.topic not in deleted


def _is_late(server: Specified, header: Wire, _: bytes) -> bool:
    return header.flags == INGEST and header.topic in server.memory.deleted


def _is_miscounted(server: Specified, header: Wire, payload: bytes) -> bool:
    return header.flags == INGEST and not golden(server).count_ok(header.records, payload)


def _is_broken(server: Specified, header: Wire, payload: bytes) -> bool:
    return header.flags == INGEST and not golden(server).chain_ok(payload)


def _is_bad_name(_: Specified, header: Wire, payload: bytes) -> bool:
    return header.flags == CONTROL and header.batch_id == COMMANDS["create"] and b"/" in payload


def _is_unknown(_: Specified, header: Wire, __: bytes) -> bool:
    return header.flags == CONTROL and header.batch_id == UNKNOWN


def _asks_in_vain(command: int) -> Refused:
    def refused(server: Specified, header: Wire, payload: bytes) -> bool:
        mine = header.flags == CONTROL and header.batch_id == command
        return mine and int.from_bytes(payload[:4], "little") not in server.memory.topics

    return refused


def _refuses_first(name: str, words: str, refused: Refused, only: str | None = None) -> None:
    def payload_crc_ok(server: Specified, header: Wire, payload: bytes, /) -> bool:
        return refused(server, header, payload) or golden(server).payload_crc_ok(header, payload)

    register(Specified.payload_crc_ok, f"skips-payload-crc-of-{name}",
             f"The payload checksum of {words} is not looked at.",
             payload_crc_ok, only)  # fmt: skip


def _refuses_headers_first(name: str, words: str, refused: Refused) -> None:
    def header_crc_ok(server: Specified, header: Wire, /) -> bool:
        return refused(server, header, b"") or golden(server).header_crc_ok(header)

    register(Specified.header_crc_ok, f"skips-header-crc-of-{name}",
             f"The header checksum of {words} is not looked at.", header_crc_ok)  # fmt: skip


_HEADERS = (
    ("lost-batches", "a batch for a topic that is not there", _is_lost),
    ("late-batches", "a batch for a topic that is deleted", _is_late),
    ("unknown-commands", "an unknown command", _is_unknown),
)
for _name, _words, _refused in (
    *_HEADERS,
    ("bad-names", "a CreateTopic with a slash in its name", _is_bad_name),
    *((f"lost-{_what}", f"a {_what} about a topic that is not there",
       _asks_in_vain(COMMANDS[_what]))
      for _what in ("get", "fetch", "subscribe", "commit", "retention")),
):  # fmt: skip
    _refuses_first(_name, _words, _refused)
for _name, _words, _refused in (
    ("miscounted-batches", "a batch with a wrong record count", _is_miscounted),
    ("broken-batches", "a batch whose records are broken", _is_broken),
):
    _refuses_first(_name, _words, _refused, "specified")
for _name, _words, _refused in _HEADERS:
    _refuses_headers_first(_name, _words, _refused)
