"""Clients that are wrong about the frames that they read."""

from collections.abc import Sequence

from lance_conformance.client.golden.specified import LARGEST, Specified
from lance_conformance.client.mutants.registry import golden, mutant
from lance_conformance.server.golden.codec import SIZE, Wire, castagnoli, ieee, prefix

ACK, BACKPRESSURE, KEEPALIVE, CONTROL = 0x08, 0x10, 0x20, 0x40


@mutant(Specified.magic_ok)
def reads_any_magic(_client: Specified, _magic: bytes, /) -> bool:
    """The magic bytes are not looked at."""
    return True


@mutant(Specified.version_ok)
def reads_version_0(_client: Specified, version: int, /) -> bool:
    """Version 0 is read, too."""
    return version <= 1


@mutant(Specified.version_ok)
def reads_later_versions(_client: Specified, version: int, /) -> bool:
    """Later versions are read, too, as the published Python client does."""
    return version >= 1


@mutant(Specified.header_crc_ok)
def skips_the_header_crc(_client: Specified, _header: Wire, /) -> bool:
    """The header checksum is not looked at."""
    return True


@mutant(Specified.header_crc_ok)
def takes_header_crc_zero_for_none(client: Specified, header: Wire, /) -> bool:
    """A header checksum of zero means that there is none."""
    return header.header_crc == 0 or golden(client).header_crc_ok(header)


@mutant(Specified.header_crc_ok)
def reads_both_polynomials(_client: Specified, header: Wire, /) -> bool:
    """Headers of either polynomial are read on one connection."""
    head = prefix(header.flags, header.magic, header.version, header.reserved)
    return header.header_crc in (castagnoli(head), ieee(head))


@mutant(Specified.header_crc_ok)
def compares_31_bits_of_the_header_crc(client: Specified, header: Wire, /) -> bool:
    """The highest bit of the header checksum is lost in a sign."""
    head = prefix(header.flags, header.magic, header.version, header.reserved)
    return (header.header_crc ^ client.checksum(head)) & 0x7FFF_FFFF == 0


@mutant(Specified.reserved_ok, only="specified")
def ignores_reserved_bytes(_client: Specified, _reserved: int, /) -> bool:
    """Reserved bytes are not looked at."""
    return True


@mutant(Specified.reserved_ok, only="specified")
def looks_at_one_reserved_byte(_client: Specified, reserved: int, /) -> bool:
    """Only the first reserved byte is looked at."""
    return reserved & 0xFF == 0


@mutant(Specified.bit_7_ok, only="specified")
def ignores_bit_7(_client: Specified, _flags: int, /) -> bool:
    """Flag bit 7 is not looked at."""
    return True


@mutant(Specified.length_ok)
def has_no_payload_limit(_client: Specified, _length: int, /) -> bool:
    """Whatever length is announced is awaited, as the published Python client does."""
    return True


@mutant(Specified.length_ok)
def has_a_limit_one_byte_too_high(_client: Specified, length: int, /) -> bool:
    """One byte more than allowed is awaited."""
    return length <= LARGEST + 1


@mutant(Specified.payload_crc_ok)
def skips_the_payload_crc(_client: Specified, _header: Wire, _payload: bytes, /) -> bool:
    """The payload checksum is not looked at."""
    return True


@mutant(Specified.payload_crc_ok)
def takes_payload_crc_zero_for_none(client: Specified, header: Wire, payload: bytes, /) -> bool:
    """A payload checksum of zero means that there is none, as in the published Python client."""
    return header.payload_crc == 0 or golden(client).payload_crc_ok(header, payload)


@mutant(Specified.payload_crc_ok)
def reads_payloads_of_both_polynomials(_client: Specified, header: Wire, payload: bytes, /) -> bool:
    """Payloads of either polynomial are read."""
    return header.payload_crc in (castagnoli(payload), ieee(payload))


@mutant(Specified.kept)
def forgets_half_a_header(_client: Specified, tail: bytes, _whole: int, /) -> bytes:
    """Less than a header at the end of a read is dropped."""
    return tail if len(tail) >= SIZE else b""


@mutant(Specified.kept)
def forgets_half_a_payload(_client: Specified, tail: bytes, _whole: int, /) -> bytes:
    """A header whose payload is not there yet is dropped."""
    return tail if len(tail) < SIZE else b""


@mutant(Specified.kept)
def forgets_what_follows_a_frame(_client: Specified, tail: bytes, whole: int, /) -> bytes:
    """The beginning of a frame after a whole one is dropped."""
    return b"" if whole else tail


@mutant(Specified.served)
def looks_at_one_frame_a_read(_client: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """Of the frames of one read only the first is looked at."""
    return frames[:1]


@mutant(Specified.kind)
def takes_backpressure_for_an_answer(client: Specified, flags: int, /) -> int:
    """Backpressure is taken for the answer to a request."""
    return CONTROL if flags == BACKPRESSURE else golden(client).kind(flags)


@mutant(Specified.kind)
def takes_keepalive_for_an_answer(client: Specified, flags: int, /) -> int:
    """A Keepalive is taken for the answer to a request."""
    return CONTROL if flags == KEEPALIVE else golden(client).kind(flags)


@mutant(Specified.kind)
def takes_ack_for_an_answer(client: Specified, flags: int, /) -> int:
    """An Ack is taken for a control frame."""
    return CONTROL if flags == ACK else golden(client).kind(flags)


@mutant(Specified.gives_up)
def stays_on_after_garbage(_client: Specified) -> bool:
    """A connection on which something was wrong is kept."""
    return False


@mutant(Specified.courtesy)
def acks_answers(client: Specified, frame: Wire, /) -> bytes:
    """Every FetchResponse is acknowledged."""
    return client.encode(frame._replace(flags=ACK, payload=b"")) if frame.payload else b""


@mutant(Specified.notices_the_end)
def does_not_notice_the_end(_client: Specified) -> bool:
    """The end of a connection is not noticed, as in the published Python client."""
    return False


@mutant(Specified.gives_up_late)
def waits_for_late_answers(_client: Specified) -> bool:
    """A connection on which an answer is overdue is used for the next request."""
    return False
