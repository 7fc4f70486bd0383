"""Servers that open LZ4 frames, but not those with some copies or sizes."""

from collections.abc import Callable

from lance_conformance.server.golden.codec import Wire
from lance_conformance.server.golden.rules.compression import LINKED, Description
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Refused
from lance_conformance.server.mutants.operators.common import cut
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden

COPIES = ("lz4/copies-*", "lz4/content-size-bit-*")
INVALID, COMPRESSED = 0x04, 0x01
LIMIT = 1 << 16
"""Bytes of content, after which linked blocks do not reach back."""


def _copies(name: str, title: str, wrong: Callable[[int, int], bool]) -> None:
    def copied(server: Specified, out: bytearray, offset: int, count: int, /) -> bytes | None:
        found = golden(server).copied(out, offset, count)
        return bytes(len(found)) if found and wrong(offset, count) else found

    register(Specified.copied, name, title, copied, "specified", COPIES)


for _offset in (32_767, 65_000):
    _copies(f"copies-zeros-from-{_offset}", f"What is copied from beyond {_offset} bytes is zeros.",
            lambda offset, _, most=_offset: offset > most)  # type: ignore[misc]  # fmt: skip
for _count in (270, 4000, 60_000):
    _copies(f"copies-zeros-over-{_count}", f"Copies of more than {_count} bytes are zeros.",
            lambda _, count, most=_count: count > most)  # type: ignore[misc]  # fmt: skip
_copies("copies-zeros-from-one-back", "What repeats one byte is zeros.",
        lambda offset, _: offset == 1)  # fmt: skip
_copies("copies-zeros-of-19-bytes", "Copies of exactly 19 bytes are zeros.",
        lambda _, count: count == 19)  # fmt: skip


def _unlinked(
    server: Specified, content: bytes, block: tuple[bool, bytes], said: Description, /
) -> bytes:
    if not said.flags & LINKED and len(content) > LIMIT and block[0]:
        raise Refused(INVALID, "the block reaches back too far")
    return golden(server).block_joined(content, block, said)


def _sizes(bits: int) -> None:
    def content_size_ok(server: Specified, said: int, actual: int, /) -> bool:
        return golden(server).content_size_ok(cut(said, bits), cut(actual, bits))

    register(Specified.content_size_ok, f"looks-at-{bits}-bits-of-sizes",
             f"Of the size of a content {bits} bits are looked at.", content_size_ok,
             "specified", COPIES)  # fmt: skip


def _trusts(most: int) -> None:
    def payload_crc_ok(server: Specified, header: Wire, payload: bytes, /) -> bool:
        trusted = header.flags & COMPRESSED and len(payload) > most
        return bool(trusted) or golden(server).payload_crc_ok(header, payload)

    register(Specified.payload_crc_ok, f"trusts-compressed-payloads-above-{most}",
             f"The payload checksum of a compressed batch above {most} bytes is not looked at.",
             payload_crc_ok, None, ("lz4/payload-crc-of-*",))  # fmt: skip


for _most in (0, 2000, 65_000, 200_000):
    _trusts(_most)
register(Specified.block_joined, "links-no-late-blocks",
         "Linked blocks after the first 64 KiB are refused.", _unlinked, "specified",
         COPIES)  # fmt: skip
for _bits in (16, 32):
    _sizes(_bits)


def _opens(most: int) -> None:
    def limit(_server: Specified) -> int:
        return most

    register(Specified.most, f"opens-{most}-bytes", f"A frame may hold {most} bytes at most.",
             limit, "specified", COPIES)  # fmt: skip


for _most in (1_000_000, 4_000_000, 12_000_000):
    _opens(_most)
