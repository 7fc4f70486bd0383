"""Cases about the 44-byte header (LWP sections 3, 9 and 11)."""

from dataclasses import replace

from lance_conformance.engine.expectations import closed
from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import Quiet, ack, keepalive, topic_response
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import KEEPALIVE, get_topic, ingest
from lance_conformance.wire.frame import MAX_PAYLOAD, Flag, Frame


async def _closes(ctx: CaseContext, wrong: Frame, cite: str) -> None:
    """A Keepalive with one fault must end the connection, with no frame before."""
    end = [closed(cite)]
    await ctx.assert_pair(KEEPALIVE, wrong, answer=keepalive(), specified=end, deployed=end)


@case("hdr/magic-closes", "11.1/magic")
async def magic_closes(ctx: CaseContext) -> None:
    """A frame that does not begin with LANC closes the connection, without an error frame."""
    await _closes(ctx, replace(KEEPALIVE, magic=b"LANX"), "11.1/magic")


@case("hdr/version-0-closes", "11.2/version", quick=False)
async def version_0_closes(ctx: CaseContext) -> None:
    """A frame of protocol version 0 closes the connection."""
    await _closes(ctx, replace(KEEPALIVE, version=0), "11.2/version")


@case("hdr/version-2-closes", "11.2/version")
async def version_2_closes(ctx: CaseContext) -> None:
    """A frame of protocol version 2 closes the connection."""
    await _closes(ctx, replace(KEEPALIVE, version=2), "11.2/version")


@case("hdr/crc-bit-closes", "11.3/header-crc")
async def crc_bit_closes(ctx: CaseContext) -> None:
    """A header checksum with one bit inverted closes the connection."""
    right = ctx.dialect.compute(KEEPALIVE.prefix)
    await _closes(ctx, replace(KEEPALIVE, header_crc=right ^ 1), "11.3/header-crc")


@case("hdr/crc-zero-closes", "11.3/header-crc", quick=False)
async def crc_zero_closes(ctx: CaseContext) -> None:
    """A header checksum of zero is a wrong one, not a missing one."""
    await _closes(ctx, replace(KEEPALIVE, header_crc=0), "11.3/header-crc")


@case("hdr/crc-of-other-flags-closes", "9.3/header-crc-covers")
async def crc_of_other_flags_closes(ctx: CaseContext) -> None:
    """A header checksum that would be right for other flags closes the connection."""
    other = ctx.dialect.compute(Frame(flags=Flag.CONTROL).prefix)
    await _closes(ctx, replace(KEEPALIVE, header_crc=other), "9.3/header-crc-covers")


@case("hdr/reserved", "3.2/reserved")
async def reserved(ctx: CaseContext) -> None:
    """Reserved bytes that are not zero close the connection.

    The published server does not look at them.
    """
    await ctx.assert_pair(
        KEEPALIVE,
        replace(KEEPALIVE, reserved=0x0100),
        answer=keepalive(),
        specified=[closed("AMB-33")],
        deployed=[keepalive("AMB-33")],
    )


@case("hdr/flag-bit-7", "3.3/bit-7")
async def flag_bit_7(ctx: CaseContext) -> None:
    """Flag bit 7 closes the connection.

    The published server ignores it.
    """
    await ctx.assert_pair(
        KEEPALIVE,
        replace(KEEPALIVE, flags=Flag.KEEPALIVE | Flag.RESERVED),
        answer=keepalive(),
        specified=[closed("AMB-33")],
        deployed=[keepalive("AMB-33")],
    )


@case("hdr/kinds-ambiguous", "3.3/one-kind")
async def kinds_ambiguous(ctx: CaseContext) -> None:
    """A frame with two kind flags is refused as InvalidPayload.

    The published server takes Keepalive before Ack.
    """
    await ctx.assert_pair(
        KEEPALIVE,
        replace(KEEPALIVE, flags=Flag.KEEPALIVE | Flag.ACK),
        answer=keepalive(),
        specified=[ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-33")],
        deployed=[keepalive("AMB-33")],
    )


async def _ingest_with_flags(ctx: CaseContext, flags: int) -> None:
    frame = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))
    accepted = ack(frame.batch_id, "AMB-33")
    await ctx.assert_pair(
        frame,
        replace(frame, flags=flags),
        answer=ack(frame.batch_id),
        specified=[ctx.error(ErrorCode.INVALID_PAYLOAD, cite="AMB-33")],
        deployed=[accepted],
    )


@case("hdr/encrypted", "3.3/encrypted", quick=False)
async def encrypted(ctx: CaseContext) -> None:
    """An Ingest with the Encrypted flag, which nobody defines, is refused.

    The published server does not look at the flag.
    """
    await _ingest_with_flags(ctx, Flag.BATCH_MODE | Flag.ENCRYPTED)


@case("hdr/no-kind", "3.3/no-kind", quick=False)
async def no_kind(ctx: CaseContext) -> None:
    """A payload in a frame without a kind flag is refused as InvalidPayload.

    The published server takes it for an Ingest.
    """
    await _ingest_with_flags(ctx, 0)


@case("hdr/client-ack-ignored", "4.2/from-client", quick=False)
async def client_ack_ignored(ctx: CaseContext) -> None:
    """An Ack from a client is passed over."""
    ctx.side.send(Frame(flags=Flag.ACK, batch_id=7))
    nothing = Quiet("AMB-33")
    await ctx.expect(ctx.side, specified=nothing, deployed=nothing)


@case("hdr/client-backpressure-ignored", "4.4/from-client", quick=False)
async def client_backpressure_ignored(ctx: CaseContext) -> None:
    """A Backpressure frame from a client is passed over."""
    ctx.side.send(Frame(flags=Flag.BACKPRESSURE))
    nothing = Quiet("AMB-33")
    await ctx.expect(ctx.side, specified=nothing, deployed=nothing)


@case("hdr/payload-crc-bit-closes", "11.3/payload-crc")
async def payload_crc_bit_closes(ctx: CaseContext) -> None:
    """A payload checksum with one bit inverted closes the connection."""
    frame = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))
    wrong = frame.right_payload_crc(ctx.dialect.compute) ^ 0x80000000
    await _payload_crc_closes(ctx, frame, wrong)


@case("hdr/payload-crc-zero-closes", "11.3/payload-crc")
async def payload_crc_zero_closes(ctx: CaseContext) -> None:
    """A payload checksum of zero is a wrong one, not a missing one."""
    frame = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))
    await _payload_crc_closes(ctx, frame, 0)


async def _payload_crc_closes(ctx: CaseContext, frame: Frame, wrong: int) -> None:
    end = [closed("11.3/payload-crc")]
    await ctx.assert_pair(
        frame,
        replace(frame, payload_crc=wrong),
        answer=ack(frame.batch_id),
        specified=end,
        deployed=end,
    )


@case("hdr/payload-crc-of-control-closes", "11.3/payload-crc", quick=False)
async def payload_crc_of_control_closes(ctx: CaseContext) -> None:
    """A control frame with a wrong payload checksum closes the connection."""
    right = get_topic((await ctx.topic()).id)
    end = [closed("11.3/payload-crc")]
    await ctx.assert_pair(
        right,
        replace(right, payload_crc=right.right_payload_crc(ctx.dialect.compute) ^ 1),
        answer=topic_response("5.5/get"),
        specified=end,
        deployed=end,
    )


@case("hdr/payload-crc-without-payload", "3.2/payload-crc-zero", quick=False)
async def payload_crc_without_payload(ctx: CaseContext) -> None:
    """A payload checksum without a payload is tolerated or closes the connection."""
    either = [keepalive("AMB-33"), closed("AMB-33")]
    await ctx.assert_pair(
        KEEPALIVE,
        replace(KEEPALIVE, payload_crc=1),
        answer=keepalive(),
        specified=either,
        deployed=either,
    )


async def _oversize(ctx: CaseContext, length: int, *, answered: bool = False) -> None:
    cite = "8.7/oversize"
    frame = ingest((await ctx.topic()).id, ctx.batch(), ctx.values(1))
    refusal = ctx.error(ErrorCode.PAYLOAD_TOO_LARGE, cite="AMB-17")
    peer, event = await ctx.assert_pair(
        frame,
        replace(frame, payload_length=length),
        answer=ack(frame.batch_id),
        specified=[refusal] if answered else [refusal, closed(cite)],
        deployed=[closed(cite)],
    )
    if isinstance(event, Frame):
        await peer.expect(closed(cite))


@case("hdr/oversize-closes", "8.7/oversize")
async def oversize_closes(ctx: CaseContext) -> None:
    """A payload length just above the limit ends the connection instead of being awaited."""
    await _oversize(ctx, MAX_PAYLOAD + 1)


@case("hdr/oversize-4gib-closes", "8.7/oversize", quick=False)
async def oversize_4gib_closes(ctx: CaseContext) -> None:
    """A payload length of 4 GiB ends the connection instead of being awaited."""
    await _oversize(ctx, 0xFFFFFFFF)


@case("hdr/oversize-answered", "8.7/oversize-answer", dialects=("specified",))
async def oversize_answered(ctx: CaseContext) -> None:
    """PayloadTooLarge is sent before an oversize frame ends the connection."""
    await _oversize(ctx, MAX_PAYLOAD + 1, answered=True)
