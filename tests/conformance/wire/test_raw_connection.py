"""The socket end of a connection, and what is kept of what went over it."""

import asyncio

from lance_conformance.engine.raw_connection import RawConnection
from lance_conformance.engine.transcript import KEEP_PER_WRITE, Transcript


class Gone(asyncio.Transport):
    """A transport whose loop is forgotten, as asyncio's is once a closed one has sent the rest."""

    def abort(self) -> None:
        """Fail as it does."""
        raise AttributeError("'NoneType' object has no attribute 'call_soon'")


def test_a_lost_connection_can_be_dropped() -> None:
    """Tidying up after a case never stumbles over what the target did."""
    connection = RawConnection(1, Transcript(lambda: 0.0))
    connection.connection_made(Gone())
    connection.connection_lost(None)
    connection.drop()
    connection.write(b"into the void")
    assert connection.closed == "fin"


def test_of_a_large_write_the_beginning_is_kept() -> None:
    """Sixteen megabytes of one byte would fill run files with nothing; what is missing is told."""
    transcript = Transcript(lambda: 0.0)
    transcript.sent(1, bytes(KEEP_PER_WRITE + 7))
    transcript.sent(1, bytes(KEEP_PER_WRITE))
    large, whole = transcript.chunks
    assert (len(large.data), large.note) == (KEEP_PER_WRITE, "7 bytes not kept")
    assert (len(whole.data), whole.note) == (KEEP_PER_WRITE, "")
