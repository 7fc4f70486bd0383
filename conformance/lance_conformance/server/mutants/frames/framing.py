"""Servers that are wrong about frames."""

from collections.abc import Sequence

from lance_conformance.server.golden.codec import SIZE, Reply, Wire, castagnoli, ieee, prefix
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Connection, Replies
from lance_conformance.server.mutants.registry import golden, mutant

ACK, BACKPRESSURE, KEEPALIVE, CONTROL = 0x08, 0x10, 0x20, 0x40
FETCH_RESPONSE = 0x11


@mutant(Specified.checksum)
def speaks_the_other_polynomial(server: Specified, data: bytes, /) -> int:
    """Every checksum is of the polynomial that the dialect does not use."""
    right = golden(server).checksum
    return ieee(data) if right(b"a") == castagnoli(b"a") else castagnoli(data)


@mutant(Specified.magic_ok)
def serves_any_magic(_server: Specified, _magic: bytes, /) -> bool:
    """The magic bytes are not looked at."""
    return True


@mutant(Specified.magic_ok)
def dies_of_bad_magic(server: Specified, magic: bytes, /) -> bool:
    """After one frame with bad magic nobody is served any more."""
    if magic != b"LANC":
        server.memory.scars.add("dead")
    return "dead" not in server.memory.scars


@mutant(Specified.version_ok)
def serves_version_0(_server: Specified, version: int, /) -> bool:
    """Version 0 is served, too."""
    return version <= 1


@mutant(Specified.version_ok)
def serves_version_2(_server: Specified, version: int, /) -> bool:
    """Later versions are served, too."""
    return version >= 1


@mutant(Specified.reserved_ok, only="specified")
def ignores_reserved_bytes(_server: Specified, _reserved: int, /) -> bool:
    """Reserved bytes are not looked at."""
    return True


@mutant(Specified.reserved_ok, only="deployed")
def closes_on_reserved_bytes(_server: Specified, reserved: int, /) -> bool:
    """Reserved bytes must be zero, which published clients do not know."""
    return reserved == 0


@mutant(Specified.bit_7_ok, only="specified")
def ignores_bit_7(_server: Specified, _flags: int, /) -> bool:
    """Flag bit 7 is not looked at."""
    return True


@mutant(Specified.bit_7_ok, only="deployed")
def closes_on_bit_7(_server: Specified, flags: int, /) -> bool:
    """Flag bit 7 must be zero, which published clients do not know."""
    return flags < 0x80


@mutant(Specified.header_crc_ok)
def skips_the_header_crc(_server: Specified, _header: Wire, /) -> bool:
    """The header checksum is not looked at."""
    return True


@mutant(Specified.header_crc_ok)
def takes_header_crc_zero_for_none(server: Specified, header: Wire, /) -> bool:
    """A header checksum of zero means that there is none."""
    return header.header_crc == 0 or golden(server).header_crc_ok(header)


@mutant(Specified.header_crc_ok)
def knows_header_crcs_by_heart(server: Specified, header: Wire, /) -> bool:
    """The header checksum may be that of any kind of frame."""
    known = (server.checksum(prefix(flags)) for flags in (4, 8, 0x10, 0x20, 0x40))
    return header.header_crc in known or golden(server).header_crc_ok(header)


@mutant(Specified.header_crc_ok)
def accepts_both_polynomials(_server: Specified, header: Wire, /) -> bool:
    """Headers of either polynomial are served on one connection."""
    head = prefix(header.flags, header.magic, header.version, header.reserved)
    return header.header_crc in (castagnoli(head), ieee(head))


@mutant(Specified.length_ok)
def has_no_payload_limit(_server: Specified, _length: int, /) -> bool:
    """Whatever length is announced is awaited."""
    return True


@mutant(Specified.length_ok)
def has_a_limit_one_byte_too_high(_server: Specified, length: int, /) -> bool:
    """One byte more than allowed is awaited."""
    return length <= 16 * 1024 * 1024 + 6


@mutant(Specified.payload_crc_ok)
def skips_the_payload_crc(_server: Specified, _header: Wire, _payload: bytes, /) -> bool:
    """The payload checksum is not looked at."""
    return True


@mutant(Specified.payload_crc_ok)
def takes_payload_crc_zero_for_none(server: Specified, header: Wire, payload: bytes, /) -> bool:
    """A payload checksum of zero means that there is none."""
    return header.payload_crc == 0 or golden(server).payload_crc_ok(header, payload)


@mutant(Specified.payload_crc_ok)
def skips_the_payload_crc_of_control(server: Specified, header: Wire, payload: bytes, /) -> bool:
    """The payload checksum of control frames is not looked at."""
    return bool(header.flags & CONTROL) or golden(server).payload_crc_ok(header, payload)


@mutant(Specified.last_words)
def explains_bad_headers(server: Specified, _header: Wire, /) -> Replies:
    """A bad header is answered with an error before the connection is closed."""
    return [server.error(0x02, "that was not LWP", {})]


@mutant(Specified.oversize_words, only="specified")
def closes_oversize_without_a_word(_server: Specified, _header: Wire, /) -> Replies:
    """An oversize frame closes the connection, and the client never learns why."""
    return []


@mutant(Specified.oversize_words)
def acks_oversize(_server: Specified, header: Wire, /) -> Replies:
    """An oversize Ingest is acknowledged before the connection is closed."""
    return [Reply(ACK, header.batch_id)]


@mutant(Specified.kept)
def forgets_half_a_header(_server: Specified, tail: bytes, _whole: int, /) -> bytes:
    """Less than a header at the end of a read is dropped."""
    return tail if len(tail) >= SIZE else b""


@mutant(Specified.kept)
def forgets_half_a_payload(_server: Specified, tail: bytes, _whole: int, /) -> bytes:
    """A header whose payload is not there yet is dropped."""
    return tail if len(tail) < SIZE else b""


@mutant(Specified.kept)
def forgets_what_follows_a_frame(_server: Specified, tail: bytes, whole: int, /) -> bytes:
    """The beginning of a frame after a whole one is dropped."""
    return b"" if whole else tail


@mutant(Specified.served)
def serves_one_frame_a_read(_server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """Of the frames of one read only the first is served."""
    return frames[:1]


@mutant(Specified.kind, only="specified")
def takes_the_first_kind(server: Specified, header: Wire, /) -> str:
    """Of two kind flags one wins."""
    if header.flags & KEEPALIVE:
        return "keepalive"
    return golden(server).kind(header)


@mutant(Specified.kind, only="specified")
def ignores_the_encrypted_flag(server: Specified, header: Wire, /) -> str:
    """An Ingest that claims to be encrypted is stored as it is."""
    return golden(server).kind(header._replace(flags=header.flags & ~0x02))


@mutant(Specified.kind, only="specified")
def takes_any_payload_for_ingest(server: Specified, header: Wire, /) -> str:
    """A payload without a kind flag is an Ingest."""
    return "ingest" if header.flags == 0 else golden(server).kind(header)


@mutant(Specified.kind, only="deployed")
def refuses_two_kinds(server: Specified, header: Wire, /) -> str:
    """Two kind flags are refused, which the published server does not do."""
    both = header.flags & KEEPALIVE and header.flags & ACK
    return "ambiguous" if both else golden(server).kind(header)


@mutant(Specified.kind, only="deployed")
def refuses_the_encrypted_flag(server: Specified, header: Wire, /) -> str:
    """The Encrypted flag is refused, which the published server does not do."""
    return "ambiguous" if header.flags & 0x02 else golden(server).kind(header)


@mutant(Specified.kind, only="deployed")
def passes_over_payloads_without_a_kind(server: Specified, header: Wire, /) -> str:
    """A payload without a kind flag is passed over."""
    return "nothing" if header.flags == 0 else golden(server).kind(header)


@mutant(Specified.arranged)
def sends_keepalives_first(server: Specified, replies: Replies, /) -> Replies:
    """Keepalives overtake every other answer of the same read."""
    return sorted(golden(server).arranged(replies), key=lambda reply: reply.flags != KEEPALIVE)


@mutant(Specified.arranged, only="specified")
def sends_acks_last(_server: Specified, replies: Replies, /) -> Replies:
    """Acks leave after every other answer of the same read."""
    return sorted(replies, key=lambda reply: reply.flags == ACK)


@mutant(Specified.arranged)
def sends_acks_backwards(server: Specified, replies: Replies, /) -> Replies:
    """The Acks of one read leave in reverse."""
    acks = [reply for reply in replies if reply.flags == ACK]
    return [acks.pop() if r.flags == ACK else r for r in golden(server).arranged(replies)]


@mutant(Specified.arranged)
def acks_the_last_batch_only(server: Specified, replies: Replies, /) -> Replies:
    """The Acks of one read are folded into the last one."""
    last = [reply for reply in replies if reply.flags == ACK][-1:]
    return [r for r in golden(server).arranged(replies) if r.flags != ACK or r in last]


@mutant(Specified.encode)
def sends_acks_with_a_bad_crc(server: Specified, reply: Reply, /) -> bytes:
    """The header checksum of Acks is wrong."""
    data = golden(server).encode(reply)
    return data if reply.flags != ACK else data[:8] + b"\0\0\0\0" + data[12:]


@mutant(Specified.encode)
def sends_acks_of_version_2(server: Specified, reply: Reply, /) -> bytes:
    """Acks are of a later version."""
    data = golden(server).encode(reply)
    if reply.flags != ACK:
        return data
    head = prefix(ACK, version=2)
    return head + server.checksum(head).to_bytes(4, "little") + data[12:]


@mutant(Specified.encode)
def leaves_out_payload_crcs(server: Specified, reply: Reply, /) -> bytes:
    """The payload checksum of FetchResponses is 0."""
    data = golden(server).encode(reply)
    if reply.flags != CONTROL or reply.batch_id != FETCH_RESPONSE:
        return data
    return data[:36] + b"\0\0\0\0" + data[40:]


@mutant(Specified.ambient)
def refuses_client_acks(server: Specified, _connection: Connection, frame: Wire, /) -> Replies:
    """An Ack from a client is answered with an error."""
    return [server.error(0x04, "no Ack expected", {})] if frame.flags & ACK else []


@mutant(Specified.ambient)
def refuses_client_backpressure(
    server: Specified, _connection: Connection, frame: Wire, /
) -> Replies:
    """A Backpressure frame from a client is answered with an error."""
    return [server.error(0x04, "no Backpressure", {})] if frame.flags & BACKPRESSURE else []


@mutant(Specified.ambient)
def hangs_up_on_client_acks(_server: Specified, connection: Connection, frame: Wire, /) -> Replies:
    """An Ack from a client closes the connection."""
    connection.closing = connection.closing or bool(frame.flags & ACK)
    return []


@mutant(Specified.keepalives)
def answers_no_keepalive(_server: Specified, _frame: Wire, /) -> Replies:
    """Keepalives are not answered."""
    return []


@mutant(Specified.keepalives)
def answers_keepalives_twice(_server: Specified, _frame: Wire, /) -> Replies:
    """Every Keepalive is answered twice."""
    return [Reply(KEEPALIVE), Reply(KEEPALIVE)]


@mutant(Specified.keepalives)
def stamps_keepalives(_server: Specified, _frame: Wire, /) -> Replies:
    """The Keepalive that answers carries a timestamp."""
    return [Reply(KEEPALIVE, timestamp=1_706_918_400_000_000_000)]


@mutant(Specified.keepalives)
def acks_keepalives(_server: Specified, frame: Wire, /) -> Replies:
    """A Keepalive is answered with an Ack."""
    return [Reply(ACK, frame.batch_id)]


@mutant(Specified.served)
def answers_one_keepalive_a_read(_server: Specified, frames: Sequence[Wire], /) -> Sequence[Wire]:
    """Keepalives that arrive together are answered once."""
    pings = [frame for frame in frames if frame.flags == KEEPALIVE]
    return [frame for frame in frames if frame.flags != KEEPALIVE or frame is pings[0]]
