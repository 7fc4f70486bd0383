"""One slot in the hands of several clients in turn, closed or killed, with servers good and bad."""

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

from lance_sdk.journal.qwp import QwpSender
from lance_server.listeners.qwp.testing import Endpoint

Client: TypeAlias = Literal["ours", "python", "go"]

UNUSED: Final = "127.0.0.1:1"
_SYMBOLS: Final = 5


def symbol_of(number: int) -> str:
    """Return the symbol of a row."""
    return f"s{number % _SYMBOLS}"


@dataclass(frozen=True)
class Turn:
    """One client's time with the slot.

    Attributes:
        client: who.
        rows: numbers of the rows that it is to write, one frame each.
        online: whether there is a server.
        stall: after so many messages the server answers nothing more; None means that it goes on.
        small: whether segments are as small as they may be.
        kill: after so many stored rows it is killed; None means that it closes.
    """

    client: Client
    rows: range
    online: bool
    stall: int | None
    small: bool
    kill: int | None


@dataclass
class Log:
    """What came of all turns.

    Attributes:
        stored: rows whose flush returned.
        told: what clients said in their turns that is not a row: errors.
        turns: all turns.
    """

    stored: set[int] = field(default_factory=set)
    told: list[tuple[Turn, str]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


def draw(dice: random.Random, clients: list[Client], start: int) -> Turn:
    """Return a turn drawn at random."""
    count = dice.randrange(1, 60)
    return Turn(
        client=dice.choice(clients),
        rows=range(start, start + count),
        online=dice.random() < 0.6,
        stall=dice.randrange(0, 40) if dice.random() < 0.5 else None,
        small=dice.random() < 0.7,
        kill=dice.randrange(1, count + 1) if dice.random() < 0.5 else None,
    )


class Writers:
    """The Python clients, in a process that forks for each turn; use it in a ``with`` block."""

    def __init__(self) -> None:
        program = str(Path(__file__).parent / "handover" / "writers.py")
        self._process = subprocess.Popen(
            [sys.executable, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def take(self, turn: "Turn", conf: str) -> list[str]:
        """Have a turn; return its lines."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([turn.client, conf, turn.rows.start, len(turn.rows)]) + "\n")
        process.stdin.flush()
        pid, lines = int(process.stdout.readline()), list[str]()
        for line in map(str.strip, process.stdout):
            if line == "end":
                return lines
            lines.append(line)
            if turn.kill is not None and len(lines) == turn.kill:
                with suppress(ProcessLookupError):  # that was its last row
                    os.kill(pid, signal.SIGKILL)
        raise AssertionError("the writers are gone")


class Slot:
    """A slot, a server, and the clients that take turns.

    Args:
        qwp: the server.
        folder: the ``sf_dir``.
        writers: the Python clients.
        go: the program that writes through the Go client, or None.

    Attributes:
        log: what came of the turns.
    """

    def __init__(self, qwp: Endpoint, folder: Path, writers: Writers, go: Path | None) -> None:
        self._qwp = qwp
        self._folder = folder
        self._writers = writers
        self._go = go
        self.log = Log()

    def take(self, turn: Turn) -> None:
        """Let a client have its turn."""
        self.log.turns.append(turn)
        rule = None
        if turn.online and turn.stall is not None:
            rule = self._qwp.when(message=turn.stall, stall=True, times=0)
        conf = self._conf(turn)
        try:
            run = self._run_go if turn.client == "go" else self._writers.take
            lines = run(turn, conf)
        finally:
            if rule is not None:
                rule.message = -1  # no message has this number
        for line in lines:
            if line.isdigit():
                self.log.stored.add(int(line))
            else:
                self.log.told.append((turn, line))

    def _conf(self, turn: Turn) -> str:
        size = "sf_max_bytes" if turn.client == "go" else "sf_max_segment_bytes"
        small = f"{size}=4096;" if turn.small else ""
        wait = 300 if turn.online else 0
        return (
            f"ws::addr={self._qwp.addr if turn.online else UNUSED};sf_dir={self._folder};"
            f"initial_connect_retry=async;auto_flush=off;close_flush_timeout_millis={wait};{small}"
        )

    def _run_go(self, turn: Turn, conf: str) -> list[str]:
        self._move_number_0()
        command = [str(self._go), conf, str(turn.rows.start), str(len(turn.rows))]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            lines: list[str] = []
            for line in map(str.strip, process.stdout):
                lines.append(line)
                if turn.kill is not None and len(lines) == turn.kill:
                    process.send_signal(signal.SIGKILL)
            died = process.stderr.read().strip().partition("\n")[0]
            if process.wait() == 2:  # a panic
                lines.append(f"error: {died}")
            return lines

    def _move_number_0(self) -> None:
        """Give a segment of number 0 another one.

        The Go client empties it now and then while it opens a slot (SF-40). Our sender keeps its
        own frames away from that; those of the others would be lost without any fault of ours.
        """
        slot = self._folder / "default"
        first = slot / "sf-0000000000000000.sfa"
        if first.exists():
            numbers = [int(each.name[3:19], 16) for each in slot.glob("sf-0*.sfa*")]
            first.rename(slot / f"sf-{max(numbers) + 1:016x}.sfa")

    def drain(self) -> None:
        """Have our sender send everything that is left."""
        (self._folder / "default" / ".failed").unlink(missing_ok=True)
        with QwpSender.from_conf(f"ws::addr={self._qwp.addr};sf_dir={self._folder};") as sender:
            assert sender.wait(timeout=60), sender.stats()
            assert not sender.problems, sender.problems
