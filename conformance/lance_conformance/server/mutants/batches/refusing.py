"""Servers that are wrong about headers of answers, refusals, and what connections share."""

import json

from lance_conformance.server.golden.codec import Reply, Wire
from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Body, Refused, Replies, Topic
from lance_conformance.server.mutants.predicates import register
from lance_conformance.server.mutants.registry import golden, mutant

CONTROL = 0x40
LIMIT = 16 * 1024 * 1024 + 5


@mutant(Specified.encode)
def dates_topic_responses(server: Specified, reply: Reply, /) -> bytes:
    """The header of a TopicResponse has a timestamp."""
    dated = reply._replace(timestamp=1) if reply.batch_id == 0x80 else reply
    return golden(server).encode(dated if reply.flags == CONTROL else reply)


@mutant(Specified.encode)
def counts_records_in_the_header(server: Specified, reply: Reply, /) -> bytes:
    """The header of a FetchResponse has the record count, too."""
    is_fetched = reply.flags == CONTROL and reply.batch_id == 0x11
    return golden(server).encode(reply._replace(records=1) if is_fetched else reply)


@mutant(Specified.error)
def names_a_topic_in_errors(
    server: Specified, code: int, words: str, details: dict[str, object], /
) -> Reply:
    """The header of an ErrorResponse has a topic."""
    return golden(server).error(code, words, details)._replace(topic=1)


@mutant(Specified.arranged)
def says_errors_twice(server: Specified, replies: Replies, /) -> Replies:
    """Every ErrorResponse is sent twice."""
    return [
        each
        for reply in golden(server).arranged(replies)
        for each in (reply,) * (2 if reply.flags == CONTROL and reply.batch_id == 0xFF else 1)
    ]


@mutant(Specified.arranged)
def acks_what_it_refuses(server: Specified, replies: Replies, /) -> Replies:
    """A batch for an unknown topic is refused, and then acknowledged."""
    refused = any(b"Unknown topic" in reply.payload for reply in replies)
    return golden(server).arranged([*replies, Reply(0x08, 1)] if refused else replies)


@mutant(Specified.arranged)
def sends_acks_first(_server: Specified, replies: Replies, /) -> Replies:
    """Acks overtake all other answers of the same read."""
    return sorted(replies, key=lambda reply: reply.flags != 0x08)


@mutant(Specified.arranged)
def sends_errors_last(server: Specified, replies: Replies, /) -> Replies:
    """Answers of the same read overtake errors."""
    return sorted(golden(server).arranged(replies), key=lambda reply: reply.batch_id == 0xFF)


@mutant(Specified.arranged)
def answers_backwards(server: Specified, replies: Replies, /) -> Replies:
    """Three commands or more of one read are answered in reverse."""
    commands = len(replies) > 2 and all(reply.flags == CONTROL for reply in replies)
    return replies[::-1] if commands else golden(server).arranged(replies)


@mutant(Specified.keepalives, only="specified")
def refuses_keepalives_of_subscribers(server: Specified, frame: Wire, /) -> Replies:
    """A Keepalive on a connection that is subscribed is an error."""
    if server.memory.speaker.subscriptions:
        return [server.error(0x04, "this connection is subscribed", {})]
    return golden(server).keepalives(frame)


@mutant(Specified.error, only="specified")
def counts_errors_from_1000(
    server: Specified, code: int, words: str, details: dict[str, object], /
) -> Reply:
    """Codes of errors have an offset of 1000."""
    return golden(server).error(code + 1000, words, details)


@mutant(Specified.error, only="specified")
def writes_json_by_hand(
    _server: Specified, code: int, words: str, details: dict[str, object], /
) -> Reply:
    """The JSON of an error is put together from strings, and quotes are not escaped."""
    more = f', "details": {json.dumps(details)}' if details else ""
    return Reply(CONTROL, 0xFF, f'{{"code": {code}, "message": "{words}"{more}}}'.encode())


@mutant(Specified.error, only="deployed")
def quotes_bytes_as_they_came(
    server: Specified, code: int, words: str, details: dict[str, object], /
) -> Reply:
    """A name that is not UTF-8 is quoted byte for byte."""
    reply = golden(server).error(code, words, details)
    return reply._replace(
        payload=reply.payload.replace("\N{REPLACEMENT CHARACTER}".encode(), b"\xff")
    )


@mutant(Specified.duplicate, only="specified")
def grows_tired_of_duplicates(server: Specified, topic: Topic, /) -> Topic:
    """The second time a name is taken, that is RateLimited."""
    scar = f"duplicate of {topic.id}"
    if scar in server.memory.scars:
        raise Refused(0x30, "not again")
    server.memory.scars.add(scar)
    return golden(server).duplicate(topic)


def _closes(
    name: str, title: str, code: int | None, batch_id: int | None, only: str | None
) -> None:
    def replacement(_server: Specified, refused: int, asked: int, /) -> bool:
        return not (code in (None, refused) and batch_id in (None, asked))

    register(Specified.stays_after, name, title, replacement, only)


_closes(
    "closes_after_get_of_nothing",
    "GetTopic of an unknown topic ends the connection.",
    0x10,
    0x04,
    None,
)
_closes(
    "closes_after_duplicates", "A topic name that is taken ends the connection.", 0x11, None, None
)
_closes(
    "closes_after_bad_names",
    "A topic name that is not allowed ends the connection.",
    0x12,
    None,
    None,
)
_closes(
    "closes_after_limits_for_nothing",
    "SetRetention that is refused ends the connection.",
    None,
    0x05,
    None,
)
_closes(
    "closes_after_short_fetches",
    "A Fetch that cannot be read ends the connection.",
    0x04,
    0x10,
    None,
)
_closes(
    "closes_after_unknown_commands",
    "A command that nobody defines ends the connection.",
    None,
    0x5A,
    None,
)
_closes(
    "closes_after_fetch_from_nothing",
    "A Fetch from an unknown topic ends the connection.",
    0x10,
    0x10,
    None,
)
_closes(
    "closes_after_subscribe_to_nothing",
    "A Subscribe that is refused ends the connection.",
    None,
    0x20,
    None,
)
_closes(
    "closes_after_delete_of_nothing",
    "DeleteTopic that is refused ends the connection.",
    None,
    0x02,
    None,
)


@mutant(Specified.details, only="specified")
def closes_after_bad_batches(server: Specified, frame: Wire, /) -> Body:
    """A batch that is refused ends the connection, unless only its topic is missing."""
    if frame.topic in server.memory.topics:
        server.memory.speaker.closing = True
    return golden(server).details(frame)


@mutant(Specified.spreads)
def ends_everybody_at_a_bad_magic(_server: Specified, fault: str, header: Wire | None, /) -> bool:
    """A bad magic on one connection ends all others."""
    return fault == "stream" and header is not None and header.magic != b"LANC"


@mutant(Specified.spreads)
def ends_everybody_at_a_bad_version(_server: Specified, fault: str, header: Wire | None, /) -> bool:
    """A bad version on one connection ends all others."""
    return fault == "stream" and header is not None and header.version != 1


@mutant(Specified.spreads)
def ends_everybody_at_a_bad_header_checksum(
    server: Specified, fault: str, header: Wire | None, /
) -> bool:
    """A bad header checksum on one connection ends all others."""
    plain = fault == "stream" and header is not None and header.magic == b"LANC"
    return plain and header is not None and header.version == 1 and not server.header_crc_ok(header)


@mutant(Specified.spreads)
def ends_everybody_at_a_bad_payload_checksum(
    server: Specified, fault: str, header: Wire | None, /
) -> bool:
    """A bad payload checksum on one connection ends all others."""
    if fault != "stream" or header is None or header.length > LIMIT:
        return False
    return header.magic == b"LANC" and header.version == 1 and server.header_crc_ok(header)


@mutant(Specified.spreads)
def ends_everybody_at_an_oversize_frame(
    _server: Specified, fault: str, header: Wire | None, /
) -> bool:
    """A frame that is too large on one connection ends all others."""
    return fault == "stream" and header is not None and header.length > LIMIT


@mutant(Specified.spreads)
def ends_everybody_when_one_is_lost(
    _server: Specified, fault: str, _header: Wire | None, /
) -> bool:
    """A connection that is lost in the middle of a frame ends all others."""
    return fault == "lost"


@mutant(Specified.spreads)
def ends_everybody_at_a_refusal(_server: Specified, fault: str, header: Wire | None, /) -> bool:
    """GetTopic of an unknown topic ends all other connections."""
    return fault == "refused" and header is not None and header.batch_id == 0x04
