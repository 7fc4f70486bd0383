"""The async driver: tasks of its own, on asyncio or trio.

One task looks after the core and its timers; each connection has a reader and a writer beside
it. User tasks never touch the connection, so cancelling one of them cannot leave half a frame
on the stream or an answer in the wrong hands. Nor do these tasks belong to a block of a user's
task: objects may be opened and closed in any order, and by different tasks.
"""
# ruff: noqa: ASYNC109 - both APIs take the same parameters

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from lance_sdk._errors.base import LanceError
from lance_sdk._io import at_exit, at_fork
from lance_sdk._io.dialer import DialFailed
from lance_sdk._io.driver_contract import ProtocolCore
from lance_sdk._io.event_dispatcher import EventDispatcher
from lance_sdk._io.tasks import task_spawner
from lance_sdk._io.tasks.async_tokens import obtain
from lance_sdk._io.tasks.transport import Dial, TaskTransport
from lance_sdk._io.tasks.transport_factory import dial
from lance_sdk._io.tls import Tls
from lance_sdk._io.tokens import TokenSource
from lance_sdk._io.wire_log import WireLog
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.events import Close, Connect, OffloadedTask
from lance_sdk.errors import ClosedError, ForkedError, NotOpenError, UsageError
from lance_sdk.hooks import Hooks
from lance_sdk.logs import SESSION
from lance_spec.checksum import Buffer

_EXIT_LOOK = 0.01
"""Seconds between two looks at an event loop of another thread, at interpreter exit."""
_LONGEST_WAIT = 3600.0
"""Seconds; every wait ends."""


class TaskDriver:
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
        lock: does nothing; what both APIs share takes it, as tasks of one thread need not.
        usage_error: why the object cannot be used at the moment; None while it can.
        dispatcher: tells hooks and the log.
        count_lost: returns the number of records lost that nobody was told of.
        count_delivered: returns the number of records acknowledged; None for what sends none.
        tell_loss: tells how many records were lost where no caller can be told, and when.
        place: returns where a producer's records go, for the texts of errors.
    """

    def __init__(
        self,
        core: ProtocolCore,
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
        self._offloaded = anyio.Lock()
        self.lock = contextlib.nullcontext()
        self.dispatcher = EventDispatcher(name, hooks, topic)
        self.place: Callable[[], object] = lambda: None
        self._call_soon: task_spawner.CallSoon | None = None
        self._tasks: TaskGroup | None = None
        self._beside: TaskGroup | None = None
        self._until = math.inf
        self._linked = False
        self._closed_by_caller = False
        self.count_lost: Callable[[], int] = int
        self.count_delivered: Callable[[], int] | None = None
        self.tell_loss: Callable[[int, str], None] = at_exit.warn_of_loss
        self._link_scope: anyio.CancelScope | None = None
        self._look = anyio.Event()
        self._fill = anyio.Event()
        self._stopped = anyio.Event()
        self.usage_error: UsageError | None = NotOpenError(
            f"{name} is not open: use it in an `async with` block, or await open() first"
        )

    def __repr__(self) -> str:
        return f"<TaskDriver {self._name} usage_error={self.usage_error!r} {self._core!r}>"

    # What the client calls

    def check(self) -> None:
        """Raise why the object cannot be used, if it cannot.

        Raises:
            UsageError: not open, closed, forked.
        """
        if self.usage_error is not None:
            raise self.usage_error.with_traceback(None)

    def start(self) -> None:
        """Start the tasks."""
        self.usage_error = None
        at_fork.register(self)
        at_exit.register(self)
        self._call_soon = task_spawner.start(self._run, self._name)

    def spawn(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a task beside the driver's own; what still runs when the driver ends is cancelled.

        Raises:
            UsageError: not open, closed, forked.
        """
        self.check()
        assert self._beside is not None, "the driver has opened a connection"
        self._beside.start_soon(task_spawner.uninterrupted(function))

    def wake(self) -> None:
        """Have the tasks look at the core again."""
        self._look.set()
        self._fill.set()

    async def wait(self, outcome: Completion, timeout: float | None) -> bool:
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

    def add_callback(self, outcome: Completion, callback: Callable[[], object]) -> bool:
        """Have the driver call back once settled; return False when it is settled already."""
        return outcome.add_callback(callback)

    def announce(self) -> None:
        """Announce what was settled after the tasks ended."""
        self.dispatcher.announce(self._core.take_events())

    async def close(self, timeout: float) -> None:
        """Finish within ``timeout`` seconds, even when the caller is being cancelled."""
        if isinstance(self.usage_error, ForkedError):
            return  # everything that was here belongs to the parent
        self._closed_by_caller = True
        with anyio.CancelScope(shield=True):
            self._refuse(ClosedError(f"{self._name} is closed; make a new one"))
            self._core.close(time.monotonic(), timeout)
            self.wake()
            if self._call_soon is not None:
                await self._stopped.wait()
        self._fail(ClosedError(f"{self._name} is closed; make a new one"))

    def let_go(self, timeout: float = _LONGEST_WAIT) -> None:
        """Start closing without waiting: the client was dropped without being closed.

        A finalizer may run anywhere, even in another thread.
        """
        if self._call_soon is not None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended, and the tasks too
                self._call_soon(partial(self._close_dropped, timeout))

    def _close_dropped(self, timeout: float) -> None:
        self._refuse(ClosedError(f"{self._name} is closed; make a new one"))
        self._core.close(time.monotonic(), timeout)
        self.wake()

    def forked(self) -> None:
        """Refuse further use; called in a forked child, where the event loop is the parent's."""
        self.usage_error = ForkedError(
            f"{self._name} was opened before os.fork(); open a new one in the child process"
        )
        at_exit.unregister(self)
        with contextlib.suppress(Exception):  # the core may have been forked in mid-step
            # Nobody here may wait for the parent.
            self._core.fail(self.usage_error, time.monotonic())

    def _refuse(self, reason: UsageError) -> None:
        if self.usage_error is None or isinstance(self.usage_error, NotOpenError):
            self.usage_error = reason

    def _fail(self, error: LanceError) -> None:
        self._core.fail(error, time.monotonic())
        self.announce()

    # The tasks

    async def _run(self) -> None:
        try:
            await self._drive()
        except anyio.get_cancelled_exc_class():
            await self._deliver_at_the_end()
            raise
        except Exception as error:  # noqa: BLE001 - told to whoever uses the object
            SESSION.error("%s: its task ended by an error", self._name, exc_info=error)
            self._fail(ClosedError(f"{self._name}: its task ended by an error: {error!r}"))
        finally:
            self._end()
            self._stopped.set()

    async def _drive(self) -> None:
        async with anyio.create_task_group() as self._beside:
            async with anyio.create_task_group() as self._tasks:
                # Offloaded tasks go on until they are finished, also after the core is.
                await self._loop(self._tasks)
            self._end()
            self._beside.cancel_scope.cancel()

    async def _deliver_at_the_end(self) -> None:
        """Give what is unacknowledged a bounded time when the event loop ends.

        The loop has cancelled the connection's tasks, too: it is connected once more.
        """
        if self._core.finished or self.count_delivered is None:
            return
        with anyio.CancelScope(shield=True):
            now = time.monotonic()
            if self._linked:
                self._linked = False
                self._core.disconnected(ConnectionAbortedError("the event loop ends"), now)
            self._refuse(
                ClosedError(f"{self._name} is closed: its event loop has ended; make a new one")
            )
            self._core.close(now, at_exit.EXIT_BUDGET)
            await self._drive()

    def close_at_exit(self, timeout: float) -> None:
        """Finish at interpreter exit, and tell what was not delivered.

        An event loop that runs in a thread of its own gets the time; of one that was stopped,
        nothing can be delivered any more.
        """
        loop = getattr(self._call_soon, "__self__", None)
        if self._call_soon is not None and isinstance(loop, asyncio.AbstractEventLoop):
            until = time.monotonic() + timeout
            if loop.is_running():
                self._call_soon(partial(self._close_dropped, timeout))
            while loop.is_running() and not self._core.finished and time.monotonic() < until:
                time.sleep(_EXIT_LOOK)
        if not self._core.finished:
            self._fail(ClosedError(f"{self._name}: its event loop was stopped"))
        self._tell_end(at_exit.AT_EXIT)

    def _end(self) -> None:
        """Refuse further use: there will be no connection any more."""
        if not self._core.finished:
            self._fail(ClosedError(f"{self._name}: its task was cancelled"))
        because = f": {self._core.failure}" if self._core.failure is not None else ""
        self._refuse(ClosedError(f"{self._name} is closed{because}"))
        at_fork.unregister(self)
        at_exit.unregister(self)
        self._tell_end(f"when the event loop of {self._name} ended")

    def _tell_end(self, when: str) -> None:
        """Tell, once, what was delivered and what was not."""
        count, self.count_delivered = self.count_delivered, None
        if count is None:
            return
        lost = self.count_lost()
        self.dispatcher.tell_end(count(), lost)
        if not self._closed_by_caller:
            self.tell_loss(lost, when)

    async def _loop(self, tasks: TaskGroup) -> None:
        while True:
            self._look = anyio.Event()  # before looking: what changes after this wakes again
            self._step(tasks)
            if self._core.finished:
                return
            now = time.monotonic()
            self._until = min(self._core.next_deadline(), now + _LONGEST_WAIT)
            with anyio.move_on_after(max(self._until - now, 0.0)):
                await self._look.wait()

    def _step(self, tasks: TaskGroup) -> None:
        """Do what the core wants done now."""
        now = time.monotonic()
        self._core.handle_timeout(now)
        action = self._core.next_action(now)
        for offloaded in self.dispatcher.announce(self._core.take_events()):
            tasks.start_soon(task_spawner.uninterrupted(self._run_offloaded), offloaded)
        if isinstance(action, Connect):
            # Made here, so that a Close reaches the task even before its first step.
            self._link_scope = anyio.CancelScope()
            self._linked = True
            tasks.start_soon(task_spawner.uninterrupted(self._link), action, self._link_scope)
        elif isinstance(action, Close) and self._link_scope is not None:
            self._link_scope.cancel()
        self._fill.set()

    def _changed(self) -> None:
        """Look at the core after a connection's task has changed it."""
        assert self._tasks is not None, "a connection's task runs in it"
        self._step(self._tasks)
        if self._core.finished or self._core.next_deadline() < self._until:
            self._look.set()

    async def _run_offloaded(self, offloaded: OffloadedTask) -> None:
        """Run work that may take time in a thread, in the order in which it was asked for."""
        async with self._offloaded:
            result, error = await anyio.to_thread.run_sync(offloaded.run)
            offloaded.done(result, error, time.monotonic())
        self._look.set()

    async def _link(self, action: Connect, scope: anyio.CancelScope) -> None:
        """Make a connection and look after it until it ends."""
        error: Exception | None = None
        try:
            with scope:
                error = await self._serve(action)
        except DialFailed as failed:
            self._linked = False
            self._core.dial_failed(failed.tries, time.monotonic())
        else:
            self._linked = False
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

    async def _exchange(self, transport: TaskTransport) -> Exception | None:
        ends: list[Exception | None] = []
        async with anyio.create_task_group() as both:

            async def until_end(direction: Callable[[TaskTransport], Awaitable[None]]) -> None:
                try:
                    await direction(transport)
                except OSError as error:
                    ends.append(error)
                both.cancel_scope.cancel()

            both.start_soon(task_spawner.uninterrupted(until_end), self._write)
            both.start_soon(task_spawner.uninterrupted(until_end), self._read)
        return ends[0] if ends else None

    async def _read(self, transport: TaskTransport) -> None:
        await transport.receive(self._received)

    def _received(self, data: Buffer) -> None:
        if self._wirelog is not None:
            self._wirelog.received(bytes(data))
        self._core.receive_data(data, time.monotonic())
        self._changed()

    async def _write(self, transport: TaskTransport) -> None:
        while True:
            self._fill = anyio.Event()
            if buffers := self._core.data_to_send(time.monotonic()):
                if self._wirelog is not None:
                    self._wirelog.sent(buffers)
                await transport.send(buffers)
                self._changed()
            else:
                await self._fill.wait()
