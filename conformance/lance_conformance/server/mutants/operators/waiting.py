"""Servers that end connections too early."""

from time import monotonic

from lance_conformance.server.golden.specified import Specified
from lance_conformance.server.mutants.operators.common import (
    PACE,
    register,
)
from lance_conformance.server.mutants.predicates import register as put_to


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
for _seconds in (3,):
    _impatient(_seconds)
