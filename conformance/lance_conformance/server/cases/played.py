"""Playing a case that is data: one frame and its faulty twin, or a conversation in steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_conformance.engine.expectations import Allowed, closed
from lance_conformance.server.case_context import ALIVE, AllowedOutcome, CaseContext, Topic
from lance_conformance.server.expect import Event, Quiet, ack, fetched, keepalive, topic_response
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import LIST_TOPICS
from lance_conformance.wire.frame import Frame

Row = Mapping[str, Any]

SLACK = 64
"""Bytes asked for beyond what a topic must hold, so that too many show."""
NUMBERS = {"header_crc": 4, "payload_crc": 4, "batch_id": 8, "timestamp_ns": 8, "payload_length": 4}
"""Fields whose bits and bytes a fault may change, with their sizes."""


class PlayedCase:
    """What the placeholders of one case stand for.

    Args:
        ctx: The context of the case.
        row: The case.
        topics: The case's own topics.
    """

    def __init__(self, ctx: CaseContext, row: Row, topics: Sequence[Topic]) -> None:
        self._ctx = ctx
        self.cite = str(row["clause"])
        self._topics = topics
        self._dialect = "specified" if ctx.specified else "deployed"
        self._peers: dict[int, Peer] = {}

    def __repr__(self) -> str:
        return f"<PlayedCase topics={len(self._topics)} connections={len(self._peers)}>"

    # -- values ------------------------------------------------------------------------------------

    def mine(self, by_dialect: Row) -> Any:
        """The value for the dialect in force."""
        return by_dialect[self._dialect]

    def _id(self, topic: Row) -> int:
        return (
            self._ctx.unknown_topic if "unknown" in topic else self._topics[topic["topic"] - 1].id
        )

    def bytes_of(self, parts: Sequence[Any]) -> bytes:
        """Put bytes together."""
        return b"".join(map(self._piece, parts))

    def _piece(self, part: Any) -> bytes:
        if isinstance(part, str):
            return bytes.fromhex(part)
        if "repeat" in part:
            return bytes.fromhex(part["repeat"]) * int(part["times"])
        return self._id(part).to_bytes(4, "little")

    def value(self, field: str, value: Any) -> Any:
        """A header field or a payload."""
        if field == "payload":
            return self.bytes_of(self.mine(value) if isinstance(value, dict) else value)
        if field == "magic":
            return bytes.fromhex(value)
        return self._id(value) if isinstance(value, dict) else int(value)

    def frame(self, row: Row) -> Frame:
        """A right frame."""
        return Frame(**{field: self.value(field, value) for field, value in row.items()})

    def wrong(self, right: Frame, fault: Row) -> Frame:
        """The frame with its one fault."""
        field = fault["field"]
        changed: Any = _FAULTS[fault["kind"]](self, right, fault)
        return replace(right, **{field: changed})

    def number(self, right: Frame, field: str) -> int:
        """What stands in a field of a right frame, worked out where it is not given."""
        checksum = self._ctx.dialect.compute
        computed: Mapping[str, Callable[[], int]] = {
            "header_crc": lambda: checksum(right.prefix),
            "payload_crc": lambda: right.right_payload_crc(checksum),
            "payload_length": lambda: len(right.payload),
        }
        return computed[field]() if field in computed else int(getattr(right, field))

    def checksum(self, data: bytes, *, other: bool = False) -> int:
        """A checksum of the dialect in force, or of the polynomial that is not its own."""
        dialect = self._ctx.dialect
        return dialect.other_checksum(data) if other else dialect.compute(data)

    # -- outcomes ----------------------------------------------------------------------------------

    def allowed(self, outcomes: Sequence[Row]) -> AllowedOutcome:
        """What may come."""
        if outcomes[0]["expect"] == "quiet":
            return Quiet(outcomes[0].get("cite", self.cite))
        return [self.outcome(each) for each in outcomes]

    def outcome(self, row: Row) -> Allowed:
        """One outcome."""
        return _OUTCOMES[row["expect"]](self, row, row.get("cite", self.cite))

    def error(self, row: Row, cite: str) -> Allowed:
        """An ErrorResponse."""
        return self._ctx.error(*row["codes"], cite=cite, text=row["text"])

    def fetched(self, row: Row, cite: str) -> Allowed:
        """A FetchResponse with certain data."""
        return fetched(self.bytes_of(row["data"]), self._ctx.dialect.fetch_header, cite)

    # -- steps -------------------------------------------------------------------------------------

    async def on(self, number: int) -> Peer:
        """A connection of the case, opened when it is first used."""
        if number not in self._peers:
            self._peers[number] = await self._ctx.open()
        return self._peers[number]

    async def _read_back(self, most: int) -> bytes:
        """Everything in the first topic; one answer need not bring batches of every sort."""
        data, offset = b"", 0
        while len(data) < most:
            got = await self._ctx.fetch(self._topics[0], offset, most)
            if not got.data:
                break
            data, offset = data + got.data, got.next_offset
        return data

    async def judge_stored(self, row: Row) -> None:
        """Hold the first topic against what it must hold now."""
        if self._dialect not in row.get("stored", {}):
            return
        right = self.bytes_of(self.mine(row["stored"]))
        async with self._ctx.precondition("reading the topic back"):
            got = await self._read_back(len(right) + SLACK)
        self._ctx.check(got == right, "data", f"the topic must hold {_told(right)}: {_told(got)}")


def _told(data: bytes) -> str:
    beginning = data[:32].hex(" ")
    return f"{len(data)} bytes ({beginning}{' ...' if len(data) > 32 else ''})"


_FAULTS: Mapping[str, Callable[[PlayedCase, Frame, Row], Any]] = {
    "set": lambda case, _, fault: case.value(fault["field"], fault["value"]),
    "xor": lambda case, right, fault: case.number(right, fault["field"]) ^ int(fault["mask"]),
    "checksum-of": lambda case, _, fault: case.checksum(case.bytes_of(fault["bytes"])),
    "byte-order": lambda case, right, fault: int.from_bytes(
        case.number(right, fault["field"]).to_bytes(NUMBERS[fault["field"]], "little"), "big"
    ),
    "other-polynomial": lambda case, right, fault: case.checksum(
        right.prefix if fault["field"] == "header_crc" else right.payload, other=True
    ),
}
_OUTCOMES: Mapping[str, Callable[[PlayedCase, Row, str], Allowed]] = {
    "ack": lambda _, row, cite: ack(int(row["batch_id"]), cite),
    "keepalive": lambda _case, _row, cite: keepalive(cite),
    "topic_response": lambda _case, _row, cite: topic_response(cite),
    "closed": lambda _case, _row, cite: closed(cite),
    "error": PlayedCase.error,
    "fetched": PlayedCase.fetched,
}


async def play(ctx: CaseContext, row: Row) -> None:
    """Play a case.

    Args:
        ctx: The context of the case.
        row: The case, as ``server_case.json`` has it.
    """
    case = PlayedCase(ctx, row, [await ctx.topic() for _ in range(_topics(row))])
    await (_duel if "right" in row else _exchange)(ctx, case, row)
    await case.judge_stored(row)


def _topics(value: Any) -> int:
    """The highest number of a topic that a case speaks of."""
    if isinstance(value, Mapping):
        own = int(value["topic"]) if isinstance(value.get("topic"), int) else 0
        return max([own, *map(_topics, value.values())])
    if isinstance(value, list):
        return max(map(_topics, value), default=0)
    return 0


async def _duel(ctx: CaseContext, case: PlayedCase, row: Row) -> None:
    right = case.frame(row["right"])
    by_dialect = {name: case.allowed(each) for name, each in row["allowed"].items()}
    peer, event = await ctx.assert_pair(
        right,
        case.wrong(right, row["fault"]),
        answer=case.outcome(row["answer"]),
        specified=by_dialect.get("specified", ()),
        deployed=by_dialect.get("deployed", ()),
    )
    if row.get("ends") and isinstance(event, Frame):
        await peer.expect(closed(case.cite))


async def _exchange(ctx: CaseContext, case: PlayedCase, row: Row) -> None:
    for step in row["steps"]:
        peer = await case.on(step["on"])
        frames = [case.frame(frame) for frame in step["send"]]
        await _send(ctx, peer, frames, step.get("pieces", ()))
        answers = [case.allowed(each) for each in case.mine(step["expect"])]
        await _answers(peer, answers, any_order=step.get("any_order", False))
        if step.get("quiet"):
            await peer.expect_quiet(case.cite)


async def _send(
    ctx: CaseContext, peer: Peer, frames: Sequence[Frame], pieces: Sequence[int]
) -> None:
    """Send frames in one write, or cut in pieces, of which the target sees one after another."""
    if not pieces:
        peer.send(*frames)
        return
    data = b"".join(peer.encode(frame) for frame in frames)
    for size in pieces:
        peer.send_bytes(data[:size])
        data = data[size:]
        await ctx.side.ask(LIST_TOPICS, ALIVE)  # a round trip on another connection
    peer.send_bytes(data)


async def _answers(peer: Peer, answers: Sequence[AllowedOutcome], *, any_order: bool) -> None:
    wanted = [list(each) for each in answers if not isinstance(each, Quiet)]
    while wanted:
        now = [choice for each in wanted for choice in each] if any_order else wanted[0]
        event = await peer.expect(*now)
        wanted.remove(_first_fit(wanted, event) if any_order else wanted[0])


def _first_fit(wanted: Sequence[list[Allowed]], event: Event) -> list[Allowed]:
    return next(each for each in wanted if any(choice.judge(event) is None for choice in each))
