"""Judges operations in full: what was asked, what was not, and all that they tell.

The judge of `evaluation` looks for what no client may tell. This one knows what a right client
does with a server that answers rightly, and compares everything with that: each request with its
operation, each result with the answer that came, each record with the log.
"""

import itertools
import json
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lance_conformance.client.evaluation import batch_of, decoded
from lance_conformance.client.operations import Op
from lance_conformance.client.scripted.model import trigger_of
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.script import AckOf, Answer, On, Pause, Say
from lance_conformance.client.scripted.server import ScriptedServer
from lance_conformance.engine.failures import Failure
from lance_conformance.wire.tlv import RECORD_HEADER, boundaries

Request = tuple[str, int, bytes]
"""What a frame asks for: its kind, the topic in its header, and its payload."""
CHANGES = frozenset({"create", "create-limited", "delete", "retention", "ingest"})
"""Requests that a client makes only where it is told to."""
SHOWN = 120
NTH, LAST, BACK = -1, -1, -1
"""Offsets that stand for what is known only when it is asked: of a Fetch `NTH - n` for where record
n of the log begins, or the last one; of a subscription `LAST` for the end; of a commit `BACK - n`
for where the record begins that is n before the end of what was read."""


def _create(op: Op) -> Request:
    name: bytes = op.arguments["name"].encode()
    if "max_bytes" not in op.arguments:
        return "create", 0, name
    limits = struct.pack("<QQ", op.arguments["max_age_secs"], op.arguments["max_bytes"])
    return "create-limited", 0, struct.pack("<H", len(name)) + name + limits


def _fetch(op: Op) -> Request:
    topic, offset, most = (op.arguments[name] for name in ("topic", "offset", "max_bytes"))
    return "fetch", 0, struct.pack("<IQI", topic["id"], offset, most)


def _retention(op: Op) -> Request:
    values = (op.arguments[name] for name in ("topic_id", "max_age_secs", "max_bytes"))
    return "retention", 0, struct.pack("<IQQ", *values)


def _ingest(op: Op) -> Request:
    return "ingest", op.arguments["topic"]["id"], batch_of(op)


def _about(what: str) -> Callable[[Op], Request]:
    return lambda op: (what, 0, struct.pack("<I", op.arguments["topic_id"]))


REQUESTS: Mapping[str, Callable[[Op], Request]] = {
    "create_topic": _create, "list_topics": lambda _: ("list", 0, b""), "get_topic": _about("get"),
    "delete_topic": _about("delete"), "set_retention": _retention, "fetch": _fetch,
    "send": _ingest, "send_async": _ingest,
}  # fmt: skip
"""What each operation asks for."""
INSTEAD: Mapping[str, str] = {"create_topic": "list", "get_topic": "list", "fetch": "subscribe"}
"""Requests that may tell the same."""


def _asks(received: ReceivedFrame) -> Request:
    return trigger_of(received.frame), received.frame.topic_id, received.opened.payload


def _is_calm(meanwhile: Sequence[On]) -> bool:
    """Whether nothing is lost or refused while an operation lasts."""
    steps = [step for entry in meanwhile for step in entry.steps]
    return all(
        isinstance(step, Say | Pause | AckOf) or (isinstance(step, Answer) and step.right)
        for step in steps
    )


@dataclass(slots=True)
class Exact:
    """The judge of one case.

    Args:
        server: What the client is told, and what it does.

    Attributes:
        given: The batches that it was told to send, in order.
        place: Where its subscription has read to; None without one.
    """

    server: ScriptedServer
    given: list[Request] = field(default_factory=list)
    place: int | None = None
    _begun: int = 0
    _topic: int = 0
    _seen: int = 0
    _answered: int = 0

    def begin(self, op: Op) -> Op:
        """Take note of an operation that begins, and return it with the offset that it is about."""
        self._answered = len(self.server.answered)
        if op.name in {"send", "send_async"}:
            self.given.append(_ingest(op))
        offset = op.arguments.get("offset", 0)
        if offset < 0:
            op = replace(op, arguments={**op.arguments, "offset": self._offset(op, offset)})
        return op

    def _offset(self, op: Op, stands_for: int) -> int:
        """The offset that a negative one stands for."""
        model = self.server.model
        starts = model.record_starts()
        if op.name == "fetch":
            return model.base + starts[min(NTH - stands_for, max(0, len(starts) - 2))]
        if op.name == "subscribe":
            return model.end
        read = bisect_left(starts, (self.place or 0) - model.base)
        return max(self._begun, model.base + starts[max(0, read - (BACK - stands_for))])

    @property
    def has_news(self) -> bool:
        """Whether the subscription has something to read."""
        return self.place is not None and self.place < self.server.model.end

    def renewed(self) -> None:
        """The client has ended, and with it its subscription."""
        self.place = None

    def end(self) -> None:
        """Judge what was read of a subscription in the end, where nothing was lost.

        Raises:
            Failure: Some of it was not read.
        """
        if self.has_news:
            raise Failure(
                "records", f"the subscription has read up to {self.place}, and ends before "
                f"{self.server.model.end}", expected=(f"offset {self.server.model.end}",),
                received=f"offset {self.place}", timing=True,
            )  # fmt: skip

    def judge(self, op: Op, ok: Mapping[str, Any] | None) -> None:
        """Judge an operation that has ended.

        Args:
            op: The operation.
            ok: Its results; None when it failed, and may have.

        Raises:
            Failure: Something of it is wrong.
        """
        self._judge_changes(op, succeeded=ok is not None)
        self._judge_order()
        if ok is not None:
            self._judge_asked(op)
            _RESULTS.get(op.name, Exact.not_judged)(self, op, ok)
        self._seen = len(self.server.seen)

    # -- what was asked ----------------------------------------------------------------------------

    def _requests(self) -> list[Request]:
        return [_asks(each) for each in self.server.seen[self._seen :]]

    def _judge_asked(self, op: Op) -> None:
        """Something that the operation asks for was asked."""
        if op.name not in REQUESTS or op.name == "send_async":
            return
        wanted, asked = REQUESTS[op.name](op), self._requests()
        instead = any(what == INSTEAD.get(op.name) for what, _, _ in asked)
        if wanted not in asked and not instead:
            same = [each for each in asked if each[0] == wanted[0]]
            raise _failure(f"asked:{wanted[0]}", op, _shown(wanted),
                           _shown(same[-1]) if same else "no such request")  # fmt: skip

    def _judge_changes(self, op: Op, *, succeeded: bool) -> None:
        """Nothing is changed that was not to be, and nothing without need a second time."""
        make = REQUESTS.get(op.name)
        mine = make(op) if make else None
        made = [each for each in self._requests() if each[0] in CHANGES]
        for request in made:
            if request != mine and request not in self.given:
                raise _failure(f"stray:{request[0]}", op, _shown(mine), _shown(request))
        calm = succeeded and _is_calm(op.meanwhile)
        if mine is not None and calm and op.name != "send_async" and made.count(mine) > 1:
            raise _failure(f"twice:{mine[0]}", op, "one request", f"{made.count(mine)} of them")

    def _judge_order(self) -> None:
        """The batches of a topic come in order on each connection, as far as they are new there."""
        new = self.server.seen[self._seen :]
        for number in {each.connection for each in new if trigger_of(each.frame) == "ingest"}:
            for topic, places in self._places(number).items():
                if places != sorted(places):
                    raise Failure(
                        "order", f"the batches of topic {topic} came in the order {places}",
                        expected=("batches in the order in which they were sent",),
                        received=f"the order {places}"[:SHOWN], connection=number,
                    )  # fmt: skip

    def _places(self, connection: int) -> Mapping[int, list[int]]:
        """Which of the batches of each topic came over a connection, by their first arrival."""
        ordinal = {request: place for place, request in enumerate(self.given)}
        came: dict[int, list[int]] = {}
        for received in self.server.seen:
            if received.connection == connection and trigger_of(received.frame) == "ingest":
                place = ordinal.get(_asks(received))
                places = came.setdefault(received.frame.topic_id, [])
                if place is not None and place not in places:
                    places.append(place)
        return came

    # -- what is told ------------------------------------------------------------------------------

    def _answers(self, *triggers: str) -> Iterator[tuple[ReceivedFrame, bytes]]:
        """Requests of the operation that were answered rightly, and the answers' payloads."""
        window = slice(self._answered, None)
        for received, payload in zip(
            self.server.answered[window], self.server.replies[window], strict=True
        ):
            if trigger_of(received.frame) in triggers:
                yield received, payload

    def not_judged(self, _op: Op, _ok: Mapping[str, Any]) -> None:
        """Its success tells nothing."""

    def told_topic(self, op: Op, ok: Mapping[str, Any]) -> None:
        """A topic is the one that an answer has."""
        bodies = [
            json.loads(payload)
            for _, payload in self._answers("create", "create-limited", "get", "list")
        ]
        topics = [each for body in bodies for each in body.get("topics", [body])]
        known = [{name: each.get(name) for name in ("id", "name")} for each in topics]
        told = {name: ok.get(name) for name in ("id", "name")}
        asked = op.arguments.get("name"), op.arguments.get("topic_id")
        if told not in known or not (told["name"] == asked[0] or told["id"] == asked[1]):
            raise _failure("told:topic", op, f"{known}", f"{told}")

    def told_topics(self, op: Op, ok: Mapping[str, Any]) -> None:
        """A list is the last one that came."""
        bodies = [json.loads(payload) for _, payload in self._answers("list")]
        lists = [
            sorted((each.get("id"), each.get("name")) for each in body["topics"]) for body in bodies
        ]
        told = sorted((each.get("id"), each.get("name")) for each in ok.get("topics", []))
        if lists and told != lists[-1]:
            raise _failure("told:topics", op, f"{lists[-1]}", f"{told}")

    def fetched(self, op: Op, ok: Mapping[str, Any]) -> None:
        """A Fetch brings what stands at its offset, and tells where it ends."""
        offset: int = op.arguments["offset"]
        size = self._compared(op, ok, offset)
        answers = [
            payload for received, payload in self._answers("fetch")
            if received.frame.payload[4:12] == struct.pack("<Q", offset)
        ]  # fmt: skip
        whole = {boundaries(payload[16:])[-1] for payload in answers}
        if answers and 0 not in whole and size not in whole:
            raise _failure("records", op, f"records of {max(whole)} bytes", f"records of {size}")
        ends = {int.from_bytes(payload[:8], "little") for payload in answers} if not size else set()
        if ok.get("next_offset") not in ends | {offset + size}:
            raise _failure("result:next_offset", op, f"next offset {offset + size}",
                           f"{ok.get('next_offset')}")  # fmt: skip

    def polled(self, op: Op, ok: Mapping[str, Any]) -> None:
        """A poll brings what comes after the one before."""
        if self.place is not None:
            self.place += self._compared(op, ok, self.place)

    def subscribed(self, op: Op, _ok: Mapping[str, Any]) -> None:
        """A subscription begins where it was told to."""
        self.place = self._begun = max(op.arguments["offset"], self.server.model.base)
        self._topic = op.arguments["topic"]["id"]

    def _compared(self, op: Op, ok: Mapping[str, Any], offset: int) -> int:
        """Bytes of the records that were told; they are those of the log at an offset, in order."""
        model = self.server.model
        starts = model.record_starts()
        at = bisect_left(starts, offset - model.base)
        told = ok.get("records", [])
        ends = starts[at : at + len(told) + 1]
        if len(told) >= max(1, len(ends)):
            raise _failure("records", op, f"no more than {len(ends)} records", f"{len(told)}")
        for number, (record, (start, end)) in enumerate(
            zip(told, itertools.pairwise(ends), strict=True)
        ):
            wanted = model.log[start], model.log[start + RECORD_HEADER : end]
            found = record.get("type"), decoded(record.get("value"))
            if found != wanted:
                raise _failure("records", op, f"record {number} from {offset} on: {wanted}",
                               f"{found}")  # fmt: skip
        return starts[at + len(told)] - starts[at] if told else 0

    def committed(self, op: Op, _ok: Mapping[str, Any]) -> None:
        """A commit is of the topic that is followed, and of the offset that was told."""
        payloads = [received.frame.payload for received, _ in self._answers("commit")]
        wanted = struct.pack("<I", self._topic), struct.pack("<Q", op.arguments["offset"])
        if wanted not in [(each[:4], each[12:]) for each in payloads]:
            raise _failure("asked:commit", op, f"topic {self._topic}, offset {op.arguments}",
                           f"{[each.hex() for each in payloads]}")  # fmt: skip


_RESULTS: Mapping[str, Callable[[Exact, Op, Mapping[str, Any]], None]] = {
    "create_topic": Exact.told_topic, "get_topic": Exact.told_topic,
    "list_topics": Exact.told_topics, "fetch": Exact.fetched, "poll": Exact.polled,
    "subscribe": Exact.subscribed, "commit": Exact.committed,
}  # fmt: skip


def _shown(request: Request | None) -> str:
    if request is None:
        return "no request"
    what, topic, payload = request
    about = f" for topic {topic}" if what == "ingest" else ""
    return f"{what}{about} of {len(payload)} bytes: {payload.hex()}"[:SHOWN]


def _failure(reason: str, op: Op, wanted: str, found: str) -> Failure:
    return Failure(
        reason,
        f"{op}: expected {wanted[:SHOWN]}; got {found[:SHOWN]}",
        expected=(wanted[:SHOWN],),
        received=found[:SHOWN],
    )
