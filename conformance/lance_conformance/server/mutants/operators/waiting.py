"""Servers that end connections too early."""

from collections.abc import Callable
from time import monotonic

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.golden.state import Topic
from lance_conformance.server.mutants.operators.common import (
    PACE,
    register,
)
from lance_conformance.server.mutants.predicates import register as put_to
from lance_conformance.server.mutants.registry import golden


def _impatient(seconds: float) -> None:
    def idle(_server: Specified, _unfinished: bool, /) -> float | None:
        return seconds * PACE

    def stalled(_server: Specified, unfinished: bool, /) -> float | None:
        return seconds * PACE if unfinished else None

    def whole(server: Specified, unfinished: bool, /) -> float | None:
        kept, key, now = server.memory.kept, ("began", id(server.memory.speaker)), monotonic()
        if not unfinished:
            kept.pop(key, None)
            return None
        began: float = kept.setdefault(key, now)
        return max(0.0, began + seconds * PACE - now)

    register(Specified.idle_limit, f"ends-frames-after-{seconds}",
             f"A frame that is not whole after {seconds} s ends its connection.",
             whole)  # fmt: skip
    register(Specified.idle_limit, f"ends-idle-connections-after-{seconds}",
             f"A connection that is silent for {seconds} s is ended.", idle)  # fmt: skip
    register(Specified.idle_limit, f"ends-stalled-frames-after-{seconds}",
             f"A frame that stalls for {seconds} s ends its connection.", stalled)  # fmt: skip


def _ends_after(seconds: float) -> None:
    def aged(server: Specified, _unfinished: bool, /) -> float:
        now, key = monotonic(), ("made", id(server.memory.speaker))
        made: float = server.memory.kept.setdefault(key, now)
        return max(0.0, made + seconds * PACE - now)

    put_to(Specified.idle_limit, f"ends-connections-after-{seconds}",
           f"A connection is ended after {seconds} s, whatever comes.", aged,
           None, ("wait/beats-40",))  # fmt: skip


_ends_after(33)
for _seconds in (3, 10, 20):
    _impatient(_seconds)


def _expires(name: str, title: str, expired: Callable[[Topic, float], bool]) -> None:
    def readable(server: Specified, topic: Topic, /) -> bytes:
        first: float = server.memory.kept.setdefault(("first", topic.id), monotonic())
        gone = expired(topic, (monotonic() - first) / PACE)
        return b"" if gone else golden(server).readable(topic)

    put_to(Specified.readable, name, title, readable, None, ("wait/within-limits",))


def _limits(topic: Topic) -> tuple[int, int]:
    return topic.limits or (0, 0)


_expires("takes-ages-for-milliseconds", "Records are kept for as many milliseconds as seconds.",
         lambda topic, age: 0 < _limits(topic)[0] / 1000 < age)  # fmt: skip
_expires("takes-sizes-for-records", "A topic that is limited in bytes has a fifth of them.",
         lambda topic, _: 0 < _limits(topic)[1] / 5 < len(topic.log))  # fmt: skip
