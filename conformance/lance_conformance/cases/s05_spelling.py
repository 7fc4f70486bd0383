"""More cases about topic names: which bytes are one, and which are not (AMB-24, AMB-34)."""

from lance_conformance.cases.registry import case
from lance_conformance.cases.s05_names import kept_or_refused
from lance_conformance.peer.dialogue import Dialogue
from lance_conformance.peer.expect import topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import create_topic, read_json


async def _refused(c: Dialogue, tail: bytes, cite: str) -> None:
    """A name that ends so is refused, one that does not is accepted."""
    refused = [c.error(ErrorCode.INVALID_TOPIC_NAME, cite=cite, text="invalid")]
    await c.duel(
        create_topic(c.name()),
        create_topic(c.name("-").encode() + tail),
        answer=topic_response("5.3/answer"),
        specified=refused,
        deployed=refused,
    )


@case("name/overlong", "5.3/name-utf8", quick=False)
async def overlong(c: Dialogue) -> None:
    """A slash in two bytes is no UTF-8, and no way around the rule against slashes."""
    await _refused(c, b"\xc0\xafx", "AMB-34")


@case("name/surrogate", "5.3/name-utf8", quick=False)
async def surrogate(c: Dialogue) -> None:
    """Half a surrogate pair is no UTF-8."""
    await _refused(c, b"\xed\xa0\x80", "AMB-34")


@case("name/cut-character", "5.3/name-utf8", quick=False)
async def cut_character(c: Dialogue) -> None:
    """A character that lacks its last byte is no UTF-8."""
    await _refused(c, "ł".encode()[:1], "AMB-34")


@case("name/delete-character", "12.2/name-characters", quick=False)
async def delete_character(c: Dialogue) -> None:
    """A name with a DEL is refused: it is a control character like the 32 before the space."""
    await _refused(c, b"\x7f", "AMB-24")


@case("name/c1-control", "12.2/name-characters", quick=False)
async def c1_control(c: Dialogue) -> None:
    """A name with a control character beyond ASCII is refused."""
    await _refused(c, "\x85".encode(), "AMB-24")


@case("name/quotes", "5.3/name-utf8-kept", quick=False)
async def quotes(c: Dialogue) -> None:
    """A name with quotes and backslashes comes back whole out of its JSON, or is refused."""
    await kept_or_refused(c, '-"a\\b"')


@case("name/emoji", "5.3/name-utf8-kept", quick=False)
async def emoji(c: Dialogue) -> None:
    """A name with a character of four bytes comes back whole, or is refused."""
    await kept_or_refused(c, "-\N{GRINNING FACE}")


@case("name/dots-inside", "5.3/name-utf8-kept", quick=False)
async def dots_inside(c: Dialogue) -> None:
    """A name with dots inside comes back whole, or is refused."""
    await kept_or_refused(c, "-a..b.c")


@case("name/space", "5.3/name-utf8-kept", quick=False)
async def space(c: Dialogue) -> None:
    """A name with a space at its end comes back whole, or is refused."""
    await kept_or_refused(c, "-a ")


@case("name/case-matters", "5.3/name-case", quick=False)
async def case_matters(c: Dialogue) -> None:
    """Upper and lower case make two names."""
    lower, upper = c.name("-abc"), ""
    upper = lower.removesuffix("abc") + "ABC"
    for name in (lower, upper):
        frame = await c.side.ask(create_topic(name), topic_response("5.3/name-case"))
        said = (read_json(frame.payload) or {}).get("name")
        c.check(said == name, "field:name", f"the name must be {name!r}, is {said!r}")
