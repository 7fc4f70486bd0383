"""Cases about groups in the binary form: the commit alone decides."""

from lance_conformance.rustlog.case_context import CaseContext
from lance_conformance.rustlog.cases.registry import case
from lance_conformance.rustlog.dialect import BINARY
from lance_conformance.rustlog.peer import exactly
from lance_conformance.rustlog.requests import commit, committed, fetch

COMMIT = "broker-groups/commit"
START = "broker-groups/commit-decides"
NONE = "broker-groups/no-commit"
UNKNOWN = "offset-fetch-response/none"
APART = "offset-commit-request/apart"
ANYWHERE = "broker-groups/any-topic"


async def _reads(ctx: CaseContext, kept: int, asked: int) -> None:
    """A group that committed one offset and asks for another reads from its commit."""
    topic, records = await ctx.filled(4)
    await ctx.commit("g", topic, kept)
    await ctx.side.ask(
        fetch(topic, 0, asked, group="g"),
        exactly(START, "Fetch", records=tuple(records[kept:]), next_offset=4),
    )


@case("rl-group/commit-below-request", START, dialects=BINARY)
async def commit_below_request(ctx: CaseContext) -> None:
    """A group reads from its commit, although it asks for a higher offset."""
    await _reads(ctx, 1, 3)


@case("rl-group/commit-above-request", START, dialects=BINARY)
async def commit_above_request(ctx: CaseContext) -> None:
    """A group reads from its commit, although it asks for a lower offset."""
    await _reads(ctx, 2, 0)


@case("rl-group/commit-0", START, dialects=BINARY)
async def commit_0(ctx: CaseContext) -> None:
    """A commit of 0 is one: the group reads from the beginning."""
    await _reads(ctx, 0, 2)


@case("rl-group/no-commit", NONE, dialects=BINARY)
async def no_commit(ctx: CaseContext) -> None:
    """A group without a commit gets nothing, and 0 as its next offset, wherever it asks."""
    topic, _ = await ctx.filled(3)
    await ctx.side.ask(
        fetch(topic, 0, 2, group="g"), exactly(NONE, "Fetch", records=(), next_offset=0)
    )


@case("rl-group/no-commit-no-topic", NONE, dialects=BINARY, quick=False)
async def no_commit_no_topic(ctx: CaseContext) -> None:
    """A group without a commit is not told that there is no such topic."""
    name = ctx.name()
    await ctx.side.ask(
        fetch(name, 0, 0, group="g"), exactly(NONE, "Fetch", records=(), next_offset=0)
    )


@case("rl-group/commit-behind-the-end", START, dialects=BINARY, quick=False)
async def commit_behind_the_end(ctx: CaseContext) -> None:
    """A group whose commit is beyond the end gets nothing, and its commit back."""
    topic, _ = await ctx.filled(2)
    await ctx.commit("g", topic, 9)
    await ctx.side.ask(
        fetch(topic, 0, 0, group="g"), exactly(START, "Fetch", records=(), next_offset=9)
    )


@case("rl-group/reads-do-not-commit", "offset-commit-request/manual", dialects=BINARY)
async def reads_do_not_commit(ctx: CaseContext) -> None:
    """A Fetch for a group moves nothing: only a commit does."""
    topic, records = await ctx.filled(2)
    await ctx.commit("g", topic, 0)
    cite = "offset-commit-request/manual"
    for _ in range(2):
        await ctx.side.ask(
            fetch(topic, 0, 0, group="g"),
            exactly(cite, "Fetch", records=tuple(records), next_offset=2),
        )
    await ctx.side.ask(committed("g", topic, 0), exactly(cite, "OffsetFetch", offset=0))


@case("rl-group/commit-is-told", COMMIT, dialects=BINARY)
async def commit_is_told(ctx: CaseContext) -> None:
    """A commit is answered with success 1, and can be asked for."""
    topic = await ctx.topic()
    await ctx.side.ask(commit("g", topic, 0, 7), exactly(COMMIT, "OffsetCommit", success=1))
    await ctx.side.ask(committed("g", topic, 0), exactly(COMMIT, "OffsetFetch", offset=7))


@case("rl-group/last-commit-counts", "offset-commit-request/overwrite", dialects=BINARY)
async def last_commit_counts(ctx: CaseContext) -> None:
    """A commit replaces the one before it, also a higher one."""
    topic = await ctx.topic()
    cite = "offset-commit-request/overwrite"
    for offset in (3, 8, 2):
        await ctx.commit("g", topic, offset)
        await ctx.side.ask(committed("g", topic, 0), exactly(cite, "OffsetFetch", offset=offset))


@case("rl-group/highest-offset", COMMIT, dialects=BINARY, quick=False)
async def highest_offset(ctx: CaseContext) -> None:
    """Every offset of 64 bits can be committed."""
    topic = await ctx.topic()
    await ctx.commit("g", topic, 2**64 - 1)
    await ctx.side.ask(committed("g", topic, 0), exactly(COMMIT, "OffsetFetch", offset=2**64 - 1))


@case("rl-group/nothing-committed", UNKNOWN, dialects=BINARY)
async def nothing_committed(ctx: CaseContext) -> None:
    """What was never committed is none, not 0."""
    topic = await ctx.topic()
    await ctx.side.ask(committed("g", topic, 0), exactly(UNKNOWN, "OffsetFetch", offset=None))


@case("rl-group/groups-apart", APART, dialects=BINARY)
async def groups_apart(ctx: CaseContext) -> None:
    """The commit of one group says nothing of another, whose name begins alike."""
    topic = await ctx.topic()
    await ctx.commit("gg", topic, 4)
    await ctx.side.ask(committed("g", topic, 0), exactly(APART, "OffsetFetch", offset=None))
    await ctx.side.ask(committed("gg", topic, 0), exactly(APART, "OffsetFetch", offset=4))


@case("rl-group/partitions-apart", APART, dialects=BINARY)
async def partitions_apart(ctx: CaseContext) -> None:
    """A group commits for each partition alone."""
    topic = await ctx.topic()
    await ctx.commit("g", topic, 4)
    await ctx.commit("g", topic, 6, partition=1)
    await ctx.side.ask(committed("g", topic, 0), exactly(APART, "OffsetFetch", offset=4))
    await ctx.side.ask(committed("g", topic, 1), exactly(APART, "OffsetFetch", offset=6))


@case("rl-group/topics-apart", APART, dialects=BINARY)
async def topics_apart(ctx: CaseContext) -> None:
    """A group commits for each topic alone."""
    topic, other = await ctx.topic(), await ctx.topic()
    await ctx.commit("g", topic, 4)
    await ctx.side.ask(committed("g", other, 0), exactly(APART, "OffsetFetch", offset=None))
    await ctx.side.ask(committed("g", topic, 0), exactly(APART, "OffsetFetch", offset=4))


@case("rl-group/no-topic-needed", ANYWHERE, dialects=BINARY)
async def no_topic_needed(ctx: CaseContext) -> None:
    """A commit for a topic that does not exist is taken, and can be asked for.

    The example clients of RustLog commit 0 before anything else.
    """
    name = ctx.name()
    await ctx.side.ask(commit("g", name, 3, 5), exactly(ANYWHERE, "OffsetCommit", success=1))
    await ctx.side.ask(committed("g", name, 3), exactly(ANYWHERE, "OffsetFetch", offset=5))


@case("rl-group/commit-before-the-topic", ANYWHERE, dialects=BINARY, quick=False)
async def commit_before_the_topic(ctx: CaseContext) -> None:
    """A commit that was made before its topic counts once the topic is there."""
    name = ctx.name()
    await ctx.commit("g", name, 1)
    async with ctx.precondition("creating the topic and storing records"):
        await ctx.create(name, 1)
        await ctx.store(name, records := ctx.values(3))
    await ctx.side.ask(
        fetch(name, 0, 0, group="g"),
        exactly(ANYWHERE, "Fetch", records=tuple(records[1:]), next_offset=3),
    )
