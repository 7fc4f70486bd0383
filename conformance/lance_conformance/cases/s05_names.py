"""Cases about topic names (LWP sections 5.3, 5.7 and 12.2; AMB-24, AMB-34)."""

import unicodedata

from lance_conformance.cases.registry import case
from lance_conformance.peer.dialogue import Dialogue
from lance_conformance.peer.expect import topic_response
from lance_conformance.peer.verdict import NotApplicable
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import create_topic, read_json
from lance_conformance.wire.frame import Command

LONGEST = 255


async def _refused(
    c: Dialogue, name: bytes, cite: str, *codes: int, text: str = "", right: str = ""
) -> None:
    """A CreateTopic with this name is refused, one with a right name is not."""
    refused = [c.error(*(codes or (ErrorCode.INVALID_TOPIC_NAME,)), cite=cite, text=text)]
    await c.duel(
        create_topic(right or c.name()),
        create_topic(name),
        answer=topic_response("5.3/answer"),
        specified=refused,
        deployed=refused,
    )


def _padded(c: Dialogue, size: int) -> str:
    name = c.name("-")
    return name + "x" * (size - len(name))


async def kept_or_refused(c: Dialogue, tail: str) -> None:
    """A name beyond letters, digits and dashes comes back as it was, or is refused as such."""
    name = c.name(tail)
    refused = c.error(ErrorCode.INVALID_TOPIC_NAME, cite="AMB-24", text="invalid characters")
    kept = topic_response("5.3/name-utf8-kept")
    c.side.send(create_topic(name))
    event = await c.expect(c.side, specified=[kept, refused], deployed=[refused])
    if getattr(event, "batch_id", None) == Command.TOPIC_RESPONSE:
        body = read_json(getattr(event, "payload", b"")) or {}
        c.check(body.get("name") == name, "field:name", f"{name!r} came back as {body!r}")


@case("name/empty", "5.7/name-required")
async def empty(c: Dialogue) -> None:
    """A topic without a name is refused."""
    codes = (ErrorCode.INVALID_TOPIC_NAME, ErrorCode.INVALID_PAYLOAD)
    await _refused(c, b"", "5.7/name-required", *codes, text="name required")


@case("name/longest", "5.3/name-length")
async def longest(c: Dialogue) -> None:
    """A name of 255 bytes is accepted and comes back whole."""
    name = _padded(c, LONGEST)
    frame = await c.side.ask(create_topic(name), topic_response("5.3/name-length"))
    body = read_json(frame.payload) or {}
    c.check(body.get("name") == name, "field:name", "255 bytes of name must come back")


@case("name/too-long", "5.3/name-length")
async def too_long(c: Dialogue) -> None:
    """A name of 256 bytes is refused."""
    right, wrong = _padded(c, LONGEST), _padded(c, LONGEST + 1)
    await _refused(c, wrong.encode(), "5.3/name-length", right=right)


@case("name/too-long-in-bytes", "5.3/name-length", dialects=("specified",), quick=False)
async def too_long_in_bytes(c: Dialogue) -> None:
    """The limit of 255 counts bytes, not characters."""
    name = c.name("-")
    wrong = name + "ü" * (LONGEST - len(name))
    await _refused(c, wrong.encode(), "5.3/name-length")


@case("name/not-utf8", "5.3/name-utf8")
async def not_utf8(c: Dialogue) -> None:
    """A name that is not UTF-8 is refused as InvalidTopicName."""
    wrong = c.name("-").encode() + b"\xc3\x28"
    await _refused(c, wrong, "AMB-34")


@case("name/slash", "12.2/name-characters")
async def slash(c: Dialogue) -> None:
    """A name with a slash is refused."""
    await _refused(c, c.name("/x").encode(), "AMB-24")


@case("name/control-character", "12.2/name-characters")
async def control_character(c: Dialogue) -> None:
    """A name with a line feed is refused."""
    await _refused(c, c.name("\n").encode(), "AMB-24")


@case("name/nul", "12.2/name-characters", quick=False)
async def nul(c: Dialogue) -> None:
    """A name with a NUL byte is refused."""
    await _refused(c, c.name("\0x").encode(), "AMB-24")


@case("name/utf8", "5.3/name-utf8-kept", quick=False)
async def utf8(c: Dialogue) -> None:
    """A name beyond ASCII comes back as it was, or is refused as InvalidTopicName.

    The published server allows letters, digits and dashes only.
    """
    await kept_or_refused(c, "-łódź")


@case("name/nfc", "5.3/name-nfc", dialects=("specified",), quick=False)
async def nfc(c: Dialogue) -> None:
    """Two spellings of one name (NFC and NFD) are one name."""
    composed = c.name("-é")
    refused = c.error(ErrorCode.INVALID_TOPIC_NAME, cite="AMB-24")
    frame = await c.side.ask(create_topic(composed), topic_response("5.3/answer"), refused)
    if frame.batch_id == Command.ERROR_RESPONSE:
        raise NotApplicable("the target allows ASCII names only")
    spelled = unicodedata.normalize("NFD", composed)
    taken = c.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="AMB-24")
    c.side.send(create_topic(spelled))
    await c.expect(c.side, specified=[taken], deployed=[])
