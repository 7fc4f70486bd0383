"""Whole records out of fetches that were cut anywhere (AMB-19)."""

from lance_sdk.errors import CorruptRecord
from lance_spec.checksum import Buffer
from lance_spec.records import scan_records


class Reassembly:
    """Carries the tail of one Fetch over to the next; hands out true record boundaries only.

    Args:
        offset: byte offset of a record in the topic.

    Attributes:
        offset: where the first record not yet handed out begins.
        needed: size of that record in bytes as far as it is known, when part of it is held.
        fault: why the bytes at ``offset`` are not a record.
    """

    def __init__(self, offset: int) -> None:
        self._held = b""
        self.offset = offset
        self.needed = 0
        self.fault: CorruptRecord | None = None

    def __repr__(self) -> str:
        return f"<Reassembly offset={self.offset} held={self.held} fault={self.fault!r}>"

    @property
    def held(self) -> int:
        """Bytes of an unfinished record."""
        return len(self._held)

    @property
    def held_bytes(self) -> bytes:
        """The bytes of the unfinished record."""
        return self._held

    @property
    def next_fetch(self) -> int:
        """Offset of the next byte that is not here."""
        return self.offset + len(self._held)

    def add(self, data: Buffer) -> tuple[int, int, bytes] | None:
        """Take the bytes at `next_fetch`.

        Returns:
            Offset, number and bytes of the records that are whole now, or None.
        """
        joined = b"".join((self._held, data)) if self._held else bytes(data)
        scan = scan_records(joined)
        base, whole = self.offset, joined if scan.fault is None else joined[: scan.end]
        self.offset += scan.end
        self._held = joined[scan.end :]
        self.needed = 0 if scan.fault is None else scan.fault.needed
        if scan.fault is not None and not scan.fault.truncated:
            self.fault = CorruptRecord(
                f"the bytes at offset {self.offset} are not a record: {scan.fault.reason}; "
                "begin at the offset of a record",
                self.offset,
            )
        return (base, scan.count, whole) if scan.count else None

    def drop_held(self) -> None:
        """Forget the unfinished record, to fetch it again from its start."""
        self._held = b""
        self.needed = 0
