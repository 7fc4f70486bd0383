"""Cases about the dialect axes and the polynomial (LWP section 9, AMB-01, AMB-05, AMB-10)."""

from dataclasses import replace

from lance_conformance.dialect import CHECKSUMS
from lance_conformance.engine.expectations import closed
from lance_conformance.engine.failures import Blocked, Failure
from lance_conformance.server.case_context import ALIVE, CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import answer, error_body_fault, keepalive
from lance_conformance.wire.control import KEEPALIVE, LIST_TOPICS, fetch, get_topic, read_json
from lance_conformance.wire.frame import Command


@case("axis/checksum", "9.1/crc32c")
async def checksum(ctx: CaseContext) -> None:
    """The target speaks the checksum it is held to: CRC32C, unless another dialect is asked for."""
    peer = await ctx.open(ctx.conditions.demanded)
    await peer.ask(LIST_TOPICS, replace(ALIVE, cite="9.1/crc32c"))


@case("axis/errors", "12.1/json")
async def errors(ctx: CaseContext) -> None:
    """The target writes errors as it is held to: JSON, unless another dialect is asked for."""
    demanded = ctx.conditions.demanded.errors
    frame = await ctx.side.ask(
        get_topic(ctx.unknown_topic), answer(Command.ERROR_RESPONSE, "5.5/not-found")
    )
    body = read_json(frame.payload)
    if demanded == "text":
        ctx.check(body is None, "error-form", "the error must be plain text, but is a JSON object")
        return
    ctx.check(body is not None, "error-form", "the error must be a JSON object (section 12.1)")
    fault = error_body_fault(body or {})
    ctx.check(fault is None, fault or "", f"the JSON of the error is wrong in {fault}")


@case("axis/fetch-header", "5.9/header")
async def fetch_header(ctx: CaseContext) -> None:
    """A FetchResponse has the 16-byte header: its byte count is its payload less 16."""
    topic = await ctx.topic()
    await ctx.store(topic, ctx.values(3))
    frame = await ctx.side.ask(
        fetch(topic.id, 0, 65536), answer(Command.FETCH_RESPONSE, "5.9/answer")
    )
    announced = int.from_bytes(frame.payload[8:12], "little")
    ctx.check(
        announced == len(frame.payload) - ctx.conditions.demanded.fetch_header,
        "fetch-header",
        f"bytes 8-11 of a FetchResponse of {len(frame.payload)} bytes say {announced}",
    )


@case("crc/wrong-polynomial-closes", "11.3/polynomial", pinned_only=True)
async def wrong_polynomial_closes(ctx: CaseContext) -> None:
    """The other polynomial's header checksum closes the connection."""
    wrong = replace(KEEPALIVE, header_crc=ctx.dialect.other_checksum(KEEPALIVE.prefix))
    end = [closed("11.3/polynomial")]
    try:
        await ctx.assert_pair(KEEPALIVE, wrong, answer=keepalive(), specified=end, deployed=end)
    except Failure as failure:
        if isinstance(failure, Blocked) or not await _serves_the_other(ctx):
            raise
        raise failure.told_as(Failure, SERVES_BOTH) from failure


SERVES_BOTH = (
    "the target serves both checksums, and is held to one: pin the server to the dialect, or leave "
    "out --dialect"
)


async def _serves_the_other(ctx: CaseContext) -> bool:
    """Whether a connection that begins with the other polynomial is answered in it."""
    others = [each for each in CHECKSUMS if each != ctx.dialect.checksum]
    try:
        peer = await ctx.open(replace(ctx.dialect, checksum=others[0]))
        await peer.ask(KEEPALIVE, keepalive())
    except Failure:
        return False
    return True


@case("crc/polynomial-change-closes", "11.3/polynomial")
async def polynomial_change_closes(ctx: CaseContext) -> None:
    """A connection that has begun with one polynomial is closed by the other one.

    This holds for a target that serves both, too: the first header decides.
    """
    peer = await ctx.open()
    async with ctx.precondition("a Keepalive in the dialect of the connection"):
        await peer.ask(KEEPALIVE, keepalive())
    other = ctx.dialect.other_checksum(KEEPALIVE.prefix)
    peer.send_faulty(replace(KEEPALIVE, header_crc=other), "header_crc")
    await peer.expect(closed("11.3/polynomial"))
    await ctx.still_alive()
