"""Servers that read records almost right."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from lance_conformance.server.golden.codec import Wire, walk
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Replies
from lance_conformance.server.mutants.predicates import also_refuses, also_takes
from lance_conformance.server.mutants.registry import golden, mutant

HEADER = 5


def _records(payload: bytes) -> Iterator[tuple[int, int]]:
    """Type and length of each whole record."""
    ends, _ = walk(payload)
    for start, end in pairwise(ends):
        yield payload[start], end - start - HEADER


# -- types and lengths -----------------------------------------------------------------------------

for name, kinds in (
    ("protobuf", {0x04}),
    ("avro", {0x05}),
    ("key-values", {0x10}),
    ("timestamped-records", {0x11}),
    ("key-timestamped-records", {0x12}),
    ("types-from-06-to-0f", set(range(0x06, 0x10))),
    ("types-from-13-to-7f", set(range(0x13, 0x80))),
    ("type-80", {0x80}),
    ("type-fe", {0xFE}),
):
    also_refuses(
        Specified.types_ok, f"refuses-{name}", f"Records of the types {sorted(kinds)} are refused.",
        lambda _, payload, kinds=kinds: any(kind in kinds for kind, _ in _records(payload)),
    )  # fmt: skip
also_refuses(
    Specified.types_ok, "refuses-nulls", "A Null is refused.",
    lambda _, payload: payload[:1] == b"\xff" and len(payload) == HEADER,
)  # fmt: skip
also_refuses(
    Specified.types_ok, "ends-batches-at-a-null", "Nothing may follow a Null.",
    lambda _, payload: any(kind == 0xFF for kind, _ in [*_records(payload)][:-1]),
)  # fmt: skip


@mutant(Specified.acks)
def passes_over_type_0(server: Specified, frame: Wire, /) -> Replies:
    """A batch that begins with a record of type 0 is not answered."""
    return [] if frame.payload[:1] == b"\0" else golden(server).acks(frame)


@mutant(Specified.acks)
def passes_over_nulls_with_a_value(server: Specified, frame: Wire, /) -> Replies:
    """A batch that is a Null with a value is not answered."""
    odd = [*_records(frame.payload)][:1] == [(0xFF, len(frame.payload) - HEADER)]
    odd = odd and len(frame.payload) > HEADER
    return [] if odd else golden(server).acks(frame)


for name, title, refused in (
    ("reads-lengths-as-signed-bytes", "Values of 128 to 255 bytes have a negative length.",
     lambda length: 128 <= length <= 255),
    ("takes-length-255-for-a-mark", "A length of 255 announces a longer one.",
     lambda length: length == 255),
    ("reads-lengths-as-bytes", "Of a length only the lowest byte is read.",
     lambda length: length > 255),
    ("takes-length-65535-for-a-mark", "A length of 65535 announces a longer one.",
     lambda length: length == 65535),
    ("reads-16-bits-of-a-length", "Of a length only the lower half is read.",
     lambda length: length > 65535),
    ("has-a-limit-of-1-mib", "Values must be shorter than 1 MiB.",
     lambda length: length >= 1_048_576),
    ("refuses-single-bytes", "A value must have two bytes.", lambda length: length == 1),
):  # fmt: skip
    also_refuses(
        Specified.types_ok, name, title,
        lambda _, payload, refused=refused: any(refused(length) for _, length in _records(payload)),
    )  # fmt: skip
also_refuses(
    Specified.types_ok, "wants-records-aligned", "Records must begin at even places.",
    lambda _, payload: any(length % 2 == 0 for _, length in [*_records(payload)][:-1])
    and len(payload) > 2048,
)  # fmt: skip
also_refuses(
    Specified.batch_ok, "counts-records-in-a-byte", "The record count has eight bits.",
    lambda _, frame: frame.records > 255,
)  # fmt: skip
also_refuses(
    Specified.batch_ok, "counts-records-in-16-bits", "The record count has sixteen bits.",
    lambda _, frame: frame.records > 65535,
)  # fmt: skip

# -- chains ----------------------------------------------------------------------------------------


def _forgives(name: str, title: str, forgiven: Callable[[bytes], bool]) -> None:
    """Register a server that stores one sort of broken batch as it is."""
    also_takes(
        Specified.batch_ok, name, title, lambda _, frame: forgiven(frame.payload), only="specified"
    )


def _tail(payload: bytes) -> bytes:
    return payload[walk(payload)[0][-1] :]


def _first_length(payload: bytes, order: str = "little") -> int:
    return int.from_bytes(payload[1:HEADER], order)  # type: ignore[arg-type]  # one of two words


def _spaced(payload: bytes, gap: int) -> int:
    """Where two records end that have a gap after each."""
    second = HEADER + _first_length(payload) + gap
    return second + HEADER + _first_length(payload[second:]) + gap


_forgives("ignores-a-last-byte", "One byte after the records is cut off.",
          lambda p: len(_tail(p)) == 1 and len(p) > HEADER)  # fmt: skip
_forgives("ignores-less-than-a-header", "Less than a header after the records is cut off.",
          lambda p: 1 < len(_tail(p)) < HEADER < len(p))  # fmt: skip
_forgives("takes-zeros-for-padding", "Zeros after the records are padding.",
          lambda p: len(_tail(p)) in (1, 2, 3) and not any(_tail(p)))  # fmt: skip
_forgives("takes-a-header-for-an-empty-record", "A header at the end needs no value.",
          lambda p: len(_tail(p)) == HEADER and len(p) > HEADER)  # fmt: skip
_forgives("takes-ffffffff-for-the-rest", "A length of FFFFFFFF means all that is there.",
          lambda p: _first_length(p) == 0xFFFFFFFF)  # fmt: skip
_forgives("takes-negative-lengths-for-none", "A length of 80000000 or more is negative, so none.",
          lambda p: 0x80000000 <= _first_length(p) < 0xFFFFFFFF)  # fmt: skip
_forgives("takes-lengths-of-big-machines", "A length may be in the other byte order.",
          lambda p: _first_length(p, "big") == len(p) - HEADER)  # fmt: skip
_forgives("takes-lengths-with-the-header", "A length may count the header, too.",
          lambda p: _first_length(p) == len(p))  # fmt: skip
_forgives("takes-values-that-are-a-byte-short", "The last value may lack a byte.",
          lambda p: _first_length(p) == len(p) - HEADER + 1)  # fmt: skip
also_takes(
    Specified.chain_ok, "looks-at-two-records-only",
    "Of a batch the first two records are looked at.",
    lambda _, payload: len(walk(payload)[0]) > 2, only="specified",
)  # fmt: skip
_forgives("takes-less-than-a-header-for-data", "A payload too short for a record is stored.",
          lambda p: len(p) < HEADER)  # fmt: skip
_forgives("takes-plain-text", "Lines of text are stored.",
          lambda p: p.endswith(b"\n") and p.isascii())  # fmt: skip
_forgives("takes-extended-headers", "Type FF announces a header of seven bytes.",
          lambda p: p[:1] == b"\xff" and p[3:7] == (len(p) - 7).to_bytes(4, "little"))  # fmt: skip
_forgives("takes-records-with-a-crc", "Each record may be followed by its checksum.",
          lambda p: _spaced(p, 4) == len(p) and len(p) > HEADER)  # fmt: skip
_forgives("takes-aligned-records", "Records may be padded to eight bytes.",
          lambda p: len(p) == 2 * (-(-(HEADER + _first_length(p)) // 8) * 8))  # fmt: skip
