"""Cases about ApiVersions."""

import re

from lance_conformance.fluvio.case_context import CaseContext
from lance_conformance.fluvio.cases.registry import case
from lance_conformance.fluvio.peer import Peer
from lance_conformance.fluvio.wire.calls import api_versions

SC_KEYS = {1001: (15, 19), 1002: (15, 19), 1003: (15, 19), 1004: (15, 19)}
"""What published clients ask the SC for, and the versions they may use."""
SPU_KEYS = {
    0: (0, 25),
    1002: (23, 25),
    1003: (23, 25),
    1005: (0, 0),
}
"""The same for the SPU; its requests about stored offsets are served without being offered."""
OLDEST = (0, 9, 0)
"""The oldest platform that published clients work with."""


@case("fl-version/sc-answers", "versions/error")
async def sc_answers(ctx: CaseContext) -> None:
    """The SC says without an error which requests it takes."""
    await _no_error(ctx, ctx.sc)


@case("fl-version/spu-answers", "versions/error")
async def spu_answers(ctx: CaseContext) -> None:
    """The SPU says without an error which requests it takes."""
    await _no_error(ctx, ctx.spu)


async def _no_error(ctx: CaseContext, peer: Peer) -> None:
    found = await peer.ask(api_versions())
    ctx.check(found.error == 0, f"error:{found.error}", f"expected no error; got {found.error}")
    ctx.check(found.ranges, "body:empty", "no request is offered at all")


async def _offers(ctx: CaseContext, peer: Peer, wanted: dict[int, tuple[int, int]]) -> None:
    found = {key: (low, high) for key, low, high in (await peer.ask(api_versions())).ranges}
    for key, (low, high) in wanted.items():
        ctx.check(key in found, "key-missing", f"requests with key {key} are not offered")
        least, most = found[key]
        ctx.check(
            least <= high and low <= most,
            "versions-apart",
            f"clients use versions {low} to {high} of key {key}, {least} to {most} are offered",
        )


@case("fl-version/sc-offers", "versions/offered")
async def sc_offers(ctx: CaseContext) -> None:
    """The SC offers watches and the administration of topics, in versions that clients know."""
    await _offers(ctx, ctx.sc, SC_KEYS)


@case("fl-version/spu-offers", "versions/offered")
async def spu_offers(ctx: CaseContext) -> None:
    """The SPU offers producing and consuming, in versions that clients know."""
    await _offers(ctx, ctx.spu, SPU_KEYS)


@case("fl-version/ranges-sound", "versions/ranges")
async def ranges_sound(ctx: CaseContext) -> None:
    """Each kind of request is offered once, its lowest version not above its highest."""
    for peer in (ctx.sc, ctx.spu):
        ranges = (await peer.ask(api_versions())).ranges
        keys = [key for key, _, _ in ranges]
        ctx.check(len(keys) == len(set(keys)), "key-twice", f"the keys are {keys}")
        for key, low, high in ranges:
            ctx.check(low <= high, "range-empty", f"key {key} in versions {low} to {high}")


@case("fl-version/platform", "versions/platform")
async def platform(ctx: CaseContext) -> None:
    """Both servers name a platform version, three numbers with dots, the SC one from 0.9.0 on."""
    for peer in (ctx.sc, ctx.spu):
        version = (await peer.ask(api_versions())).platform
        found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)([-+][0-9A-Za-z.+-]+)?", version)
        ctx.check(found, "field:platform_version", f"{version!r} is not a semantic version")
        assert found is not None
        numbers = tuple(map(int, found.groups()[:3]))
        fits = numbers >= OLDEST or peer is ctx.spu
        ctx.check(fits, "field:platform_version", f"{version} is below 0.9.0")


@case("fl-version/asked-again", "versions/again")
async def asked_again(ctx: CaseContext) -> None:
    """Versions may be asked for at any time, and are the same each time."""
    first = await ctx.sc.ask(api_versions())
    second = await ctx.sc.ask(api_versions())
    ctx.check(first == second, "changed", "two answers on one connection differ")
