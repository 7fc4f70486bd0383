"""TLS in front of the golden server, frame by frame under its rules."""

import asyncio
import ssl
from contextlib import suppress
from typing import cast

from lance_conformance.server.golden.server import Session
from lance_conformance.server.golden.specified import Specified

HANDSHAKE_RECORD = 0x16
_READ = 65536


class _Inside:
    """The transport of a session inside TLS."""

    def __init__(self, acceptor: "TlsAcceptor") -> None:
        self._acceptor = acceptor

    def write(self, data: bytes) -> None:
        """Seal bytes and send them."""
        self._acceptor.seal(data)

    def close(self) -> None:
        """Say goodbye and hang up."""
        self._acceptor.hang_up()

    def is_closing(self) -> bool:
        """Whether nothing more can be said."""
        return self._acceptor.gone

    def get_write_buffer_size(self) -> int:
        """Bytes the peer has not taken."""
        return self._acceptor.unsent


class TlsAcceptor(asyncio.Protocol):
    """One connection to a TLS port.

    Args:
        rules: The rules of the server.
        context: The server's certificate, and what it demands of clients.
    """

    def __init__(self, rules: Specified, context: ssl.SSLContext) -> None:
        self._rules = rules
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._session = Session(rules)
        self._state = "new"
        self._transport: asyncio.Transport | None = None

    @property
    def gone(self) -> bool:
        """Whether nothing more can be said."""
        return self._transport is None or self._transport.is_closing()

    @property
    def unsent(self) -> int:
        """Bytes the peer has not taken."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the ClientHello."""
        self._transport = cast("asyncio.Transport", transport)
        self._rules.memory.silent += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the session know, if there is one."""
        if self._state == "new":
            self._rules.memory.silent -= 1
        if self._state == "greeting":
            self._rules.memory.handshakes -= 1
        if self._state in ("open", "plain"):
            self._session.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrived, sealed or not."""
        if self._state == "new":
            self._greet(data)
        if self._state == "plain":
            self._session.data_received(data)
            return
        self._incoming.write(data)
        memory = self._rules.memory
        if self._rules.waits_for_handshakes(self._handshakes_of_others()):
            return
        if self._rules.waits_for_silence(memory.silent):
            return
        try:
            if self._state == "greeting":
                self._shake_hands()
            self._session.data_received(self._rules.opened_records(self._records()))
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError:
            self._flush()
            if self._transport is not None and self._rules.hangs_up_on_noise():
                self._transport.close()

    def _greet(self, data: bytes) -> None:
        self._rules.memory.silent -= 1
        if data[0] != HANDSHAKE_RECORD and self._rules.plain_text_ok():
            self._state = "plain"
            assert self._transport is not None
            self._session.connection_made(self._transport)
            return
        self._state = "greeting"
        self._rules.memory.handshakes += 1

    def _handshakes_of_others(self) -> int:
        return self._rules.memory.handshakes - (self._state == "greeting")

    def _shake_hands(self) -> None:
        self._tls.do_handshake()
        self._flush()
        self._rules.memory.handshakes -= 1
        self._state = "open"
        self._session.connection_made(cast("asyncio.Transport", _Inside(self)))

    def _records(self) -> list[bytes]:
        """What can be opened now, record by record."""
        records: list[bytes] = []
        while True:
            try:
                record = self._tls.read(_READ)
            except ssl.SSLWantReadError:
                return records
            if not record:
                return records
            records.append(record)

    def seal(self, data: bytes) -> None:
        """Send bytes to the peer."""
        self._tls.write(self._rules.sealed(data))
        self._flush()

    def hang_up(self) -> None:
        """Say goodbye and hang up."""
        if not self._rules.hangs_up_inside():
            return
        with suppress(ssl.SSLError):  # the peer's own goodbye is not waited for
            self._tls.unwrap()
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _flush(self) -> None:
        if self._transport is not None and self._outgoing.pending:
            self._transport.write(self._outgoing.read())
