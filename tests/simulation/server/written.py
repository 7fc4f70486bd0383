"""Rows that peers of other listeners write, and that stay once they are acknowledged."""

import json
from typing import Final, NamedTuple

from tests.simulation.model import ViolationError
from tests.simulation.store.life import read_topic

from lance_server.log.log_manager import LogManager
from lance_spec.enums import RecordType
from lance_spec.messages.lwp import Timestamped
from lance_spec.records import decode_records

_SHOWN: Final = 12


class Row(NamedTuple):
    """One record: who wrote it, and which of that writer's it is."""

    writer: int
    number: int

    def __repr__(self) -> str:
        return f"row {self.number} of {self.writer}"

    def encode(self) -> bytes:
        """Return what is written."""
        return f'{{"w": {self.writer}, "v": {self.number}}}'.encode()


class Written:
    """A topic that one peer or several write rows to.

    Args:
        name: of the topic.

    Attributes:
        name: of the topic.
        acked: the rows that were acknowledged, with the number of the record that each is said to
            be, or None where the protocol does not say.
        created: whether that the topic is there was acknowledged.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.acked: dict[Row, int | None] = {}
        self.created = False
        self._last: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<Written {self.name}: {len(self.acked)} rows acknowledged>"

    def following(self, writer: int) -> Row:
        """Return the next row of a writer."""
        self._last[writer] = self._last.get(writer, 0) + 1
        return Row(writer, self._last[writer])

    def judge(self, engine: LogManager) -> None:
        """Judge what the topic holds: each row once, in order, and all that were acknowledged.

        Raises:
            ViolationError: a row is lost, invented, repeated, out of order or at another place.
        """
        found = engine.topic_named(self.name)
        if found is None:
            if self.acked or self.created:
                raise ViolationError(f"{self.name} is gone")
            return
        data = b"".join(data for _, data in sorted(read_topic(found).pieces.items()))
        rows = [self._row(kind, value) for kind, value in decode_records(data)]
        for writer, last in self._last.items():
            numbers = [row.number for row in rows if row.writer == writer]
            if numbers != sorted(set(numbers)) or not set(numbers) <= set(range(1, last + 1)):
                raise ViolationError(f"{self.name} holds {numbers[:_SHOWN]} of {writer}")
        if strange := {row.writer for row in rows} - set(self._last):
            raise ViolationError(f"{self.name} holds rows of {strange}, who wrote none")
        self._judge_acked(rows)

    def _judge_acked(self, rows: list[Row]) -> None:
        if lost := sorted(set(self.acked) - set(rows)):
            raise ViolationError(f"{self.name}: acknowledged rows {lost[:_SHOWN]} are lost")
        for row, place in self.acked.items():
            if place is not None and rows[place : place + 1] != [row]:
                raise ViolationError(f"{self.name}: {row} is not record {place}, as was said")

    def _row(self, kind: int, value: bytes) -> Row:
        plain = Timestamped.decode(value).data if kind == RecordType.TIMESTAMPED else value
        cells = json.loads(bytes(plain))
        return Row(cells.get("w", 0), cells["v"])  # a table's rows have no column for the writer
