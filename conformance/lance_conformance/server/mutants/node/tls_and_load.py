"""Servers that are wrong about TLS, and about who waits for whom."""

import ssl

from lance_conformance.server.golden.codec import SIZE, parse
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Replies
from lance_conformance.server.mutants.registry import golden, mutant

# -- TLS -------------------------------------------------------------------------------------------


@mutant(Specified.client_certificates)
def asks_for_no_certificate(_server: Specified, _demanded: bool, /) -> ssl.VerifyMode:
    """Client certificates are not asked for, though they are demanded."""
    return ssl.CERT_NONE


@mutant(Specified.client_certificates)
def takes_clients_without_certificate(_server: Specified, _demanded: bool, /) -> ssl.VerifyMode:
    """A client certificate is checked when there is one, and is not demanded."""
    return ssl.CERT_OPTIONAL


@mutant(Specified.plain_text_ok)
def serves_plain_text_on_the_tls_port(_server: Specified) -> bool:
    """Who speaks without TLS is served without it, as the published server serves everybody."""
    return True


@mutant(Specified.opened_records)
def drops_small_records(_server: Specified, records: list[bytes], /) -> bytes:
    """TLS records of less than eight bytes are lost."""
    return b"".join(record for record in records if len(record) >= 8)


@mutant(Specified.opened_records)
def takes_a_record_for_a_frame(_server: Specified, records: list[bytes], /) -> bytes:
    """Of a TLS record with several frames only the first is taken."""
    return b"".join(record[: 44 + int.from_bytes(record[32:36], "little")] for record in records)


@mutant(Specified.opened_records)
def loses_what_follows_a_full_record(_server: Specified, records: list[bytes], /) -> bytes:
    """The last bytes of a full TLS record are lost."""
    return b"".join(record[:16_000] for record in records)


@mutant(Specified.sealed)
def cuts_large_answers(_server: Specified, data: bytes, /) -> bytes:
    """Answers larger than a TLS record are cut."""
    return data[:16_384]


@mutant(Specified.waits_for_handshakes)
def one_handshake_at_a_time(_server: Specified, unfinished: int, /) -> bool:
    """A handshake that is not finished holds up all others."""
    return unfinished > 0


@mutant(Specified.waits_for_silence)
def one_visitor_at_a_time(_server: Specified, silent: int, /) -> bool:
    """A client that does not begin its handshake holds up all others."""
    return silent > 0


@mutant(Specified.hangs_up_on_noise)
def listens_to_noise(_server: Specified) -> bool:
    """A connection that begins with noise is left open."""
    return False


@mutant(Specified.hangs_up_inside)
def never_ends_tls(_server: Specified) -> bool:
    """A TLS connection is not ended where a plain one would be."""
    return False


# -- the others ------------------------------------------------------------------------------------


@mutant(Specified.waits_for_others)
def waits_for_unfinished_frames(
    _server: Specified, _crowd: int, unfinished: int, _unread: int, /
) -> bool:
    """Nobody is served while ten peers are in the middle of a frame."""
    return unfinished >= 10


@mutant(Specified.kept)
def stores_batches_as_they_come(server: Specified, tail: bytes, frames: int, /) -> bytes:
    """Of a large batch that is still coming the beginning is stored."""
    if len(tail) > 40_000:
        topic = server.memory.topics.get(parse(tail).topic)
        if topic is not None and not topic.log:
            topic.log = tail[SIZE : SIZE + 1000]
    return golden(server).kept(tail, frames)


@mutant(Specified.waits_for_others)
def waits_for_slow_readers(
    _server: Specified, _crowd: int, _unfinished: int, unread: int, /
) -> bool:
    """Nobody is served while a peer leaves answers unread."""
    return unread > 0


@mutant(Specified.waits_for_others)
def serves_fifty_at_most(_server: Specified, crowd: int, _unfinished: int, _unread: int, /) -> bool:
    """Nobody is served while there are more than fifty connections."""
    return crowd > 50


@mutant(Specified.delivered)
def drops_answers_for_slow_readers(_server: Specified, data: bytes, unread: int, /) -> bytes:
    """Answers are dropped once a megabyte is unread."""
    return b"" if unread > 1_000_000 else data


@mutant(Specified.arranged)
def forgets_acks_of_long_pipelines(server: Specified, replies: Replies, /) -> Replies:
    """Of the answers to one read no more than three hundred are sent."""
    return golden(server).arranged(replies)[:300]


@mutant(Specified.has_room)
def counts_those_who_left(_server: Specified, silent: int, /) -> bool:
    """Connections that came, said nothing and left still count, and fifty are all there may be."""
    return silent <= 50
