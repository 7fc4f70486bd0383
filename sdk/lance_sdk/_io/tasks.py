"""The async pump: tasks in an anyio task group, on asyncio or trio.

One task looks after the core and its timers; each connection has a reader and a writer beside
it. User tasks never touch the connection, so cancelling one of them cannot leave half a frame
on the stream or an answer in the wrong hands.
"""
# ruff: noqa: ASYNC109 - both faces take the same parameters

import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from lance_sdk._core.events import Close, Connect, Errand
from lance_sdk._core.outcome import Outcome
from lance_sdk._io import fork
from lance_sdk._io.announcer import Announcer
from lance_sdk._io.async_tokens import obtain
from lance_sdk._io.contract import Pumpable
from lance_sdk._io.dialer import DialFailed
from lance_sdk._io.tls import Tls
from lance_sdk._io.tokens import TokenSource
from lance_sdk._io.transport import Dial, Transport, dial
from lance_sdk._io.wirelog import WireLog
from lance_sdk._tree import LanceError
from lance_sdk.errors import ClosedError, ForkedError, NotOpenError, UsageError
from lance_sdk.hooks import Hooks

_LONGEST_WAIT = 3600.0
"""Seconds; every wait ends."""


class TaskPump:
    """Drives a core in tasks of the event loop that opened it.

    Args:
        core: what to drive.
        name: for messages.
        tls: how to speak TLS.
        dial: makes connections.
        token: returns a token for each connection.
        hooks: what is told of everything.
        topic: the topic's label, for hooks.

    Attributes:
        guard: why the object cannot be used at the moment; None while it can.
        announcer: tells hooks and the log.
    """

    def __init__(
        self,
        core: Pumpable,
        name: str,
        tls: Tls = None,
        dial: Dial = dial,
        *,
        token: TokenSource | None = None,
        hooks: Hooks | Sequence[Hooks] = (),
        topic: str = "",
    ) -> None:
        self._core = core
        self._name = name
        self._tls = tls
        self._dial = dial
        self._token = token
        self._wirelog: WireLog | None = None
        self._errands = anyio.Lock()
        self.announcer = Announcer(name, hooks, topic)
        self._group: TaskGroup | None = None
        self._owner = 0
        self._link_scope: anyio.CancelScope | None = None
        self._look = anyio.Event()
        self._fill = anyio.Event()
        self._stopped = anyio.Event()
        self.guard: UsageError | None = NotOpenError(
            f"{name} is not open: use it in an `async with` block, or await open() first"
        )

    def __repr__(self) -> str:
        return f"<TaskPump {self._name} guard={self.guard!r} {self._core!r}>"

    # What the face calls

    def check(self) -> None:
        """Raise why the object cannot be used, if it cannot.

        Raises:
            UsageError: not open, closed, forked.
        """
        if self.guard is not None:
            raise self.guard.with_traceback(None)

    async def start(self) -> None:
        """Start the tasks."""
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group
        self._owner = anyio.get_current_task().id
        self.guard = None
        fork.register(self)
        group.start_soon(self._run)

    def spawn(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a task beside the pump's own; it must have ended before `leave`.

        Raises:
            UsageError: not open, closed, forked.
        """
        self.check()
        assert self._group is not None, "the pump was started"
        self._group.start_soon(function)

    def wake(self) -> None:
        """Have the tasks look at the core again."""
        self._look.set()
        self._fill.set()

    async def wait(self, outcome: Outcome, timeout: float | None) -> bool:
        """Wait until ``outcome`` is settled; return False when the time ran out first."""
        if outcome.done:
            return True
        if outcome.latch is None:
            outcome.latch = anyio.Event()
        latch = outcome.latch
        assert isinstance(latch, anyio.Event)
        with anyio.move_on_after(timeout):
            await latch.wait()
        return outcome.done

    def add_callback(self, outcome: Outcome, callback: Callable[[], object]) -> bool:
        """Have the pump call back once settled; return False when it is settled already."""
        return outcome.add_callback(callback)

    def announce(self) -> None:
        """Announce what was settled after the tasks ended."""
        self.announcer.announce(self._core.take_events())

    async def close(self, timeout: float) -> None:
        """Finish within ``timeout`` seconds, even when the caller is being cancelled."""
        if isinstance(self.guard, ForkedError):
            return  # everything that was here belongs to the parent
        with anyio.CancelScope(shield=True):
            self._refuse(ClosedError(f"{self._name} is closed"))
            self._core.close(time.monotonic(), timeout)
            self.wake()
            if self._group is not None:
                await self._stopped.wait()
        self._fail(ClosedError(f"{self._name} is closed"))

    async def leave(self) -> None:
        """Leave the task group, after `close`; only the task that entered it can, others do not.

        The body's exception, if there is one, is kept from the group: its tasks have ended, so
        the group has nothing to add, and would only wrap it.
        """
        if self._group is None or anyio.get_current_task().id != self._owner:
            return
        group, self._group = self._group, None
        await group.__aexit__(None, None, None)

    def forked(self) -> None:
        """Refuse further use; called in a forked child, where the event loop is the parent's."""
        self.guard = ForkedError(
            f"{self._name} was opened before os.fork(); open a new one in the child process"
        )
        with contextlib.suppress(Exception):  # the core may have been forked in mid-step
            self._core.fail(self.guard, time.monotonic())  # nobody here may wait for the parent

    def _refuse(self, reason: UsageError) -> None:
        if self.guard is None or isinstance(self.guard, NotOpenError):
            self.guard = reason

    def _fail(self, error: LanceError) -> None:
        self._core.fail(error, time.monotonic())
        self.announce()

    # The tasks

    async def _run(self) -> None:
        # Shielded: when the block around is cancelled, `close` still gets its bounded time.
        try:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as links:
                    await self._loop(links)
        except Exception as error:
            self._fail(ClosedError(f"{self._name}: its task ended by an error: {error!r}"))
            raise
        finally:
            if not self._core.finished:
                self._fail(ClosedError(f"{self._name}: its task was cancelled"))
            because = f": {self._core.failure}" if self._core.failure is not None else ""
            self._refuse(ClosedError(f"{self._name} is closed{because}"))
            fork.unregister(self)
            self._stopped.set()

    async def _loop(self, links: TaskGroup) -> None:
        while True:
            self._look = anyio.Event()  # before looking: what changes after this wakes again
            now = time.monotonic()
            self._core.handle_timeout(now)
            action = self._core.next_action(now)
            for errand in self.announcer.announce(self._core.take_events()):
                links.start_soon(self._run_errand, errand)
            if self._core.finished:
                return
            if isinstance(action, Connect):
                # Made here, so that a Close reaches the task even before its first step.
                self._link_scope = anyio.CancelScope()
                links.start_soon(self._link, action, self._link_scope)
            elif isinstance(action, Close) and self._link_scope is not None:
                self._link_scope.cancel()
            self._fill.set()
            await self._sleep(self._core.next_deadline() - now)

    async def _run_errand(self, errand: Errand) -> None:
        """Run work that may take time in a thread, in the order in which it was asked for."""
        result, error = None, None
        async with self._errands:
            try:
                result = await anyio.to_thread.run_sync(errand.work)
            except LanceError as failure:
                error = failure
            errand.done(result, error, time.monotonic())
        self._look.set()

    async def _sleep(self, seconds: float) -> None:
        with anyio.move_on_after(min(max(seconds, 0.0), _LONGEST_WAIT)):
            await self._look.wait()

    async def _link(self, action: Connect, scope: anyio.CancelScope) -> None:
        """Make a connection and look after it until it ends."""
        error: Exception | None = None
        try:
            with scope:
                error = await self._serve(action)
        except DialFailed as failed:
            self._core.dial_failed(failed.tries, time.monotonic())
        else:
            self._core.disconnected(error, time.monotonic())
        finally:
            self._link_scope = None
            self._look.set()

    async def _serve(self, action: Connect) -> Exception | None:
        """Carry one connection; return what broke it, or None when the peer closed it."""
        transport = await self._dial(action, self._tls)
        try:
            token = await self._obtain_token(transport.address, action.timeout)
            self._wirelog = WireLog.if_wanted(self._name)
            self._core.connected(transport.address, time.monotonic(), token)
            self._look.set()
            return await self._exchange(transport)
        finally:
            with anyio.CancelScope(shield=True):
                await transport.aclose()

    async def _obtain_token(self, address: str, seconds: float) -> str | None:
        if self._token is None:
            return None
        try:
            return await obtain(self._token, seconds)
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            raise DialFailed([("auth", address, error)]) from None

    async def _exchange(self, transport: Transport) -> Exception | None:
        ends: list[Exception | None] = []
        async with anyio.create_task_group() as both:

            async def until_end(direction: Callable[[Transport], Awaitable[None]]) -> None:
                try:
                    await direction(transport)
                except OSError as error:
                    ends.append(error)
                both.cancel_scope.cancel()

            both.start_soon(until_end, self._write)
            both.start_soon(until_end, self._read)
        return ends[0] if ends else None

    async def _read(self, transport: Transport) -> None:
        while data := await transport.receive():
            if self._wirelog is not None:
                self._wirelog.received(data)
            self._core.receive_data(data, time.monotonic())
            self._look.set()

    async def _write(self, transport: Transport) -> None:
        while True:
            self._fill = anyio.Event()
            if buffers := self._core.data_to_send(time.monotonic()):
                if self._wirelog is not None:
                    self._wirelog.sent(buffers)
                await transport.send(buffers)
                self._look.set()
            else:
                await self._fill.wait()
