"""Clients that are wrong at the edges: flags, names, empty lists, wide fields, counts, codes."""

from collections.abc import Callable
from typing import Any

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Body, ProblemError
from lance_conformance.client.mutants.operators import kept, register
from lance_conformance.client.mutants.registry import golden, mutant
from lance_conformance.server.golden.codec import Wire

KINDS = (0x08, 0x10, 0x20, 0x40)

# -- headers ---------------------------------------------------------------------------------------


def _compares_magic(name: str, title: str, same: Callable[[bytes], object]) -> None:
    def magic_ok(_client: Specified, magic: bytes, /) -> bool:
        return bool(same(magic))

    register(Specified.magic_ok, name, title, magic_ok)


def _compares_versions(name: str, title: str, same: Callable[[int], object]) -> None:
    def version_ok(_client: Specified, version: int, /) -> bool:
        return bool(same(version))

    register(Specified.version_ok, name, title, version_ok)


_compares_magic("looks-at-the-last-three-magic-bytes", "The first magic byte may be any.",
                lambda magic: magic[1:] == b"LANC"[1:])  # fmt: skip
_compares_magic("reads-small-magic-bytes", "Magic bytes may be in small letters.",
                lambda magic: magic.upper() == b"LANC")  # fmt: skip
_compares_magic("reads-magic-bytes-in-any-order", "Magic bytes may be in any order.",
                lambda magic: sorted(magic) == sorted(b"LANC"))  # fmt: skip


def _masked(mask: int) -> Callable[[int], bool]:
    return lambda version: version & mask == 1


for _mask in (0x01, 0x0F, 0x7F):
    _compares_versions(f"looks-at-versions-through-{_mask:02x}",
                       f"Of the version only {_mask:#04x} is looked at.", _masked(_mask)
                       )  # fmt: skip


def _compares_checksums(name: str, title: str, same: Callable[[int, int], bool]) -> None:
    def header_crc_ok(client: Specified, header: Wire, /) -> bool:
        right = client.checksum(_covered(header))
        return header.header_crc == right or same(header.header_crc, right)

    register(Specified.header_crc_ok, name, title, header_crc_ok)


def _covered(header: Wire) -> bytes:
    fields = header.magic, header.version, header.flags
    return fields[0] + bytes(fields[1:]) + header.reserved.to_bytes(2, "little")


_compares_checksums("takes-header-crc-of-ones-for-none",
                    "A header checksum of ones means that there is none.",
                    lambda said, _: said == 0xFFFF_FFFF)  # fmt: skip
_compares_checksums("takes-big-endian-header-crcs", "A header checksum may be big-endian.",
                    lambda said, right: said.to_bytes(4, "big") == right.to_bytes(4, "little")
                    )  # fmt: skip


def _without(at: int) -> Callable[[int, int], bool]:
    return lambda said, right: not (said ^ right) & ~(0xFF << at)


for _at in (8, 16, 24):
    _compares_checksums(f"leaves-out-byte-{_at // 8}-of-header-crcs",
                        f"Byte {_at // 8} of a header checksum is not compared.",
                        _without(_at))  # fmt: skip


def _dies_of_odd_flags(client: Specified, flags: int, /) -> int:
    if flags not in KINDS:
        raise LookupError(f"flags {flags:#x}")
    return golden(client).kind(flags)


register(Specified.kind, "dies-of-odd-flags", "A frame of no kind, or of two, ends the program.",
         _dies_of_odd_flags)  # fmt: skip


def _trusts(what: str, flag: int) -> None:
    def header_crc_ok(client: Specified, header: Wire, /) -> bool:
        return bool(header.flags & flag) or golden(client).header_crc_ok(header)

    register(Specified.header_crc_ok, f"skips-header-crc-of-{what}",
             f"The header checksum of {what} is not looked at.", header_crc_ok)  # fmt: skip


for _flag, _what in ((0x08, "acks"), (0x10, "backpressure"), (0x20, "keepalives")):
    _trusts(_what, _flag)

# -- names, lists, fields --------------------------------------------------------------------------


def _spells_names(name: str, title: str, encode: Callable[[str], bytes]) -> None:
    register(Specified.name, name, title, lambda _, given: encode(given), "specified")


_spells_names("spells-names-in-ascii", "What is not ASCII in a name is a question mark.",
              lambda given: given.encode("ascii", "replace"))  # fmt: skip
_spells_names("spells-names-in-latin", "A name is sent in Latin-1.",
              lambda given: given.encode("latin-1", "replace"))  # fmt: skip
_spells_names("escapes-names", "A name is sent as it stands in JSON.",
              lambda given: given.replace("\\", "\\\\").replace('"', '\\"').encode())  # fmt: skip
_spells_names("spells-names-in-urls", "Blanks of a name are sent as in a URL.",
              lambda given: given.replace(" ", "%20").encode())  # fmt: skip


def _reads_latin(client: Specified, payload: bytes, /) -> Body:
    return golden(client).body(payload.decode("latin-1").encode())


def _wants_narrow_fields(bits: int) -> None:
    def topic_of(client: Specified, body: Body, /) -> Body:
        wide = [each for each in body.values() if isinstance(each, int) and each >> bits]
        if wide:
            raise ProblemError("protocol", f"a number of more than {bits} bits: {wide[0]}")
        return golden(client).topic_of(body)

    register(Specified.topic_of, f"reads-no-numbers-above-{bits}-bits",
             f"No number of a TopicResponse may have more than {bits} bits.", topic_of)  # fmt: skip


def _wants_a_topic(client: Specified, body: Body, /) -> list[Body]:
    if body.get("topics") == []:
        raise ProblemError("protocol", "no topics")
    return golden(client).topics_of(body)


def _wants_known_fields(client: Specified, body: Body, /) -> list[Body]:
    if body.keys() - {"topics"}:
        raise ProblemError("protocol", "unknown fields")
    return golden(client).topics_of(body)


register(Specified.body, "reads-latin", "Answers are read as Latin-1.", _reads_latin)
for _bits in (32, 53, 63):
    _wants_narrow_fields(_bits)
register(Specified.topics_of, "wants-a-topic", "A list without topics is an error.",
         _wants_a_topic)  # fmt: skip
register(Specified.topics_of, "wants-known-fields-of-lists",
         "A list with a field that nobody knows is an error.", _wants_known_fields)  # fmt: skip

# -- topics in turn --------------------------------------------------------------------------------


def _keeps_its_first_topic(client: Specified, batch: int, now: int, topic: int, records: Any, /
                           ) -> bytes:  # fmt: skip
    first: int = kept(client, "topic", topic)
    return golden(client).ingest(batch, now, first, records)


def _sends_to_the_topic_before(client: Specified, batch: int, now: int, topic: int, records: Any, /
                               ) -> bytes:  # fmt: skip
    seen: list[int] = kept(client, "topics", [])
    seen.append(topic)
    late = len(seen) > ENOUGH
    return golden(client).ingest(batch, now, seen[-2] if late else topic, records)


ENOUGH = 12
"""Batches after which a client mixes up their topics."""
register(Specified.ingest, "keeps-its-first-topic", "All batches go to the first one's topic.",
         _keeps_its_first_topic)  # fmt: skip
register(Specified.ingest, "sends-to-the-topic-before",
         f"After {ENOUGH} batches each goes to the topic of the one before.",
         _sends_to_the_topic_before)  # fmt: skip

# -- counts and codes ------------------------------------------------------------------------------


def _believes_counts(name: str, title: str, above: int) -> None:
    def check_aligned(client: Specified, data: bytes, count: int, /) -> None:
        if count > above:
            raise LookupError(f"{count} records")
        golden(client).check_aligned(data, count)

    register(Specified.check_aligned, name, title, check_aligned)


_believes_counts("makes-room-for-all-records", "A count of millions ends the program.", 1 << 20)
_believes_counts("reads-as-many-as-are-counted", "Records that are not there end the program.", 5)
register(Specified.retry_delay, "retries-at-once", "What is refused for now is sent again at once.",
         lambda _, __: 0.0)  # fmt: skip


@mutant(Specified.kind_of, asked=("code/*-always",))
def takes_refusals_for_losses(client: Specified, code: int, /) -> str:
    """A request that is refused for now, or elsewhere, is put again at once, and again."""
    kind = golden(client).kind_of(code)
    return "closed" if kind in ("retriable", "redirect") else kind
