"""What a ring promised: which frames must be delivered, and under which number."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from tests.simulation.model import ViolationError


@dataclass(slots=True)
class RingModel:
    """The frames of one slot.

    Attributes:
        tried: the payloads that were ever given to `append`, in that order.
        frames: payloads by number of the appends that returned.
        promised: up to this number frames survive a loss of power; -1 for none.
        used: the highest number of a frame that was promised; -1 for none.
        acked: up to this number frames may be gone; -1 for none.
        names_unsure: whether the folder could not be synced: removed files may be back, and the
            numbers of frames that are acknowledged may be used again.
    """

    tried: dict[bytes, None] = field(default_factory=dict)
    frames: dict[int, bytes] = field(default_factory=dict)
    promised: int = -1
    used: int = -1
    acked: int = -1
    names_unsure: bool = False

    def appended(self, fsn: int, payload: bytes) -> None:
        """Note that `append` returned a number."""
        if self.frames.get(fsn, payload) != payload:
            raise ViolationError(f"frame {fsn} was given to two payloads")
        self.frames[fsn] = payload

    def at_this_time(self) -> Self:
        """Return a model that learns nothing more, to judge by it later."""
        return replace(self, frames=dict(self.frames))

    def lose_memory(self) -> None:
        """Note that what was not promised may be gone."""
        self.frames = {fsn: each for fsn, each in self.frames.items() if fsn <= self.promised}

    def judge_running(self, start: int, found: Mapping[int, bytes]) -> None:
        """Judge what a running journal delivers from a number on.

        Raises:
            ViolationError: it is not what was appended.
        """
        wanted = {fsn: each for fsn, each in self.frames.items() if fsn >= start}
        for fsn, payload in wanted.items():
            if found.get(fsn) != payload:
                raise ViolationError(
                    f"frame {fsn} is {_shown(found.get(fsn))}, not {payload!r:.20}"
                )
        self._judge_invented(found)

    def judge_opened(self, acked: int, next_fsn: int, found: Mapping[int, bytes]) -> None:
        """Judge what a journal has that was opened again, and learn what became of the rest.

        Raises:
            ViolationError: a promise was broken.
        """
        self._note_used()
        numbers = {payload: fsn for fsn, payload in found.items()}
        for fsn, payload in self.frames.items():
            there = numbers.get(payload)
            if there is None and fsn > self.acked:
                raise ViolationError(f"frame {fsn} is lost; found {sorted(found)}")
            if there is not None and there != fsn:
                raise ViolationError(f"frame {fsn} has number {there} now")
        if next_fsn <= max(-1 if self.names_unsure else self.used, *found, -1):
            raise ViolationError(f"the next number would be {next_fsn}, which was given out")
        self._judge_invented(found)
        self.frames = dict(found)
        self.promised = min(self.promised, next_fsn - 1)  # what has no frame is not promised
        self.acked = max(self.acked, acked)

    def _note_used(self) -> None:
        self.used = max([self.used, *(fsn for fsn in self.frames if fsn <= self.promised)])

    def _judge_invented(self, found: Mapping[int, bytes]) -> None:
        order = list(self.tried)
        places = [order.index(each) if each in self.tried else -1 for each in found.values()]
        if -1 in places:
            raise ViolationError("a frame was delivered that nobody appended")
        if places != sorted(set(places)):
            raise ViolationError("frames were delivered twice, or in another order")


def _shown(payload: bytes | None) -> str:
    return "missing" if payload is None else repr(payload[:16])
