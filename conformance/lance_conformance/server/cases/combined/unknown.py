"""Every command that nobody defines, and every one that only servers send, is refused."""

from collections.abc import Sequence
from functools import partial

from lance_conformance.server.case_context import CaseContext
from lance_conformance.server.cases.registry import SPECIFIED
from lance_conformance.server.cases.variation.common import register
from lance_conformance.server.expect import keepalive
from lance_conformance.wire.codes import ErrorCode
from lance_conformance.wire.control import KEEPALIVE, control
from lance_conformance.wire.frame import Command

IN_FLIGHT = 32
"""Commands in one write."""
EXTENSIONS = frozenset({*range(0x60, 0x80)})
"""What a target may know beyond the document: groups, times, partitions."""
SERVER_ONLY = (0x09, 0x11, 0x12, 0x23, 0x24, 0x80, 0x81, 0xFF)
UNKNOWN = tuple(code for code in range(0x100) if code not in EXTENSIONS | {*map(int, Command)})
PAYLOADS = (b"", b"\x01\x00\x00\x00", bytes(24))


async def _refused(ctx: CaseContext, codes: Sequence[int], payload: bytes, cite: str) -> None:
    """Each is refused by name in its turn, and the connection serves on."""
    peer = await ctx.open()
    refused = ctx.error(ErrorCode.INVALID_PAYLOAD, cite=cite)
    for start in range(0, len(codes), IN_FLIGHT):
        some = codes[start : start + IN_FLIGHT]
        peer.send(*(control(code, payload) for code in some))
        for _ in some:
            await peer.expect(refused)
    await peer.ask(KEEPALIVE, keepalive("12.1/stays"))


for _payload in PAYLOADS:
    _size = len(_payload)
    register(f"each/unknown-command-with-{_size}", "5.2/unknown",
             f"Each of {len(UNKNOWN)} codes without a meaning is refused with {_size} bytes of "
             "payload.", partial(_refused, codes=UNKNOWN, payload=_payload, cite="5.2/unknown"),
             dialects=SPECIFIED, weight=4)  # fmt: skip
    register(f"each/server-command-with-{_size}", "5.2/server-only",
             f"Each command that only servers send is refused with {_size} bytes of payload.",
             partial(_refused, codes=SERVER_ONLY, payload=_payload, cite="5.2/server-only"),
             dialects=SPECIFIED)  # fmt: skip
