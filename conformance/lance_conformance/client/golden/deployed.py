"""The golden rules of the `deployed` dialect: what it takes to work with the published server."""

import re
from collections.abc import Sequence

from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.values import Batch, Body, ProblemError
from lance_conformance.server.golden.codec import ieee

TEXTS = (
    (r"NOT_LEADER: redirect to (?P<leader_addr>\S+)", 0x20),
    (r"NOT_LEADER", 0x22),
    (r"FORWARD_FAILED: Quorum not reached", 0x21),
    (r"(FORWARD_FAILED|Failed to replicate)", 0x23),
    (r"Rate limit exceeded", 0x30),
    (r"Authentication required", 0x40),
    (r"(Invalid token|No token provided)", 0x41),
    (r"Access denied", 0x42),
    (r"(Unknown topic|(.*: )?Topic (\d+ )?not found)", 0x10),
    (r"Topic '.*' already exists", 0x11),
)
"""How the published server words its errors (AMB-10)."""


class Deployed(Specified):
    """The hooks in which a client of the published server differs."""

    def checksum(self, data: bytes, /) -> int:
        """IEEE CRC-32."""
        return ieee(data)

    def reserved_ok(self, _reserved: int, /) -> bool:
        """Reserved bytes are not looked at."""
        return True

    def bit_7_ok(self, _flags: int, /) -> bool:
        """Bit 7 is not looked at."""
        return True

    def error(self, payload: bytes, /) -> tuple[int, str, Body]:
        """Errors are text."""
        text = payload.decode(errors="replace")
        for pattern, code in TEXTS:
            if found := re.match(pattern, text):
                return code, text, dict(found.groupdict())
        return 0x01, text, {}

    def refused(self, waiting: Sequence[Batch], _problem: ProblemError, /) -> Sequence[Batch]:
        """A text names no batch: it is the only one, or barriers must tell (AMB-10)."""
        return waiting if len(waiting) == 1 else []

    def pushes(self) -> bool:
        """Nothing is pushed."""
        return False

    def check_aligned(self, _data: bytes, _count: int, /) -> None:
        """The count says nothing."""
