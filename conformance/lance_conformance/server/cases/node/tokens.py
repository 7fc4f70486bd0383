"""Cases about tokens (design section 28); they need a target that asks for one."""

from collections.abc import Callable
from dataclasses import replace

from lance_conformance.engine.expectations import Allowed
from lance_conformance.engine.failures import NotApplicable
from lance_conformance.engine.registry import CaseFunction
from lance_conformance.server.case_context import ALIVE, CaseContext
from lance_conformance.server.cases.registry import case
from lance_conformance.server.expect import answer, keepalive, let_in, turned_away
from lance_conformance.server.peer import Peer
from lance_conformance.wire.access import authenticate, read_authenticated
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    KEEPALIVE,
    LIST_TOPICS,
    create_topic,
    delete_topic,
    get_topic,
    ingest,
    read_json,
)
from lance_conformance.wire.frame import Command

CONSUMER = 0x0A0B_0C0D_0E0F_1011
MANY = 40
"""Requests after which a connection must still be trusted."""
LONG = 64 * 1024


def tokens(case_id: str, clause: str) -> Callable[[CaseFunction], CaseFunction]:
    """Register a case for targets that ask everything for a token."""
    return case(case_id, clause, needs=("token-all",), quick=False)


def _token(ctx: CaseContext) -> bytes:
    token = ctx.conditions.access.token
    assert token is not None, "the case needs a token"
    return token


async def stranger(ctx: CaseContext) -> Peer:
    """A connection that has shown nothing."""
    return await ctx.open(authenticated=False)


def required(ctx: CaseContext, cite: str) -> Allowed:
    """The refusal of a request that lacks its token."""
    text = "authentication required"
    return ctx.error(ErrorCode.AUTHENTICATION_REQUIRED, cite=cite, text=text)


# -- tokens, right and wrong -----------------------------------------------------------------------


def _swapped(token: bytes) -> bytes:
    if token.swapcase() == token:
        raise NotApplicable("the token has no letters")
    return token.swapcase()


WRONG: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "another": ("A token that is not configured", lambda token: b"no-" + token[::-1]),
    "empty": ("An empty token", lambda _: b""),
    "beginning": ("The token without its last byte", lambda token: token[:-1]),
    "end": ("The token without its first byte", lambda token: token[1:]),
    "longer": ("The token with one byte more", lambda token: token + b"x"),
    "newline": ("The token with a line feed after it", lambda token: token + b"\n"),
    "blank": ("The token with a blank in front", lambda token: b" " + token),
    "nul": ("The token with a NUL and more after it", lambda token: token + b"\0more"),
    "case": ("The token in the other case", _swapped),
    "twice": ("The token twice in a row", lambda token: token + token),
    "not-utf8": ("A token that is not UTF-8", lambda _: b"\xff\xfe\xfd token"),
    "long": ("A token of 64 KiB", lambda token: token.ljust(LONG, b"x")),
    "bit": ("The token with one bit flipped", lambda token: bytes([token[0] ^ 1]) + token[1:]),
}
"""Tokens that are nearly right: what each is, and how it comes from the right one."""


def _declare_wrong(slug: str, what: str, change: Callable[[bytes], bytes]) -> None:
    async def function(ctx: CaseContext) -> None:
        async with ctx.precondition("showing the right token"):
            await ctx.log_in(await stranger(ctx))
        peer = await stranger(ctx)
        await peer.ask(authenticate(change(_token(ctx))), turned_away("28.3/denied"))
        await peer.ask(LIST_TOPICS, required(ctx, "28.4/read"))

    function.__doc__ = f"{what} is refused, and the connection stays closed to requests."
    tokens(f"auth/wrong-{slug}", "28.3/denied")(function)


for _slug, (_what, _change) in WRONG.items():
    _declare_wrong(_slug, _what, _change)


@tokens("auth/says-what", "28.3/words")
async def says_what(ctx: CaseContext) -> None:
    """Both answers have words, in UTF-8."""
    peer = await stranger(ctx)
    refused = await peer.ask(authenticate(b"not-the-token"), turned_away("28.3/denied"))
    accepted = await ctx.log_in(await stranger(ctx))
    for frame in (refused, accepted):
        said = read_authenticated(frame.payload)
        ctx.check(said is not None and said.message, "body:text", "the answer must say something")


@tokens("auth/no-echo", "28.3/no-echo")
async def no_echo(ctx: CaseContext) -> None:
    """A refusal does not repeat what it refuses: it may be a secret with a slip of the pen."""
    guess = b"nearly-" + _token(ctx)[::-1]
    frame = await (await stranger(ctx)).ask(authenticate(guess), turned_away("28.3/denied"))
    ctx.check(guess not in frame.payload, "secret-told", "the refusal contains the token")


@tokens("auth/try-again", "28.3/try-again")
async def try_again(ctx: CaseContext) -> None:
    """After a wrong token a right one opens the connection."""
    peer = await stranger(ctx)
    await peer.ask(authenticate(b"not-the-token"), turned_away("28.3/denied"))
    await ctx.log_in(peer)
    await peer.ask(LIST_TOPICS, ALIVE)


@tokens("auth/show-again", "28.2/answer")
async def show_again(ctx: CaseContext) -> None:
    """A right token may be shown again, and nothing changes."""
    peer = await stranger(ctx)
    for _ in range(2):
        await ctx.log_in(peer)
        await peer.ask(LIST_TOPICS, ALIVE)


@case("auth/not-asked-for", "28.3/not-required")
async def not_asked_for(ctx: CaseContext) -> None:
    """Where no token is asked for, showing one is accepted and changes nothing."""
    if ctx.conditions.access.token is not None:
        raise NotApplicable("the target asks for a token")
    await ctx.side.ask(authenticate(b"any-token"), let_in("28.3/not-required"))
    await ctx.side.ask(LIST_TOPICS, ALIVE)


# -- what a refusal leaves behind ------------------------------------------------------------------


@tokens("auth/refused-not-stored", "28.4/no-effect")
async def refused_not_stored(ctx: CaseContext) -> None:
    """A batch that is refused for want of a token is not stored."""
    topic = await ctx.topic()
    frame = ingest(topic.id, ctx.batch(), ctx.values(2))
    await (await stranger(ctx)).ask(frame, required(ctx, "28.4/write"))
    ctx.check(not await ctx.stored(topic), "data", "the refused batch is in the topic")


@tokens("auth/refused-not-created", "28.4/no-effect")
async def refused_not_created(ctx: CaseContext) -> None:
    """A topic that is refused for want of a token is not created."""
    name = ctx.name()
    await (await stranger(ctx)).ask(create_topic(name), required(ctx, "28.4/write"))
    frame = await ctx.side.ask(LIST_TOPICS, ALIVE)
    names = [topic.get("name") for topic in (read_json(frame.payload) or {}).get("topics", ())]
    ctx.check(name not in names, "data", "the refused topic is listed")


@tokens("auth/refused-not-deleted", "28.4/no-effect")
async def refused_not_deleted(ctx: CaseContext) -> None:
    """A topic whose removal is refused for want of a token stays, with its records."""
    topic = await ctx.disposable_topic()
    payload = await ctx.store(topic, ctx.values(1))
    await (await stranger(ctx)).ask(delete_topic(topic.id), required(ctx, "28.4/write"))
    ctx.check(await ctx.stored(topic) == payload, "data", "the topic must hold what it held")


# -- connections and frames ------------------------------------------------------------------------


@tokens("auth/each-connection", "28.4/per-connection")
async def each_connection(ctx: CaseContext) -> None:
    """A token shown on one connection opens no other, neither an older nor a newer one."""
    older = await stranger(ctx)
    await ctx.log_in(await stranger(ctx))
    for peer in (older, await stranger(ctx)):
        await peer.ask(LIST_TOPICS, required(ctx, "28.4/read"))


@tokens("auth/lasts", "28.4/per-connection")
async def lasts(ctx: CaseContext) -> None:
    """A connection that has shown its token stays trusted, request after request."""
    peer = await stranger(ctx)
    await ctx.log_in(peer)
    for _ in range(MANY):
        await peer.ask(LIST_TOPICS, ALIVE)


@tokens("auth/every-frame", "28.4/per-frame")
async def every_frame(ctx: CaseContext) -> None:
    """Of several batches in one write, without a token, every one is refused."""
    topic = await ctx.topic()
    frames = [ingest(topic.id, ctx.batch(), ctx.values(1)) for _ in range(3)]
    peer = await stranger(ctx)
    peer.send(*frames)
    for _ in frames:
        await peer.expect(required(ctx, "28.4/per-frame"))
    ctx.check(not await ctx.stored(topic), "data", "a refused batch is in the topic")


@tokens("auth/in-order", "28.4/per-frame")
async def in_order(ctx: CaseContext) -> None:
    """In one write, what stands before the token is refused and what stands after it served."""
    request, token = get_topic((await ctx.topic()).id), _token(ctx)
    peer = await stranger(ctx)
    peer.send_secret(
        [request, authenticate(token), request],
        [request, authenticate(b"*" * len(token)), request],
    )
    await peer.expect(required(ctx, "28.4/per-frame"))
    await peer.expect(let_in())
    await peer.expect(answer(Command.TOPIC_RESPONSE, "28.4/per-frame"))


@tokens("auth/refusal-leaves-open", "28.3/try-again")
async def refusal_leaves_open(ctx: CaseContext) -> None:
    """A request that lacks its token is refused, and the connection stays open."""
    peer = await stranger(ctx)
    for _ in range(2):
        await peer.ask(LIST_TOPICS, required(ctx, "28.4/read"))
    peer.send(KEEPALIVE)
    await peer.expect(keepalive("28.4/keepalive"))


@tokens("auth/keepalive-free", "28.4/keepalive")
async def keepalive_free(ctx: CaseContext) -> None:
    """A Keepalive is answered before a token is shown."""
    peer = await stranger(ctx)
    peer.send(KEEPALIVE)
    await peer.expect(keepalive("28.4/keepalive"))


@tokens("auth/empty-batch", "28.4/per-frame")
async def empty_batch(ctx: CaseContext) -> None:
    """Even a batch without a payload is refused for want of a token first."""
    topic = await ctx.topic()
    frame = replace(ingest(topic.id, ctx.batch(), ctx.values(1)), payload=b"", record_count=0)
    peer = await stranger(ctx)
    peer.send_faulty(frame, "payload")
    await peer.expect(required(ctx, "28.4/per-frame"))
