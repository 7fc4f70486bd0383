"""Faults on the way to the client, as they were ordered."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_server.errors import ConfigError
from lance_server.http.json_body import JsonBody
from lance_server.lwp.responses import Answer
from lance_spec.dialect import Dialect
from lance_spec.enums import Command, Flag
from lance_spec.frames import encode_backpressure
from lance_spec.limits import HEADER_SIZE

KINDS: Final = ("delay", "drop", "corrupt", "reorder", "backpressure", "half_close", "reset")
_MOST_RULES: Final = 100
_REORDER_WAIT: Final = 0.2
_FLAGS_AT: Final = 5
_COMMAND_AT: Final = 12
_LENGTH_AT: Final = 32

_ANSWERS: Final = {
    "ack": int(Flag.ACK),
    "keepalive": int(Flag.KEEPALIVE),
    "control": int(Flag.CONTROL),
}
_COMMANDS: Final = {"fetch": int(Command.FETCH_RESPONSE), "error": int(Command.ERROR_RESPONSE)}
TARGETS: Final = ("any", *_ANSWERS, *_COMMANDS)


@dataclass(slots=True)
class Rule:
    """What is to go wrong, and when.

    Attributes:
        fault: one of `KINDS`.
        on: which answers it concerns, one of `TARGETS`.
        after: how many of them pass unharmed first.
        count: how many of them are hit.
        seconds: for ``delay``: for how long.
    """

    fault: str
    on: str = "any"
    after: int = 0
    count: int = 1
    seconds: float = 0.0

    @classmethod
    def from_body(cls, body: object) -> "Rule":
        """Return the rule that an object describes.

        Raises:
            ConfigError: it makes no sense; the message names the field.
        """
        fields = JsonBody("a rule", body, ("fault", "on", "after", "count", "seconds"))
        assert isinstance(body, Mapping), "it was looked at"
        return cls(
            fault=fields.choice("fault", KINDS),
            on=fields.choice("on", TARGETS) if "on" in body else "any",
            after=fields.whole("after"),
            count=fields.whole("count", 1),
            seconds=fields.number("seconds"),
        )

    def concerns(self, frame: Answer) -> bool:
        """Whether an answer is of the kind that is meant."""
        if self.on == "any":
            return True
        flags = frame[_FLAGS_AT]
        if self.on in _ANSWERS:
            return bool(flags & _ANSWERS[self.on])
        command = int.from_bytes(frame[_COMMAND_AT : _COMMAND_AT + 8], "little")
        return bool(flags & Flag.CONTROL) and command == _COMMANDS[self.on]


class FaultPlan:
    """The rules that are in force, for all connections together, in the order of answers."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self.hits = 0

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __repr__(self) -> str:
        return f"<FaultPlan {self._rules} {self.hits} hits>"

    def replace(self, body: object) -> None:
        """Take new rules; an empty list ends all faults.

        Raises:
            ConfigError: one of them makes no sense; the others are not taken either.
        """
        rules = JsonBody("faults", body, ("rules",)).items("rules")
        if len(rules) > _MOST_RULES:
            raise ConfigError(f"faults: at most {_MOST_RULES} rules, not {len(rules)}")
        self._rules = [rule for rule in map(Rule.from_body, rules) if rule.count]

    def to_body(self) -> dict[str, Any]:
        """Return what is left of the rules, and how often one was applied."""
        names = ("fault", "on", "after", "count", "seconds")
        rules = [{name: getattr(rule, name) for name in names} for rule in self._rules]
        return {"rules": rules, "hits": self.hits}

    def next_for(self, frame: Answer) -> Rule | None:
        """Return what happens to an answer, or None when it passes unharmed."""
        for rule in self._rules:
            if not rule.concerns(frame):
                continue
            if rule.after:
                rule.after -= 1
                continue
            rule.count -= 1
            if not rule.count:
                self._rules.remove(rule)
            self.hits += 1
            return rule
        return None


class FaultInjector:
    """The answers of one connection on their way through the plan.

    Attributes:
        ends: whether nothing more is sent, though requests are still read.
        breaks: whether the connection is to be reset.
    """

    def __init__(self, plan: FaultPlan) -> None:
        self._plan = plan
        self._queue: deque[tuple[float, bytes]] = deque()
        self._swapped: tuple[float, bytes] | None = None
        self.ends = False
        self.breaks = False

    def __repr__(self) -> str:
        return f"<FaultInjector {len(self._queue)} answers wait>"

    @property
    def is_active(self) -> bool:
        """Whether answers must go through here: there are rules, or some still wait."""
        return bool(self._plan or self._queue or self._swapped or self.ends or self.breaks)

    @property
    def next_at(self) -> float | None:
        """When the next answer is due, or None when none waits."""
        times = [self._queue[0][0]] if self._queue else []
        if self._swapped is not None:
            times.append(self._swapped[0])
        return min(times, default=None)

    def send(self, answers: Sequence[Answer], dialect: Dialect, now: float) -> list[Answer]:
        """Put answers in; return what comes out now."""
        for frame in _frames(answers):
            self._put(frame, dialect, now)
        return self._due(now)

    def _put(self, frame: bytes, dialect: Dialect, now: float) -> None:
        rule = self._plan.next_for(frame)
        fault = None if rule is None else rule.fault
        if self.ends or self.breaks or fault == "drop":
            return
        if fault == "reorder" and self._swapped is None:
            self._swapped = (now + _REORDER_WAIT, frame)
            return
        if fault == "backpressure":
            self._append(encode_backpressure(dialect), now)
        delay = rule.seconds if rule is not None and fault == "delay" else 0.0
        self._append(_corrupted(frame) if fault == "corrupt" else frame, now + delay)
        if self._swapped is not None:
            (_, swapped), self._swapped = self._swapped, None
            self._append(swapped, now)
        self.ends = fault == "half_close"
        self.breaks = fault == "reset"

    def _append(self, frame: bytes, at: float) -> None:
        """Keep the order: nothing overtakes what is delayed."""
        last = self._queue[-1][0] if self._queue else at
        self._queue.append((max(at, last), frame))

    def _due(self, now: float) -> list[Answer]:
        if self._swapped is not None and now >= self._swapped[0]:
            (_, swapped), self._swapped = self._swapped, None
            self._append(swapped, now)
        ready: list[Answer] = []
        while self._queue and self._queue[0][0] <= now:
            ready.append(self._queue.popleft()[1])
        return ready


def _frames(answers: Sequence[Answer]) -> Iterator[bytes]:
    """Yield the frames of answers one by one."""
    data = b"".join(answers)
    start = 0
    while start < len(data):
        at = start + _LENGTH_AT
        end = start + HEADER_SIZE + int.from_bytes(data[at : at + 4], "little")
        yield data[start:end]
        start = end


def _corrupted(frame: bytes) -> bytes:
    """Flip the last bit: of the payload, or of the header where there is none."""
    return frame[:-1] + bytes([frame[-1] ^ 1]) if len(frame) > HEADER_SIZE else _bad_magic(frame)


def _bad_magic(frame: bytes) -> bytes:
    return bytes([frame[0] ^ 1]) + frame[1:]
