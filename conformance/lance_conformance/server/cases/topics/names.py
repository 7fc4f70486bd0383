"""Cases about topic names (LWP sections 5.3, 5.7 and 12.2; AMB-24, AMB-34)."""

import unicodedata
from functools import partial

from lance_conformance.engine.failures import NotApplicable
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.cases.variation.common import register
from lance_conformance.server.expect import topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    create_topic,
    create_topic_with_retention,
    delete_topic,
    read_json,
)
from lance_conformance.wire.frame import Command

LONGEST = 255
CONTROLS = (0x01, 0x1F, 0x7F, 0x80, 0x85, 0x9F)
"""Characters of the category Cc."""
LOOKS = (0x061C, 0x200E, 0x200F, 0x202A, 0x202E, 0x2066, 0x2069, 0x2028, 0x2029)
"""Controls of bidirectional text, and the separators of lines and paragraphs (AMB-24)."""


async def _refused(
    ctx: CaseContext, name: bytes, cite: str, *codes: int, text: str = "", right: str = ""
) -> None:
    """A CreateTopic with this name is refused, one with a right name is not."""
    refused = [ctx.error(*(codes or (ErrorCode.INVALID_TOPIC_NAME,)), cite=cite, text=text)]
    await ctx.assert_pair(
        create_topic(right or ctx.name()),
        create_topic(name),
        answer=topic_response("5.3/answer"),
        specified=refused,
        deployed=refused,
    )


def _padded(ctx: CaseContext, size: int) -> str:
    name = ctx.name("-")
    return name + "x" * (size - len(name))


async def kept_or_refused(ctx: CaseContext, tail: str) -> None:
    """A name beyond letters, digits and dashes comes back as it was, or is refused as such."""
    name = ctx.name(tail)
    refused = ctx.error(ErrorCode.INVALID_TOPIC_NAME, cite="AMB-24", text="invalid characters")
    kept = topic_response("5.3/name-utf8-kept")
    ctx.side.send(create_topic(name))
    event = await ctx.expect(ctx.side, specified=[kept, refused], deployed=[refused])
    if getattr(event, "batch_id", None) == Command.TOPIC_RESPONSE:
        body = read_json(getattr(event, "payload", b"")) or {}
        ctx.check(body.get("name") == name, "field:name", f"{name!r} came back as {body!r}")


@case("name/empty", "5.7/name-required")
async def empty(ctx: CaseContext) -> None:
    """A topic without a name is refused."""
    codes = (ErrorCode.INVALID_TOPIC_NAME, ErrorCode.INVALID_PAYLOAD)
    await _refused(ctx, b"", "5.7/name-required", *codes, text="name required")


@case("name/longest", "5.3/name-length")
async def longest(ctx: CaseContext) -> None:
    """A name of 255 bytes is accepted and comes back whole."""
    name = _padded(ctx, LONGEST)
    frame = await ctx.side.ask(create_topic(name), topic_response("5.3/name-length"))
    body = read_json(frame.payload) or {}
    ctx.check(body.get("name") == name, "field:name", "255 bytes of name must come back")


@case("name/too-long", "5.3/name-length")
async def too_long(ctx: CaseContext) -> None:
    """A name of 256 bytes is refused."""
    right, wrong = _padded(ctx, LONGEST), _padded(ctx, LONGEST + 1)
    await _refused(ctx, wrong.encode(), "5.3/name-length", right=right)


@case("name/too-long-in-bytes", "5.3/name-length", dialects=("specified",), quick=False)
async def too_long_in_bytes(ctx: CaseContext) -> None:
    """The limit of 255 counts bytes, not characters."""
    name = ctx.name("-")
    wrong = name + "ü" * (LONGEST - len(name))
    await _refused(ctx, wrong.encode(), "5.3/name-length")


@case("name/not-utf8", "5.3/name-utf8")
async def not_utf8(ctx: CaseContext) -> None:
    """A name that is not UTF-8 is refused as InvalidTopicName."""
    wrong = ctx.name("-").encode() + b"\xc3\x28"
    await _refused(ctx, wrong, "AMB-34")


@case("name/slash", "12.2/name-characters")
async def slash(ctx: CaseContext) -> None:
    """A name with a slash is refused."""
    await _refused(ctx, ctx.name("/x").encode(), "AMB-24")


@case("name/control-character", "12.2/name-characters")
async def control_character(ctx: CaseContext) -> None:
    """A name with a line feed is refused."""
    await _refused(ctx, ctx.name("\n").encode(), "AMB-24")


@case("name/nul", "12.2/name-characters", quick=False)
async def nul(ctx: CaseContext) -> None:
    """A name with a NUL byte is refused."""
    await _refused(ctx, ctx.name("\0x").encode(), "AMB-24")


@case("name/utf8", "5.3/name-utf8-kept", quick=False)
async def utf8(ctx: CaseContext) -> None:
    """A name beyond ASCII comes back as it was, or is refused as InvalidTopicName.

    The published server allows letters, digits and dashes only.
    """
    await kept_or_refused(ctx, "-łódź")


@case("name/nfc", "5.3/name-nfc", dialects=("specified",), quick=False)
async def nfc(ctx: CaseContext) -> None:
    """Two spellings of one name (NFC and NFD) are one name."""
    composed = ctx.name("-é")
    refused = ctx.error(ErrorCode.INVALID_TOPIC_NAME, cite="AMB-24")
    frame = await ctx.side.ask(create_topic(composed), topic_response("5.3/answer"), refused)
    if frame.batch_id == Command.ERROR_RESPONSE:
        raise NotApplicable("the target allows ASCII names only")
    spelled = unicodedata.normalize("NFD", composed)
    taken = ctx.error(ErrorCode.TOPIC_ALREADY_EXISTS, cite="AMB-24")
    ctx.side.send(create_topic(spelled))
    await ctx.expect(ctx.side, specified=[taken], deployed=[])


async def _character(ctx: CaseContext, code: int, cite: str) -> None:
    """Both commands that create a topic refuse it, within a name and at its end."""
    refused = ctx.error(ErrorCode.INVALID_TOPIC_NAME, cite=cite)
    name = ctx.name(f"-{chr(code)}")
    for wrong in (name, f"{name}x"):
        requests = [create_topic(wrong)]
        if "retention" not in ctx.conditions.missing | ctx.conditions.without:
            requests.append(create_topic_with_retention(wrong, 0, 0))
        for request in requests:
            ctx.side.send_faulty(request, "payload")
            await ctx.side.expect(refused)


async def _path(ctx: CaseContext, name: str) -> None:
    """It is refused; a target that takes it is asked to delete what it has just created."""
    request = create_topic(name)
    ctx.side.send_faulty(request, "payload")
    taken = ErrorCode.INVALID_TOPIC_NAME, ErrorCode.TOPIC_ALREADY_EXISTS
    created = topic_response("5.3/answer")
    event = await ctx.side.frame(ctx.error(*taken, cite="12.2/name-looks"), created)
    topic_id = (read_json(event.payload) or {}).get("id")
    if event.batch_id == Command.TOPIC_RESPONSE and isinstance(topic_id, int):
        await ctx.side.ask(delete_topic(topic_id), topic_response("5.6/delete"))
    ctx.check(event.batch_id == Command.ERROR_RESPONSE, "field:name", f"{name!r} became a topic")


for _code in (*CONTROLS, *LOOKS):
    _clause = "12.2/name-characters" if _code in CONTROLS else "12.2/name-looks"
    register(
        f"name/u-{_code:04x}", _clause, f"U+{_code:04X} is in no topic name.",
        partial(_character, code=_code, cite=_clause), dialects=("specified",),
    )  # fmt: skip
for _name, _slug in ((".", "dot"), ("..", "dots")):
    register(
        f"name/{_slug}", "12.2/name-looks", f"{_name} is no topic name.",
        partial(_path, name=_name), dialects=("specified",),
    )  # fmt: skip
