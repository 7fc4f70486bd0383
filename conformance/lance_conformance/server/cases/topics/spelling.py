"""More cases about topic names: which bytes are one, and which are not (AMB-24, AMB-34)."""

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.cases.topics.names import kept_or_refused
from lance_conformance.server.expect import topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import create_topic, read_json


async def _refused(ctx: CaseContext, tail: bytes, cite: str) -> None:
    """A name that ends so is refused, one that does not is accepted."""
    refused = [ctx.error(ErrorCode.INVALID_TOPIC_NAME, cite=cite, text="invalid")]
    await ctx.assert_pair(
        create_topic(ctx.name()),
        create_topic(ctx.name("-").encode() + tail),
        answer=topic_response("5.3/answer"),
        specified=refused,
        deployed=refused,
    )


@case("name/overlong", "5.3/name-utf8", quick=False)
async def overlong(ctx: CaseContext) -> None:
    """A slash in two bytes is not UTF-8, and no way around the rule against slashes."""
    await _refused(ctx, b"\xc0\xafx", "AMB-34")


@case("name/surrogate", "5.3/name-utf8", quick=False)
async def surrogate(ctx: CaseContext) -> None:
    """Half a surrogate pair is not UTF-8."""
    await _refused(ctx, b"\xed\xa0\x80", "AMB-34")


@case("name/cut-character", "5.3/name-utf8", quick=False)
async def cut_character(ctx: CaseContext) -> None:
    """A character that lacks its last byte is not UTF-8."""
    await _refused(ctx, "ł".encode()[:1], "AMB-34")


@case("name/delete-character", "12.2/name-characters", quick=False)
async def delete_character(ctx: CaseContext) -> None:
    """A name with a DEL is refused: it is a control character like the 32 before the space."""
    await _refused(ctx, b"\x7f", "AMB-24")


@case("name/c1-control", "12.2/name-characters", quick=False)
async def c1_control(ctx: CaseContext) -> None:
    """A name with a control character beyond ASCII is refused."""
    await _refused(ctx, "\x85".encode(), "AMB-24")


@case("name/quotes", "5.3/name-utf8-kept", quick=False)
async def quotes(ctx: CaseContext) -> None:
    """A name with quotes and backslashes comes back whole out of its JSON, or is refused."""
    await kept_or_refused(ctx, '-"a\\b"')


@case("name/emoji", "5.3/name-utf8-kept", quick=False)
async def emoji(ctx: CaseContext) -> None:
    """A name with a character of four bytes comes back whole, or is refused."""
    await kept_or_refused(ctx, "-\N{GRINNING FACE}")


@case("name/dots-inside", "5.3/name-utf8-kept", quick=False)
async def dots_inside(ctx: CaseContext) -> None:
    """A name with dots inside comes back whole, or is refused."""
    await kept_or_refused(ctx, "-a..b.c")


@case("name/space", "5.3/name-utf8-kept", quick=False)
async def space(ctx: CaseContext) -> None:
    """A name with a space at its end comes back whole, or is refused."""
    await kept_or_refused(ctx, "-a ")


@case("name/case-matters", "5.3/name-case", quick=False)
async def case_matters(ctx: CaseContext) -> None:
    """Upper and lower case make two names."""
    lower, upper = ctx.name("-abc"), ""
    upper = lower.removesuffix("abc") + "ABC"
    for name in (lower, upper):
        frame = await ctx.side.ask(create_topic(name), topic_response("5.3/name-case"))
        said = (read_json(frame.payload) or {}).get("name")
        ctx.check(said == name, "field:name", f"the name must be {name!r}, is {said!r}")


TAILS = (
    " a", "-\u00e9", "-\u4e2d\u6587", "-\U0001f600", "-\U00020000", ".a", "_a", ":a",
    "-..a",
    "-#", "-%41", "-*?", "-<&>'\"", "-a\\b", "-~", "-\u00a0a",
)  # fmt: skip
"""Ends of names beyond letters, digits and dashes, all of which are allowed, or none."""


@case("name/all-or-plain", "5.3/name-utf8-kept", dialects=("specified",), quick=False)
async def all_or_plain(ctx: CaseContext) -> None:
    """A target that takes a name beyond letters, digits and dashes takes all and tells them whole.

    None of them has a slash, a control character, or one that changes how a name looks.
    """
    refused = ctx.error(ErrorCode.INVALID_TOPIC_NAME, cite="AMB-24", text="name")
    told: dict[str, object] = {}
    for tail in TAILS:
        name = ctx.name(tail)
        reply = await ctx.side.ask(create_topic(name), topic_response("5.3/answer"), refused)
        told[name] = (read_json(reply.payload) or {}).get("name")
    taken = {name: said for name, said in told.items() if said is not None}
    wrong = {name: said for name, said in taken.items() if said != name}
    ctx.check(not wrong, "field:name", f"names were created and are told otherwise: {wrong}")
    missing = [name for name in told if name not in taken]
    ctx.check(
        not taken or not missing, "names", f"of {len(told)} names these are refused: {missing}"
    )
