"""Errors and reports of the QWP transport, in addition to those of every sender."""
# ruff: noqa: N818 - these names say what happened; "Error" would repeat it

from pathlib import Path
from typing import Any

from lance_sdk.errors import TransportError
from lance_sdk.journal.errors import JournalError


class UpgradeRefused(TransportError):
    """The host answered the upgrade with something else than 101; another try may work.

    Attributes:
        status: the HTTP status.
        role: the role that a host told with status 421, or None.
    """

    def __init__(self, status: int, reason: str, role: str | None = None) -> None:
        self.status = status
        self.reason = reason
        self.role = role
        told = f", the host's role is {role}" if role else ""
        super().__init__(f"the upgrade was refused with status {status} {reason}{told}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.reason, self.role)

    @property
    def credentials(self) -> bool:
        """Whether the host does not let this sender in, now or ever."""
        return self.status in {401, 403}

    @property
    def misdirected(self) -> bool:
        """Whether the host said that it has a role which takes no writes."""
        return self.status == 421 and bool(self.role)

    @property
    def catching_up(self) -> bool:
        """Whether that role is about to change."""
        return self.misdirected and (self.role or "").upper() == "PRIMARY_CATCHUP"


class VersionUnsupported(TransportError):
    """The host speaks a version of QWP that this sender does not; others may.

    Attributes:
        version: what it said.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(f"the host speaks QWP version {version!r}, this sender version 1")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.version,)


class DurableAckUnavailable(TransportError):
    """The host does not grant durable acknowledgements, which were asked for."""

    def __init__(self) -> None:
        super().__init__(
            "the host does not grant durable acknowledgements (request_durable_ack=on); "
            "connect to one that does, or leave the option out"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class NotWritable(TransportError):
    """The host cannot take writes at the moment; frames wait and are sent again."""


class SymbolsLost(JournalError):
    """Frames refer to symbols that are in no dictionary; they cannot be delivered.

    Attributes:
        slot: the slot's folder, or None in memory.
        fsn: the first frame that refers to a lost symbol.
        first: id of the first symbol that is lost.
        needed: the frame needs the symbols below this id.
    """

    def __init__(self, slot: Path | None, fsn: int, first: int, needed: int) -> None:
        self.slot = slot
        self.fsn = fsn
        self.first = first
        self.needed = needed
        super().__init__(
            f"{slot or 'memory'}: frame {fsn} needs the symbols below id {needed}, and those from "
            f"{first} on are lost: .symbol-dict is damaged or missing, and the frames that "
            "defined them are damaged or gone. The frames before it were sent; it and "
            "those after it are kept. Restore the file from a copy, or give the frame up with "
            f"`lwp sf trim {slot or 'SLOT'} --to {fsn}` and send its rows again from their source"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.slot, self.fsn, self.first, self.needed)


class RowError(JournalError, ValueError):
    """A row that cannot be sent; the sender's buffer is as it was before.

    Attributes:
        table: its table.
        column: the column at fault, or "" when the row as a whole is.
        row: number of the row in the batch, counted from 0.
        problem: what is wrong and what to do.
    """

    def __init__(self, table: str, column: str, row: int, problem: str) -> None:
        self.table = table
        self.column = column
        self.row = row
        self.problem = problem
        where = f", column {column!r}" if column else ""
        super().__init__(f"table {table!r}, row {row}{where}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.table, self.column, self.row, self.problem)
