"""What a slot promised that passes between clients: which rows must arrive, with which symbol."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.simulation.model import ViolationError
from tests.simulation.ring.model import RingModel


class Row(NamedTuple):
    """What the one row of a frame says.

    Attributes:
        number: its number.
        symbol: its symbol.
    """

    number: int
    symbol: str


@dataclass(slots=True)
class SlotModel(RingModel):
    """The frames of one slot, told apart by their bytes: numbers change with the writer.

    Attributes:
        rows: what each frame says that was ever given to an append, of any client.
        gone: frames that a host has; they may be delivered again, and need not be.
        safe: frames that survive a loss of power.
        others: frames that other clients stored since our journal was open.
        passed: whether another client had the slot since our journal was open.
        fragile: frames that nobody had promised when power was lost; their symbols may be gone.
        mute: those whose symbols were gone.
        torn: whether power was lost.
        shuffled: whether another client was there since: the Go client writes over the beginning
            of what a loss of power left, and what is whole behind that is found again.
        leaning: frames of the Python client, which lean on symbols that others brought.
        buried: those that were not there any more when somebody opened the slot. A further loss of
            power may bring them back, among frames of a later turn and beside its symbols, and
            nothing in them tells.
    """

    rows: dict[bytes, Row] = field(default_factory=dict)
    gone: set[bytes] = field(default_factory=set)
    safe: set[bytes] = field(default_factory=set)
    others: set[bytes] = field(default_factory=set)
    passed: bool = False
    fragile: set[bytes] = field(default_factory=set)
    mute: set[bytes] = field(default_factory=set)
    torn: bool = False
    shuffled: bool = False
    leaning: set[bytes] = field(default_factory=set)
    buried: set[bytes] = field(default_factory=set)

    def offered(self, payload: bytes, row: Row) -> None:
        """Note that a frame is about to be stored."""
        self.tried[payload] = None
        self.rows[payload] = row

    def arrived(self, payload: bytes, rows: list[Row]) -> None:
        """Judge what a host read from a frame.

        Raises:
            ViolationError: it is not what was written.
        """
        wanted = self.rows.get(payload)
        if wanted is None and rows:
            raise ViolationError("a frame arrived that nobody wrote")
        if wanted is not None and rows != [wanted] and payload not in self.buried:
            raise ViolationError(f"{wanted} arrived as {rows}")

    def bury(self, there: Iterable[bytes]) -> None:
        """Note what is in the slot that somebody opened."""
        self.buried |= self.leaning - self.gone - set(there)

    def sent(self, message: bytes) -> None:
        """Note that a host acknowledged a message."""
        if message in self.tried:
            self.gone.add(message)

    def owed(self) -> set[bytes]:
        """Return the frames that must be in the slot."""
        return {*self.frames.values(), *self.others} - self.gone

    def lose_memory(self) -> None:
        """Note that what was not promised may be gone."""
        self._settle()
        self.frames = {fsn: each for fsn, each in self.frames.items() if each in self.safe}
        self.others &= self.safe
        self.torn = True
        self.fragile |= set(self.tried) - self.safe

    def _settle(self) -> None:
        self.safe |= {each for fsn, each in self.frames.items() if fsn <= self.promised}

    def judge_opened(self, acked: int, next_fsn: int, found: Mapping[int, bytes]) -> None:
        """Judge what our journal has that was opened again, and learn what became of the rest.

        Raises:
            ViolationError: a promise was broken.
        """
        self._settle()
        numbers = {payload: fsn for fsn, payload in found.items()}
        lost = self.owed() - set(numbers)
        if lost:
            raise ViolationError(f"lost are {sorted(self.rows[each] for each in lost)}")
        if not self.passed:
            self._judge_numbers(next_fsn, numbers)
        self._judge_invented(found)
        self.bury(numbers)
        if self.passed:
            self.promised = self._promised_in(found)
            self.used = -1
        else:  # what has no frame is not promised
            self.promised = min(self.promised, next_fsn - 1)
        self.frames = dict(found)
        self.acked = acked
        self.others, self.passed = set(), False

    def _promised_in(self, found: Mapping[int, bytes]) -> int:
        """Return up to which number every frame was promised.

        Where the Go client wrote over what a loss of power left, its frames, which it synced
        nowhere, have numbers below those of frames that are safe, and are not promised by them.
        """
        unsafe = next((fsn for fsn in sorted(found) if found[fsn] not in self.safe), None)
        return max((fsn for fsn in found if unsafe is None or fsn < unsafe), default=-1)

    def pass_on(self, behind_damage: set[bytes]) -> None:
        """Note that another client gets the slot.

        Published clients set aside or clear what stands behind damage in a segment.
        """
        self.passed = True
        self.shuffled |= self.torn
        self.frames = {f: each for f, each in self.frames.items() if each not in behind_damage}
        self.others -= behind_damage

    def _judge_invented(self, found: Mapping[int, bytes]) -> None:
        if not self.shuffled:
            RingModel._judge_invented(self, found)
        elif len(set(found.values())) < len(found) or not set(found.values()) <= set(self.tried):
            raise ViolationError("a frame is there twice, or was written by nobody")

    def _judge_numbers(self, next_fsn: int, numbers: Mapping[bytes, int]) -> None:
        for fsn, payload in self.frames.items():
            there = numbers.get(payload)
            if there is not None and there != fsn:
                raise ViolationError(f"frame {fsn} has number {there} now")
        self._note_used()
        if next_fsn <= max(-1 if self.names_unsure else self.used, *numbers.values(), -1):
            raise ViolationError(f"the next number would be {next_fsn}, which was given out")
