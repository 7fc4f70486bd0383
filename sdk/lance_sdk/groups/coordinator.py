"""A coordinator: the place where the members of groups agree on who reads what.

It can be a process of its own (``lwp group serve``), a thread of a program, or a task::

    with Coordinator("127.0.0.1:19920", store="file:/var/lib/app/groups") as coordinator:
        print(coordinator.url)

    async with anyio.create_task_group() as tasks:
        coordinator = Coordinator("127.0.0.1:0")
        await tasks.start(coordinator.serve)

Offsets are in its store, so they survive it. Who is a member is not: after a restart the
members join again by themselves, and keep what they hold.
"""

import asyncio
import logging
import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final, Self

import anyio
from anyio import to_thread
from anyio.abc import ByteStream, Listener, SocketAttribute, TaskGroup, TaskStatus
from anyio.streams.tls import TLSListener

from lance_sdk._api.arguments.unit_parsing import Duration, seconds
from lance_sdk._io.platform import seconds_asleep
from lance_sdk._io.tasks.closing import close_at_once
from lance_sdk.errors import ConfigError, DeadlineExceeded, UsageError
from lance_sdk.groups._coordinator.connection import CoordinatorContext, PeerConnection
from lance_sdk.groups._coordinator.service import CoordinatorLink, GroupService
from lance_sdk.groups._coordinator.text_protocol import TextService
from lance_sdk.groups._protocol.limits import Limits
from lance_sdk.groups.strategies import RANGE, ROUND_ROBIN, STICKY, Strategy
from lance_sdk.offsets.contract import OffsetStore, TopicIdentity, check_consumer_name
from lance_sdk.offsets.files import FileStore
from lance_sdk.offsets.lease import FolderLease
from lance_sdk.offsets.threads import in_threads
from lance_sdk.offsets.urls import open_store
from lance_sdk.url import parse_url

__all__ = ["Coordinator"]

_log = logging.getLogger("lance_sdk.groups")

_AGAIN: Final = 0.2
"""Seconds after which a connection is taken again where none could be."""
_STARTING: Final = 10.0
_JOIN_GRACE: Final = 15.0


class Coordinator:
    """Coordinates consumer groups.

    Args:
        listen: ``host:port``, by default where the published coordinators listen; port 0 lets
            the system choose, see `url`.
        store: where offsets are kept: a URL (`lance_sdk.offsets.open_store`), or a store, which
            the caller closes.
        strategies: of your own, beside ``range``, ``round-robin`` and ``sticky``.
        heartbeat_interval: time between two heartbeats of a member, unless its session timeout
            asks for more; also the time that members get to come back after a restart.
        limits: how much it takes in.
        text_group: name of a group whose workers speak the published text protocol, which has
            no word for a token; None switches that off.
        text_topics: numbers of the topics of that group.
        token: what members have to authenticate with.
        tls: context for ``lances://``.

    Raises:
        ConfigError: for a value that cannot be used.
        StoreUnavailable: the store cannot be opened.
    """

    def __init__(
        self,
        listen: str = "127.0.0.1:19920",
        *,
        store: str | OffsetStore = "memory:",
        strategies: Iterable[Strategy] = (),
        heartbeat_interval: Duration = 3.0,
        limits: Limits | None = None,
        text_group: str | None = None,
        text_topics: Sequence[int] = (),
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listen = _address(listen)
        self._tls = tls
        self._limits = limits or Limits()
        self._store = open_store(store)
        self._owns_store = isinstance(store, str)
        known = {each.name: each for each in (RANGE, ROUND_ROBIN, STICKY, *strategies)}
        interval = seconds("heartbeat_interval", heartbeat_interval)
        self._service = GroupService(in_threads(self._store), known, self._limits, interval)
        text = None
        if text_group is not None and token is not None:
            raise ConfigError(
                "text_group= with token=: workers that speak text cannot authenticate; give them "
                "a coordinator of their own"
            )
        if text_group is not None:
            topics = [TopicIdentity(topic_id) for topic_id in text_topics]
            text = TextService(self._service, check_consumer_name(text_group), topics)
        self._shared = CoordinatorContext(self._service, text, token)
        self._links: set[CoordinatorLink] = set()
        self._port: int | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._stop: anyio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: BaseException | None = None
        self._full = False

    def __repr__(self) -> str:
        state = "STOPPED" if self._port is None else "OPEN"
        groups = len(self._service.groups)
        return f"<Coordinator {self.url} {state} groups={groups} connections={len(self._links)}>"

    @property
    def url(self) -> str:
        """Where members find it."""
        host, port = self._listen
        shown = f"[{host}]" if ":" in host else host
        return f"lance{'s' * bool(self._tls)}://{shown}:{self._port or port}"

    # A thread of a program

    def start(self) -> Self:
        """Serve on a thread of its own; a ``with`` block does it by itself.

        Raises:
            OSError: the address cannot be used.
            StoreLocked: another coordinator has the store's folder.
            UsageError: it was started before.
        """
        if self._thread is not None:
            raise UsageError(f"{self!r} was started before; make a new one")
        self._thread = threading.Thread(target=self._run, name=repr(self), daemon=True)
        self._thread.start()
        if not self._ready.wait(_STARTING):
            raise DeadlineExceeded(f"{self!r} did not start within {_STARTING:.0f} s")
        if self._error is not None:
            raise self._error
        return self

    @property
    def failure(self) -> BaseException | None:
        """Why it serves no more although nobody stopped it; None while it serves."""
        return self._error

    def stop(self) -> None:
        """Stop serving and close the store; members look for it until it is back."""
        thread = self._thread
        if thread is None:
            return
        if thread.is_alive() and self._stop is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(_JOIN_GRACE)
        if thread.is_alive():
            raise DeadlineExceeded(f"{self!r} did not stop within {_JOIN_GRACE:.0f} s")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve_until_stopped())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that started it
            self._error = _plain(error)
            if self._ready.is_set():
                _log.error("%r serves no more: %s", self, self._error)
        finally:
            self._ready.set()

    async def _serve_until_stopped(self) -> None:
        self._stop, self._loop = anyio.Event(), asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            await tasks.start(self.serve)
            self._ready.set()
            await self._stop.wait()
            tasks.cancel_scope.cancel()

    # A task

    async def serve(self, *, task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; as a task's start it reports its URL.

        Raises:
            OSError: the address cannot be used.
        StoreLocked: another coordinator has the store's folder.
        """
        host, port = self._listen
        lease = _lease_on(self._store)
        if lease is not None:
            lease.take()
        try:
            listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
            self._port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no Django
            serving = listener if self._tls is None else TLSListener(listener, self._tls)
            _log.info("coordinator listens at %s", self.url)
            task_status.started(self.url)
            async with listener, anyio.create_task_group() as tasks:
                if lease is not None:
                    tasks.start_soon(self._keep, lease)
                while True:
                    await self._take_connections(serving, tasks)
        finally:
            self._port = None
            self._let_go()
            if lease is not None:
                lease.release()

    async def _take_connections(self, listener: Listener[ByteStream], tasks: TaskGroup) -> None:
        """Serve who comes, until one cannot be taken: there may be no descriptor left."""
        try:
            await listener.serve(self._converse, tasks)
        except* OSError as errors:
            if not self._full:
                _log.warning("%r cannot take a connection: %s", self, _plain(errors))
            self._full = True
        await anyio.sleep(_AGAIN)

    async def _keep(self, lease: FolderLease) -> None:
        """Show that this coordinator is alive; stop where another one has its folder."""
        renewed = _seconds()

        def fresh() -> bool:
            return _seconds() - renewed < lease.seconds

        self._service.may_store = fresh
        while True:
            await anyio.sleep(lease.seconds / 4)
            began = _seconds()
            try:
                await to_thread.run_sync(lease.renew)
            except OSError as error:  # where that lasts, no commit is stored
                _log.warning("%r could not renew its lease of the offsets: %s", self, error)
            else:
                renewed = began

    def _let_go(self) -> None:
        """Give the offsets back: a store that somebody brought is somebody's to close."""
        if self._owns_store:
            self._store.close()
            return
        for group in self._service.groups.values():
            for topic in group.topics.values():
                self._store.release(group.name, topic.identity)

    async def _converse(self, stream: ByteStream) -> None:
        link = CoordinatorLink(_peer(stream))
        self._full = False
        try:
            if len(self._links) >= self._limits.connections:
                _log.warning("%s was turned away: there are too many connections", link.peer)
                return
            self._links.add(link)
            await PeerConnection(self._shared, stream, link).run()
        finally:
            self._links.discard(link)
            await close_at_once(stream)


def _lease_on(store: OffsetStore) -> FolderLease | None:
    """Return the lease of a store in files; databases decide by generations."""
    return FolderLease(store.folder) if isinstance(store, FileStore) else None


def _seconds() -> float:
    """Return the time, that of a suspended machine included."""
    return time.monotonic() + seconds_asleep()


def _address(listen: str) -> tuple[str, int]:
    """Return host and port of ``host:port``, which is written as in a URL."""
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ConfigError(f"listen={listen[:80]!r}: expected HOST:PORT, as in 127.0.0.1:19920")
    if int(port):
        parse_url(f"lance://{listen}")
    return host.strip("[]"), int(port)


def _plain(error: BaseException) -> BaseException:
    """Return the error that a task group has wrapped."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _peer(stream: ByteStream) -> str:
    address = stream.extra(SocketAttribute.remote_address, "?")  # noqa: S610 - no Django
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
