"""The endpoint: where senders connect, and which of them are let in."""

import asyncio
import logging
from http import HTTPStatus
from typing import Final

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers, MultipleValuesError
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from lance_server.config.settings import Address, ServerConfig
from lance_server.listeners.qwp.admission import is_known
from lance_server.listeners.qwp.options import QwpOptions
from lance_server.listeners.qwp.script import Rule, Script
from lance_server.listeners.qwp.session import Session
from lance_server.listeners.qwp.tables import Tables
from lance_server.log.log_manager import LogManager
from lance_server.network.peer_log import peer_logger
from lance_server.network.sockets import bind, not_listening
from lance_server.runtime.memory_quota import HeldQuota, Quota
from lance_server.security.authorizer import Authorizer, Security
from lance_server.security.tls import identity_of
from lance_spec.qwp.upgrade import (
    DURABLE_ACK_HEADER,
    MAX_BATCH_SIZE_HEADER,
    MAX_VERSION_HEADER,
    PATHS,
    REQUEST_DURABLE_ACK_HEADER,
    ROLE_HEADER,
    VERSION,
    VERSION_HEADER,
)

_log = peer_logger(__name__)
_noise = logging.getLogger("lance_server.listeners.qwp.websockets")
_noise.setLevel(logging.CRITICAL)  # peers that are not WebSocket clients are not news

_CLOSE_TIMEOUT: Final = 1.0
_MOST_UNREAD: Final = 1 << 20
"""Bytes of answers to WebSocket control frames that may wait for a sender to read them."""


class _Socket(ServerConnection):
    """A connection whose received, unfinished message is accounted for.

    Attributes:
        held: what it holds of the endpoint's memory.
        number: which connection it is, counted from 0.
        authorizer: what it may do; set by the upgrade.
        durable: whether it was granted durable acknowledgements.
        rule: what the script wants of it, or None.
        session: what serves it, once it is a WebSocket.
    """

    held: HeldQuota
    number: int
    authorizer: Authorizer
    durable = False
    rule: Rule | None = None
    session: Session | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.held.hold("partial", len(self.protocol.reader.buffer)):
            self.protocol.fail(CloseCode.TRY_AGAIN_LATER, "the endpoint's memory is used up")
            self.send_data()
        if self.transport.get_write_buffer_size() > _MOST_UNREAD:
            self.transport.abort()  # it sends pings and takes no pongs

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.session is None:
            self.held.release()  # a session gives back what it holds when it ends


class QwpListener:
    """Serves QWP senders: rows of a table become records of the topic of that name.

    Args:
        address: where to listen; port 0 lets the system choose.
        options: limits and security.
        script: what to do wrong; it may be changed while the endpoint runs.

    Attributes:
        name: the protocol.
        address: where it listens; after `start` with the port that was bound.
        script: what to do wrong.
        quota: the memory that peers use.
        accepted: connections that came so far.
        upgraded: those of them that became WebSocket connections.
    """

    def __init__(
        self, address: Address, options: QwpOptions | None = None, script: Script | None = None
    ) -> None:
        self.name = "qwp"
        self.address = address
        self.options = options or QwpOptions()
        self.script = script or Script()
        self._security = self.options.security or Security()
        self.quota = Quota(self.options.max_memory)
        self.accepted = 0
        self.upgraded = 0
        self._servers: list[Server] = []
        self._open: set[_Socket] = set()
        self._tables: Tables | None = None

    def __repr__(self) -> str:
        return f"<QwpListener {self.address}: {len(self._open)} connections, {self.quota!r}>"

    async def start(self, engine: LogManager) -> None:
        """Listen, and write what senders send into the log.

        Raises:
            ListenError: the address cannot be listened on.
        """
        self._tables = Tables(engine)
        sockets = bind(self.address)
        try:
            for each in sockets:
                self._servers.append(
                    await serve(
                        self._serve,
                        sock=each,
                        ssl=self._security.context,
                        create_connection=self._socket_type(),
                        process_request=self._judge,
                        process_response=self._agree,
                        compression=None,
                        server_header="lance-server",
                        open_timeout=self.options.handshake_timeout,
                        close_timeout=_CLOSE_TIMEOUT,
                        ping_interval=None,
                        max_size=self.options.max_message,
                        max_queue=1,
                        logger=_noise,
                    )
                )
        except OSError as error:
            await self._stop_accepting()
            for each in sockets:
                each.close()
            raise not_listening(self.address, error) from error
        self.address = Address(*sockets[0].getsockname()[:2])

    def reload(self, config: ServerConfig) -> None:
        """Take the certificates, tokens and rules of a configuration; nothing else of it.

        Connections that are open are judged by the new rules from their next message on.

        Raises:
            ConfigError: one of them cannot be used; all stay as they were.
        """
        self._security.reload(config.tls, config.auth, config.access)

    async def stop(self, deadline: float) -> None:
        """Stop accepting, answer what was received until `deadline` (loop time), then close."""
        for server in self._servers:
            server.close(close_connections=False)
        for connection in list(self._open):
            if connection.session is None:
                connection.transport.abort()  # nothing was received that could be answered
            else:
                connection.session.drain()
        waiting = [server.wait_closed() for server in self._servers]
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.gather(*waiting)
        except TimeoutError:
            for connection in list(self._open):
                connection.transport.abort()

    async def _stop_accepting(self) -> None:
        for server in self._servers:
            server.close()
            await server.wait_closed()

    # The upgrade -------------------------------------------------------------------------------

    def _socket_type(self) -> type[_Socket]:
        listener = self

        class Connected(_Socket):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.held = listener.quota.new_holder()
                self.number = listener.accepted
                listener.accepted += 1
                listener._open.add(self)
                super().connection_made(transport)
                if len(listener._open) > 2 * listener.options.max_connections:
                    self.transport.abort()  # too many for an answer to each

            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                listener._open.discard(self)

        return Connected

    async def _judge(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return an answer other than the upgrade, or None."""
        assert isinstance(connection, _Socket)
        rule = connection.rule = self.script.on_connect(connection.number)
        if rule is not None and rule.stall:
            await connection.wait_closed()
        if rule is not None and rule.status is not None:
            return _scripted(connection, rule)
        if request.path.partition("?")[0] not in PATHS:
            return connection.respond(HTTPStatus.NOT_FOUND, f"QWP is at {' and '.join(PATHS)}.\n")
        connection.authorizer = Authorizer(self._security)
        connection.authorizer.client = identity_of(
            connection.transport.get_extra_info("ssl_object")
        )
        if not is_known(connection.authorizer, _header(request.headers, "Authorization", "")):
            answer = connection.respond(HTTPStatus.UNAUTHORIZED, "Unknown credentials.\n")
            answer.headers["WWW-Authenticate"] = 'Basic realm="qwp"'
            return answer
        if len(self._open) > self.options.max_connections:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections.\n")
        spoken = _header(request.headers, MAX_VERSION_HEADER, str(VERSION))
        if not (spoken.isascii() and spoken.isdecimal() and spoken.strip("0")):
            problem = f"{MAX_VERSION_HEADER}: expected a version from {VERSION} on.\n"
            return connection.respond(HTTPStatus.BAD_REQUEST, problem)
        return None

    async def _agree(
        self, connection: ServerConnection, request: Request, response: Response
    ) -> Response:
        """Add what the endpoint grants to the answer that upgrades."""
        assert isinstance(connection, _Socket)
        rule = connection.rule or Rule(on="connect")
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            return response
        asked = _header(request.headers, REQUEST_DURABLE_ACK_HEADER, "").lower() == "true"
        connection.durable = asked and not rule.no_durable_ack
        response.headers[VERSION_HEADER] = rule.version or str(VERSION)
        response.headers[MAX_BATCH_SIZE_HEADER] = str(self.options.max_message)
        if connection.durable:
            response.headers[DURABLE_ACK_HEADER] = "enabled"
        for name, value in rule.headers.items():
            response.headers[name] = value
        return response

    # Service -----------------------------------------------------------------------------------

    async def _serve(self, connection: ServerConnection) -> None:
        assert isinstance(connection, _Socket)
        assert self._tables is not None
        session = Session(
            connection,
            connection.number,
            self._tables,
            self.options,
            script=self.script,
            held=connection.held,
            authorizer=connection.authorizer,
            durable=connection.durable,
        )
        self.upgraded += 1
        connection.session = session
        _log.debug("connection %d from %s", connection.number, connection.remote_address)
        try:
            await session.run()
            await connection.close(CloseCode.GOING_AWAY)
        except ExceptionGroup:
            _log.exception("connection %d ended by an error of the endpoint", connection.number)
            raise
        finally:
            connection.held.release()


def _scripted(connection: ServerConnection, rule: Rule) -> Response:
    assert rule.status is not None
    response = connection.respond(HTTPStatus(rule.status), "Refused by the script.\n")
    if rule.role is not None:
        response.headers[ROLE_HEADER] = rule.role
    for name, value in rule.headers.items():
        response.headers[name] = value
    return response


def _header(headers: Headers, name: str, default: str) -> str:
    """Return a header that must not be there twice; twice is as good as not at all."""
    try:
        return headers.get(name, default)
    except MultipleValuesError:
        return default
