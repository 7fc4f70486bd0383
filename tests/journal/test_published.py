"""Slots in the hands of our journal and of models of the published clients.

Through kills and losses of power in any order each frame that was stored arrives as it was written.
``LANCE_MODEL_HANDOVERS`` says how many hand-overs each test makes.
"""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from lance_sdk.journal import Durability, Journal, JournalConfig, SlotHasGap, SlotKind
from lance_sdk.journal.files import Files
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut

from .published import GoClient, PublishedClient, PythonClient, RefusedError

SLOT: Final = Path("/disk/slot")
SIZE: Final = 256
MODELS: Final[dict[str, Callable[[Files, Path, int], PublishedClient]]] = {
    "go": GoClient,
    "python": PythonClient,
}
SEEDS: Final = int(os.environ.get("LANCE_MODEL_HANDOVERS", "300")) // 10
TURNS: Final = 10


def config(durability: Durability = Durability.MEMORY, *, gaps: bool = False) -> JournalConfig:
    """Return settings with small segments and no threads."""
    return JournalConfig(
        kind=SlotKind.QWP,
        segment_bytes=SIZE,
        durability=durability,
        background=False,
        accept_gaps=gaps,
    )


@dataclass
class World:
    """A slot and what became of the frames that were stored in it.

    Attributes:
        dice: decides everything.
        clients: who takes turns.
        power: whether power is lost, too.
        disk: the disk as it is now.
        stored: frames whose append returned.
        safe: those of them that were synced before their append returned.
        tried: frames that were given to an append.
        sent: frames that a server got.
        told: what happened, for people.
    """

    dice: random.Random
    clients: list[str]
    power: bool = False
    disk: ForgetfulDisk = field(default_factory=ForgetfulDisk)
    stored: set[bytes] = field(default_factory=set)
    safe: set[bytes] = field(default_factory=set)
    tried: set[bytes] = field(default_factory=set)
    sent: set[bytes] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    _number: int = 0

    def payloads(self) -> Iterator[bytes]:
        """Return frames for one turn, each of them new."""
        for _ in range(self.dice.randrange(1, 25)):
            self._number += 1
            frame = b"%04d" % self._number + b"." * self.dice.randrange(40)
            self.tried.add(frame)
            yield frame

    def turn(self) -> None:
        """Let a client have the slot, until it closes, is killed, or power is lost."""
        who = self.dice.choice(self.clients)
        steps = self.dice.randrange(1, 60) if self.dice.random() < 0.6 else None
        if steps is not None:
            self.disk.cut_power_after(steps)
        end = "closed"
        try:
            (self._ours if who == "ours" else lambda: self._theirs(who))()
        except PowerCut:
            end = "cut"
        except RefusedError as error:
            end = f"refused: {error}"
        except SlotHasGap as gap:
            if not self.power:  # a kill loses nothing
                raise
            end = f"refused: {gap.lost}"
            self.disk = self.disk.killed()
            Journal.open(SLOT, config(gaps=True), files=self.disk).close()
        lost = self.power and self.dice.random() < 0.5
        self.told.append(f"{who} {steps} {end} {'power lost' if lost else ''}")
        if lost:
            self.disk = self.disk.power_lost(self.dice if self.dice.random() < 0.7 else None)
        else:
            self.disk = self.disk.killed()

    def _ours(self) -> None:
        durability = self.dice.choice([Durability.MEMORY, Durability.APPEND])
        journal = Journal.open(SLOT, config(durability), files=self.disk)
        for frame in self.payloads():
            journal.append(frame)
            self.stored.add(frame)
            if durability is Durability.APPEND:
                self.safe.add(frame)
            if self.dice.random() < 0.3:
                self._send(journal, self.dice.randrange(12))
        if self.dice.random() < 0.3:
            self._send(journal, 10**6)
        if self.dice.random() < 0.7:
            journal.close()

    def _send(self, journal: Journal, most: int) -> None:
        last = -1
        for _, (fsn, payload) in zip(
            range(most), journal.read_from(journal.acked_fsn + 1), strict=False
        ):
            self.sent.add(payload)
            last = fsn
        if last >= 0:
            journal.ack(last)
        journal.maintain()

    def _theirs(self, who: str) -> None:
        client: PublishedClient = MODELS[who](self.disk, SLOT, SIZE)
        for frame in self.payloads():
            client.append(frame)
            self.stored.add(frame)
            if self.dice.random() < 0.3:
                client.send(self.dice.randrange(12), self.sent)
        if self.dice.random() < 0.3:
            client.send(10**6, self.sent)
        if self.dice.random() < 0.7:
            client.close()

    def drain(self) -> None:
        """Have our journal deliver what is left."""
        try:
            journal = Journal.open(SLOT, config(), files=self.disk)
        except SlotHasGap:
            if not self.power:
                raise
            self.disk = self.disk.killed()
            journal = Journal.open(SLOT, config(gaps=True), files=self.disk)
        with journal:
            frames = [payload for _, payload in journal.read_from(journal.acked_fsn + 1)]
            self.sent.update(frames)
            if not self.power:
                assert not [each for each in journal.problems if each.lost], self.told


WHO: Final = {
    "ours": ["ours"],
    "ours and Go": ["ours", "go"],
    "ours and Python": ["ours", "python"],
    "all three": ["ours", "go", "python"],
}


@pytest.mark.parametrize("who", WHO)
def test_no_order_of_hand_overs_and_kills_loses_a_frame(who: str) -> None:
    """Each of them arrives as it was written, and nothing else does."""
    for seed in range(SEEDS):
        world = World(random.Random(f"{who} {seed}"), WHO[who])
        for _ in range(TURNS):
            world.turn()
        world.drain()
        assert world.stored <= world.sent, (seed, world.told)
        assert world.sent <= world.tried, (seed, world.told)


@pytest.mark.parametrize("who", WHO)
def test_no_loss_of_power_takes_what_was_synced(who: str) -> None:
    """Whatever the others left unsynced; nothing is delivered that was not written."""
    for seed in range(SEEDS):
        world = World(random.Random(f"power {who} {seed}"), WHO[who], power=True)
        for _ in range(TURNS):
            world.turn()
        world.drain()
        assert world.safe <= world.sent, (seed, world.told)
        assert world.sent <= world.tried, (seed, world.told)


@pytest.mark.parametrize("who", ["go", "python"])
def test_a_model_alone_keeps_its_slot(who: str) -> None:
    """So that what is found in the others is not a fault of the model."""
    for seed in range(SEEDS):
        world = World(random.Random(f"alone {who} {seed}"), [who])
        for _ in range(TURNS):
            world.turn()
        world.drain()
        assert world.stored <= world.sent, (seed, world.told)
