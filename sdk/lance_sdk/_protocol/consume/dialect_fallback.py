"""Bytes that are not records, read where they are handed out (AMB-27).

A server refuses them to a connection of dialect ``specified`` and names the offset after them;
to one of dialect ``deployed`` it serves them as they are. So the consumer comes back in that
dialect for this range alone, and goes on in its own after it.
"""

from typing import Final

from lance_sdk.errors import OpaqueRecords
from lance_spec.dialect import DEPLOYED, Dialect

_TRIES: Final = 3
"""Connections that may close before their first byte until the dialect counts as not spoken:
a server that starts again closes one, too."""


class DialectFallback:
    """A range of bytes to be fetched in another dialect.

    Args:
        start: where the range begins.
        end: offset after it, as the server named it.

    Attributes:
        dialect: in which it is fetched.
    """

    def __init__(self, start: int, end: int) -> None:
        self._refusals = 0
        self._start = start
        self.end = end
        self.dialect: Dialect = DEPLOYED

    def __repr__(self) -> str:
        place = f"{self._start}..{self.end}"
        return f"<DialectFallback {place} in {self.dialect}, refused {self._refusals}>"

    def refused(self) -> OpaqueRecords | None:
        """Take note that a connection was closed unheard; return the error when it is final."""
        self._refusals += 1
        if self._refusals < _TRIES:
            return None
        return OpaqueRecords(
            f"the bytes from offset {self._start} to {self.end} were stored without being records, "
            f"and this server does not speak the dialect {self.dialect.name!r}, in which alone "
            f"they are handed out (start it with --dialect auto); on_opaque='skip' goes on after "
            f"them, as does seek({self.end})",
            self._start,
            self.end,
        )
