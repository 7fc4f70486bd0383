"""Rows with symbols through kills and losses of power, from the writer to a host.

The real writer, dictionary, journal and transport, on a disk in memory. ``LANCE_SYMBOL_IMAGES``
says how many histories each test tries.
"""

import json
import os
import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from websockets.protocol import State

from lance_sdk.journal import Durability, Journal, JournalConfig, SlotKind
from lance_sdk.journal._slot.symbol_file import NAME
from lance_sdk.journal.qwp import RowOptions, SymbolsLost, timestamp_nanos
from lance_sdk.journal.qwp.dictionary import SymbolDictionary, open_dictionary
from lance_sdk.journal.qwp.writer import RowWriter
from lance_sdk.journal.testing import ForgetfulDisk, PowerCut
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.rows import Reader
from lance_spec.messages.lwp import Timestamped
from lance_spec.records import decode_records

from .world import Host, Wire, World

SLOT: Final = Path("/disk/slot")
IMAGES: Final = int(os.environ.get("LANCE_SYMBOL_IMAGES", "24"))
BLOCK: Final = 6
"""Histories in one test."""


@dataclass
class History:
    """A slot and the rows that were given to it, through several lives.

    Attributes:
        dice: decides everything.
        durability: of the slot.
        power: whether power is lost, or the process killed.
        disk: the disk as it is now.
        symbols: the symbol of each row that was given.
        stored: rows whose flush returned.
        arrived: rows that a host got, with their symbols.
    """

    dice: random.Random
    durability: Durability
    power: bool
    disk: ForgetfulDisk = field(default_factory=ForgetfulDisk)
    symbols: dict[int, str] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    arrived: list[tuple[int, str]] = field(default_factory=list)

    def live(self) -> None:
        """Write rows, send some of them, and be cut off at any operation."""
        self.disk.cut_power_after(self.dice.randrange(150))
        with suppress(PowerCut), self._opened() as journal:
            symbols = open_dictionary(journal)
            for _ in range(self.dice.randrange(1, 12)):
                if self.dice.random() < 0.2:
                    self._send(journal, symbols, 1.0)
                self._write(journal, symbols)
        self.disk = self.disk.power_lost(self.dice) if self.power else self.disk.killed()

    def _opened(self) -> Journal:
        config = JournalConfig(
            kind=SlotKind.QWP,
            segment_bytes=512,
            durability=self.durability,
            synced_before_trim=(NAME,),
            background=False,
        )
        return Journal.open(SLOT, config, files=self.disk)

    def _write(self, journal: Journal, dictionary: SymbolDictionary) -> None:
        options = RowOptions(delta_frames=self.dice.random() < 0.8)
        rows = RowWriter(options, dictionary, journal._limit)
        number = len(self.symbols)
        symbol = self.symbols[number] = f"s{self.dice.randrange(30)}"
        rows.add("t", {"s": symbol}, {"v": number}, timestamp_nanos(number + 1))
        rows.seal()
        frame = rows.front()
        assert frame is not None
        journal.append(frame)
        rows.stored()
        self.stored.add(number)

    def _send(self, journal: Journal, dictionary: SymbolDictionary, seconds: float) -> World:
        """Send what waits to a host that takes it; return the sender."""
        world = World(Host(on_message=_take), journal=journal, dictionary=dictionary)
        try:
            world.run(seconds)
        finally:  # what was cut off here had reached the host
            for wire in world.wires:
                reader = Reader(QwpOptions())
                for message in wire.messages:
                    for table in reader.read(message, 7)[1]:
                        self.arrived += map(_row, table.chunks)
        return world

    def end(self) -> World:
        """Send everything that is left, with nothing in the way; return the sender."""
        with self._opened() as journal:
            return self._send(journal, open_dictionary(journal), 5.0)


def _take(wire: Wire) -> None:
    """Acknowledge a message, unless the sender has said goodbye after it."""
    if wire.protocol.state is State.OPEN:
        wire.ok()


def _row(chunk: tuple[bytes, int]) -> tuple[int, str]:
    """Return number and symbol of the one row of a frame."""
    ((_, value),) = decode_records(chunk[0])
    row = json.loads(Timestamped.decode(value).data)
    return row["v"], row["s"]


def histories(block: int, durability: Durability, *, power: bool) -> list[tuple[History, World]]:
    """Return histories of three lives, and how each ended."""
    found = []
    for seed in range(BLOCK * block, BLOCK * (block + 1)):
        history = History(random.Random(f"{seed} {durability} {power}"), durability, power)
        for _ in range(3):
            history.live()
        found.append((history, history.end()))
    return found


@pytest.mark.parametrize("block", range(IMAGES // BLOCK))
@pytest.mark.parametrize(
    ("durability", "power"),
    [(Durability.APPEND, True), (Durability.MEMORY, False)],
    ids=["losses of power", "kills"],
)
def test_every_stored_row_arrives_with_its_own_symbol(
    block: int, durability: Durability, power: bool
) -> None:
    """Whatever was cut off, where the durability covers it."""
    for history, world in histories(block, durability, power=power):
        assert world.outbox.failure is None
        assert all(history.symbols[number] == symbol for number, symbol in history.arrived)
        assert history.stored <= {number for number, _ in history.arrived}


@pytest.mark.parametrize("block", range(IMAGES // BLOCK))
def test_where_nothing_was_synced_no_row_gets_another_symbol(block: int) -> None:
    """Rows may be lost then; what needs a lost symbol is not sent, and told."""
    for history, world in histories(block, Durability.MEMORY, power=True):
        assert all(history.symbols[number] == symbol for number, symbol in history.arrived)
        assert world.outbox.drained or isinstance(world.outbox.failure, SymbolsLost)
