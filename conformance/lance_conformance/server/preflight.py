"""Before the cases: is anybody there, which dialect do they speak, and how fast do they answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lance_conformance.dialect import CHECKSUMS, PRESETS, SPECIFIED, Dialect, ErrorForm
from lance_conformance.engine.access import EntryMode
from lance_conformance.engine.conditions import Conditions, Target
from lance_conformance.engine.failures import Failure, NotApplicable
from lance_conformance.engine.raw_connection import RawConnection, connect
from lance_conformance.engine.run.capabilities import missing_features, probe
from lance_conformance.engine.transcript import Transcript
from lance_conformance.server.case_context import CaseContext, Topic
from lance_conformance.server.expect import ack, answer
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import (
    LIST_TOPICS,
    fetch,
    get_topic,
    ingest,
    read_json,
)
from lance_conformance.wire.frame import Command, Frame

STEP_TIMEOUT = 3.0
"""Seconds that each step of the preflight may take."""
MIN_BUDGET = 2.0
"""Seconds that a case gets from even the fastest target: only what fails ever waits for them, and
a busy machine stalls everybody for some hundred milliseconds now and then."""
ROUND_TRIPS = 20
"""Round trips measured; the budget of a case is this many times the slowest of them."""
SLOW = 0.05
"""Seconds that even the quickest round trip takes at a slow target. It may serve one request at a
time, so that cases that are asked at the same time would wait for each other."""
ENOUGH = 1.0
"""Seconds of measuring after which a slow target is known to be slow."""
WRITES = 5


def budget_of(slowest: float) -> float:
    """Seconds that one case gets where the slowest step that was measured took so many."""
    return max(MIN_BUDGET, ROUND_TRIPS * slowest)


class PreflightError(Exception):
    """Nothing can be proven about this target: it is not there, or speaks no LWP."""


@dataclass(frozen=True, slots=True)
class DialectAxes:
    """What the target was found to do, axis by axis.

    Attributes:
        checksums: The polynomials it serves, in the order of `CHECKSUMS`.
        errors: The form of its errors, `None` if it does not refuse what it must.
        fetch_header: The size of its FetchResponse header, `None` if it could not be told.
        round_trip: Seconds of the slowest of some round trips.
        write: Seconds of the slowest of some acknowledged writes, `None` if none was.
        capabilities: What it can do beyond what every server must.
        missing: Features that it does not serve.
        quickest: Seconds of the quickest round trip.
    """

    checksums: tuple[str, ...]
    errors: ErrorForm | None
    fetch_header: int | None
    round_trip: float
    write: float | None
    capabilities: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    quickest: float = 0.0

    def facts(self) -> dict[str, Any]:
        """What was found, for the head of the run file."""
        return {
            "checksums": list(self.checksums),
            "errors": self.errors,
            "fetch_header": self.fetch_header,
            "capabilities": sorted(self.capabilities),
            "missing": sorted(self.missing),
        }

    @property
    def budget(self) -> float:
        """Seconds that one case needs at most, going by what was measured."""
        return budget_of(max(self.round_trip, self.write or 0.0))


async def preflight(
    base: Conditions, timeout_scale: float = 1.0, step_timeout: float = STEP_TIMEOUT
) -> tuple[Conditions, DialectAxes]:
    """Probe the target, and say under which conditions its cases are to be asked.

    Args:
        base: Target, names and seed; its `pinned` and `demanded` say what was asked for.
        timeout_scale: Stretches the budget that is measured, and the step timeout.
        step_timeout: Seconds that each step may take.

    Raises:
        PreflightError: Nothing can be proven about this target.
    """
    base = replace(base, budget=step_timeout * timeout_scale)
    base = replace(base, target=await reached(base))
    checksums = await _checksums(base)
    preset = base.demanded if base.pinned else _preset(checksums)
    checksum = preset.checksum if preset.checksum in checksums else checksums[0]
    spoken = replace(base, dialect=replace(preset, checksum=checksum))
    axes = await _axes(spoken, checksums)
    dialect = replace(
        spoken.dialect,
        errors=axes.errors or preset.errors,
        fetch_header=axes.fetch_header or preset.fetch_header,
    )
    axes = replace(axes, capabilities=axes.capabilities | base.access.capabilities)
    conditions = replace(
        spoken,
        dialect=dialect,
        budget=axes.budget * timeout_scale,
        capabilities=(base.capabilities | axes.capabilities) - base.without,
        one_by_one=axes.quickest > SLOW,
        missing=axes.missing - base.capabilities - base.without,
    )
    return conditions, axes


def _preset(checksums: Sequence[str]) -> Dialect:
    """Without a dialect asked for: the document's where the target serves it."""
    if SPECIFIED.checksum in checksums:
        return SPECIFIED
    return next(d for d in PRESETS.values() if d.checksum in checksums)


async def reached(base: Conditions) -> Target:
    """The target with the address at which it answered, so that its name is looked up once."""
    target = base.target
    connection = RawConnection(0, Transcript(lambda: 0.0))
    deadline = asyncio.get_running_loop().time() + base.budget
    try:
        access = base.access
        await connect(
            target.host,
            target.port,
            connection,
            deadline,
            context=access.context(EntryMode.USUAL),
            server_name=access.server_name,
        )
        return replace(target, address=connection.address)
    except OSError as problem:
        raise PreflightError(
            f"cannot reach {target}: {problem}; is the server running and listening there?"
        ) from problem
    finally:
        connection.drop()


async def _checksums(base: Conditions) -> tuple[str, ...]:
    """The polynomials in which ListTopics is answered, each tried on a connection of its own."""
    served = []
    why = []
    for name in CHECKSUMS:
        problem = await _serves(base, name)
        if problem is None:
            served.append(name)
        else:
            why.append(f"{name}: {problem.message}")
    refused = [name for name, each in zip(CHECKSUMS, why, strict=False) if "ERROR_RESPONSE" in each]
    if not served and refused and (said := await _refusal(base, refused[0])) is not None:
        raise PreflightError(
            f"{base.target} refuses ListTopics and says {said}; where it asks for a token, give "
            f"--token TOKEN or --token @FILE; without ListTopics nothing can be proven "
            f"({'; '.join(why)})"
        )
    if not served and any("AUTHENTICATE_RESPONSE" in each for each in why):
        raise PreflightError(
            f"{base.target} refuses the token: give a valid one with --token TOKEN or --token "
            f"@FILE; without it nothing can be proven ({'; '.join(why)})"
        )
    if not served:
        raise PreflightError(
            f"{base.target} accepts connections but does not answer ListTopics in either "
            f"checksum, so nothing can be proven ({'; '.join(why)})"
        )
    return tuple(served)


async def _serves(base: Conditions, checksum: str) -> Failure | None:
    conditions = replace(base, dialect=replace(SPECIFIED, checksum=checksum))
    ctx = CaseContext(conditions, "kit/probe", base.budget)
    try:
        await ctx.begin()
    except Failure as failure:
        return failure
    finally:
        await ctx.end(clean=False)
    return None


async def _refusal(base: Conditions, checksum: str) -> str | None:
    """What the ErrorResponse says that ListTopics is answered with; `None` without one."""
    conditions = replace(base, dialect=replace(SPECIFIED, checksum=checksum))
    dialogue = CaseContext(conditions, "kit/refusal", base.budget)
    try:
        peer = await dialogue.open()
        frame = await peer.ask(LIST_TOPICS, answer(Command.ERROR_RESPONSE, "5.7/error"))
    except Failure:
        return None
    finally:
        await dialogue.end(clean=False)
    return _in_words(frame.payload)


def _in_words(payload: bytes) -> str:
    """An ErrorResponse's code, by name where it has one, and its text."""
    body = read_json(payload)
    if body is None:
        return repr(payload.decode(errors="replace"))
    code, message = body.get("code"), body.get("message")
    names = {each.value: each.name for each in ErrorCode}
    told = f"{names.get(code, 'code')} ({code:#04x})" if isinstance(code, int) else str(code)
    return f"{told}: {message!r}"


async def _axes(spoken: Conditions, checksums: tuple[str, ...]) -> DialectAxes:
    ctx = CaseContext(spoken, "kit/preflight", spoken.budget)
    try:
        await ctx.begin()
        errors = await _error_form(ctx)
        quickest, round_trip = await _round_trips(ctx)
        write, header, capabilities, missing = await _writes(ctx)
    except Failure as failure:
        raise PreflightError(
            f"{spoken.target} answers ListTopics, but not the next steps, so nothing can be "
            f"proven: {failure.message}"
        ) from failure
    finally:
        await ctx.end(clean=False)
    return DialectAxes(
        checksums, errors, header, round_trip, write, capabilities, missing, quickest
    )


async def _error_form(ctx: CaseContext) -> ErrorForm | None:
    """How the target says that a topic does not exist."""
    frame = await _control(ctx, get_topic(ctx.unknown_topic))
    if frame.batch_id != Command.ERROR_RESPONSE:
        return None
    return "text" if read_json(frame.payload) is None else "json"


async def _control(ctx: CaseContext, frame: Frame) -> Frame:
    """Any answer to GetTopic will do; it cannot be an echo, for no answer has its command."""
    return await ctx.side.ask(
        frame,
        answer(Command.ERROR_RESPONSE, "5.5/not-found"),
        answer(Command.TOPIC_RESPONSE, "5.5/get"),
    )


async def _round_trips(ctx: CaseContext) -> tuple[float, float]:
    """The quickest and the slowest of some round trips."""
    clock = asyncio.get_running_loop().time
    taken: list[float] = []
    for _ in range(ROUND_TRIPS):
        began = clock()
        await _control(ctx, get_topic(ctx.unknown_topic))
        taken.append(clock() - began)
        if sum(taken) > ENOUGH:
            break
    return min(taken), max(taken)


_Written = tuple[float | None, int | None, frozenset[str], frozenset[str]]


async def _writes(ctx: CaseContext) -> _Written:
    """How long a write takes, what a fetched one looks like, and what else works or does not."""
    clock = asyncio.get_running_loop().time
    slowest, header = None, None
    try:
        topic = await ctx.topic()
        for _ in range(WRITES):
            frame = ingest(topic.id, ctx.batch(), ctx.values(1))
            began = clock()
            await ctx.side.ask(frame, ack(frame.batch_id))
            slowest = max(slowest or 0.0, clock() - began)
        header = await _fetch_header(ctx, topic)
        able = await probe(ctx, topic)
        return slowest, header, able, await missing_features(ctx, topic)
    except (Failure, NotApplicable):
        return (
            slowest,
            header,
            frozenset(),
            frozenset(),
        )  # the cases about it will say what is wrong


async def _fetch_header(ctx: CaseContext, topic: Topic) -> int | None:
    """Which of the two headers agrees with the size of its payload (AMB-05)."""
    frame = await ctx.side.ask(
        fetch(topic.id, 0, 65536), answer(Command.FETCH_RESPONSE, "5.9/answer")
    )
    size = len(frame.payload)
    if size >= 16 and int.from_bytes(frame.payload[8:12], "little") == size - 16:
        return 16
    start, end = (int.from_bytes(frame.payload[at : at + 8], "little") for at in (0, 8))
    return 24 if size >= 24 and end - start == size - 24 else None
