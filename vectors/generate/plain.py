"""Tests of bytes that are not a message with fields: a file, a stream, a text; and their faults."""

from dataclasses import dataclass, field
from typing import Any

from generate.document import ACCEPT, Test

Outcome = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plain:
    """Makes the tests of one kind of bytes.

    Attributes:
        prefix: what the ids of its tests begin with.
        clause: the rule they are about.
        basis: where the rule comes from.
        refused: the outcome of a faulty one, where nothing else is said.
    """

    prefix: str
    clause: str
    basis: str = "decision"
    refused: Outcome = field(default_factory=lambda: {"action": "reject"})

    def valid(self, name: str, comment: str, data: bytes, fields: dict[str, Any]) -> Test:
        """Return a valid test."""
        read = {"fields": fields, "result": "valid", "outcome": ACCEPT}
        return self._test(name, comment, data) | read

    def cut(self, pair: Test, length: int, flag: str) -> Test:
        """Return the first bytes of a valid test."""
        whole = bytes.fromhex(pair["bytes"])
        comment = f"The first {length} of {len(whole)} bytes."
        fault = {"kind": "truncate", "length": length}
        return self._faulty(
            pair, f"cut-at-{length}", comment, whole[:length], fault=fault, flag=flag
        )

    def more(self, pair: Test, name: str, comment: str, tail: bytes, *, flag: str) -> Test:
        """Return a valid test with bytes after it."""
        fault = {"kind": "append", "bytes": tail.hex()}
        spoilt = bytes.fromhex(pair["bytes"]) + tail
        return self._faulty(pair, name, comment, spoilt, fault=fault, flag=flag)

    def flip(self, pair: Test, place: int, comment: str, flag: str) -> Test:
        """Return a valid test with one bit changed; a negative place counts from the end."""
        whole = bytes.fromhex(pair["bytes"])
        at = place % len(whole)
        insert = bytes([whole[at] ^ 1])
        return self.splice(pair, f"bit-in-{at}", comment, (at, 1, insert), flag=flag)

    def splice(
        self, pair: Test, name: str, comment: str, change: tuple[int, int, bytes], *, flag: str
    ) -> Test:
        """Return a valid test with other bytes in a place: where, how many go, what comes."""
        whole = bytes.fromhex(pair["bytes"])
        at, remove, insert = change
        fault = {"kind": "splice", "offset": at, "remove": remove, "insert": insert.hex()}
        spoilt = whole[:at] + insert + whole[at + remove :]
        return self._faulty(pair, name, comment, spoilt, fault=fault, flag=flag)

    def replace(
        self, pair: Test, name: str, change: tuple[str, str], comment: str, *, flag: str
    ) -> Test:
        """Return a valid test with the first occurrence of a text replaced by another."""
        old, new = (each.encode() for each in change)
        at = bytes.fromhex(pair["bytes"]).index(old)
        return self.splice(pair, name, comment, (at, len(old), new), flag=flag)

    def _faulty(
        self, pair: Test, name: str, comment: str, data: bytes, *, fault: Outcome, flag: str
    ) -> Test:
        stem = pair["id"].removeprefix(f"{self.prefix}-")
        return self._test(f"{stem}-{name}", comment, data) | {
            "pairOf": pair["id"],
            "fault": fault,
            "result": "invalid",
            "outcome": self.refused,
            "flags": [flag],
        }

    def _test(self, name: str, comment: str, data: bytes) -> Test:
        return {
            "id": f"{self.prefix}-{name}",
            "comment": comment,
            "clause": self.clause,
            "level": "MUST",
            "basis": self.basis,
            "bytes": data.hex(),
            "flags": [],
        }
