"""The sync driver: one daemon thread, one lock, one wake-up.

Whoever changes the core from another thread does so under `ThreadDriver.lock` and then calls
`ThreadDriver.wake`. The thread clears the wake-up before it takes the lock to look at the core, so
it either sees the change or is woken again: no wake-up is lost.

A program's own thread may send a lone batch and wait at the socket for its answer, see
`lance_sdk._io.threads.direct_exchange`.
"""

import contextlib
import math
import selectors
import threading
import time
from collections.abc import Callable, Sequence

from lance_sdk._api.interruptible import LOOK, Latch, acquire, join
from lance_sdk._errors.base import LanceError
from lance_sdk._io import at_exit, at_fork
from lance_sdk._io.dialer import DialFailed
from lance_sdk._io.driver_contract import ProtocolCore
from lance_sdk._io.event_dispatcher import EventDispatcher
from lance_sdk._io.nonblocking_stream import Stream
from lance_sdk._io.threads.direct_exchange import DirectExchange, LoneBatches
from lance_sdk._io.threads.socket_selector import SocketSelector
from lance_sdk._io.threads.thread_connector import Abandoned, Connector
from lance_sdk._io.tls import Tls
from lance_sdk._io.tokens import TokenSource
from lance_sdk._io.wire_log import WireLog
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.events import Close, Connect, Event, OffloadedTask
from lance_sdk.errors import (
    ClosedError,
    ConcurrencyError,
    ForkedError,
    NotOpenError,
    UsageError,
)
from lance_sdk.hooks import Hooks

_RECEIVE_BYTES = 256 * 1024
_NOTHING = memoryview(b"")
_WORTH_A_READ = 64 * 1024
"""Bytes of room below which copying them is as quick as a read that ends with them."""
_LONGEST_WAIT = 3600.0
"""Seconds a client that was dropped may still take to finish."""
_JOIN_GRACE = 1.0
"""Seconds the thread may overrun the core's deadline before `close` goes on without it."""


class ThreadDriver:
    """Drives a core on a thread of its own.

    Args:
        core: what to drive.
        name: for the thread and for messages.
        tls: how to speak TLS.
        token: returns a token for each connection.
        hooks: what is told of everything.
        topic: the topic's label, for hooks.

    Attributes:
        dispatcher: tells hooks and the log.
        place: returns where a producer's records go, for the texts of errors.
        room: returns memory to receive what comes next into, or nothing; called under the lock.
        lock: guards the core; user code never runs under it.
        batches: what is sent, where a lone batch may be sent and acknowledged on the thread that
            waits for it.
        usage_error: why the object cannot be used at the moment; None while it can.
        count_lost: returns the number of records lost, for the report at interpreter exit.
        count_delivered: returns the number of records acknowledged; None for what sends none.
        tell_loss: tells how many records were lost where no caller can be told, and when.
    """

    def __init__(
        self,
        core: ProtocolCore,
        name: str,
        tls: Tls = None,
        *,
        token: TokenSource | None = None,
        hooks: Hooks | Sequence[Hooks] = (),
        topic: str = "",
    ) -> None:
        self._core = core
        self._name = name
        self._connector = Connector(tls, token, self._attend, self.wake)
        self._wirelog: WireLog | None = None
        self.dispatcher = EventDispatcher(name, hooks, topic)
        self.place: Callable[[], object] = lambda: None
        self.room: Callable[[], memoryview] = lambda: _NOTHING
        self.batches: LoneBatches | None = None
        self._direct: DirectExchange | None = None
        self._thread: threading.Thread | None = None
        self._waiter: SocketSelector | None = None
        self._dropped = self._was_dropped = False
        self._drop_limit = _LONGEST_WAIT
        self._stream: Stream | None = None
        self._writing = False
        self._buffer = memoryview(bytearray())
        self.lock = threading.Lock()
        self.usage_error: UsageError | None = NotOpenError(
            f"{name} is not open: use it in a `with` block, or call open() first"
        )
        self.count_lost: Callable[[], int] = int
        self.count_delivered: Callable[[], int] | None = None
        self.tell_loss: Callable[[int, str], None] = at_exit.warn_of_loss

    def __repr__(self) -> str:
        return f"<ThreadDriver {self._name} usage_error={self.usage_error!r} {self._core!r}>"

    # What the client calls

    def check(self) -> None:
        """Raise why the object cannot be used, if it cannot.

        Raises:
            UsageError: not open, closed, forked.
        """
        if self.usage_error is not None:
            raise self.usage_error.with_traceback(None)

    def start(self) -> None:
        """Start the thread."""
        self._waiter = SocketSelector()
        if self.batches is not None and not self.dispatcher.hooks:  # hooks run on the I/O thread
            self._direct = DirectExchange(self._core, self.batches, self._waiter)
        self._buffer = memoryview(bytearray(_RECEIVE_BYTES))
        self.usage_error = None
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        at_fork.register(self)
        at_exit.register(self)
        self._thread.start()

    def wake(self) -> None:
        """Have the thread look at the core again; the lock must not be held."""
        waiter = self._waiter
        if waiter is None or waiter.woken:
            return
        with self.lock:
            waiter.wake()

    def push(self, now: float) -> None:
        """Send what may leave, or have the thread do it; the lock must be held."""
        waiter, direct = self._waiter, self._direct
        if waiter is None:
            return
        sent = False
        try:
            sent = direct is not None and direct.send(now)
        finally:
            if not sent:
                if not waiter.woken:
                    waiter.wake()
                self.mend()

    def mend(self) -> None:
        """Complete what an exception has cut short in a program's thread; the lock must be held."""
        if self._direct is not None:
            self._direct.mend(time.monotonic())

    def wait(self, outcome: Completion, timeout: float | None) -> bool:
        """Block until ``outcome`` is settled; return False when the time ran out first.

        Raises:
            ConcurrencyError: when called from a callback, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            raise ConcurrencyError(
                f"{self._name}: a callback runs on the I/O thread and must not wait for "
                f"it; wait in another thread, or act in the callback itself"
            )
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        if self._direct is not None:
            self._wait_at_socket(self._direct, outcome, deadline)
        latch = self._latch(outcome)
        while latch is not None and not outcome.done and (left := deadline - time.monotonic()) > 0:
            if not latch.wait(min(left, LOOK)):
                self.wake()  # Ctrl-C may have come between a change and the wake-up after it
        return outcome.done

    def _latch(self, outcome: Completion) -> Latch | None:
        """Return what the thread will set when it announces an outcome; None if it is settled."""
        with self.lock:
            if outcome.done:
                return None
            if outcome.latch is None:
                outcome.latch = Latch()
            latch = outcome.latch
        assert isinstance(latch, Latch)
        return latch

    def _wait_at_socket(self, direct: DirectExchange, outcome: Completion, deadline: float) -> None:
        """Wait for a batch where its answer arrives, if it is the only one under way."""
        seat = threading.Lock()
        with seat:
            try:
                with self.lock:
                    if not direct.sit(seat, outcome):
                        return
                while (left := deadline - time.monotonic()) > 0:
                    direct.pause(min(left, LOOK))
                    with self.lock:
                        if direct.take(seat, outcome, time.monotonic()):
                            return
            finally:
                with self.lock:
                    if direct.leave(seat, outcome) and self._waiter is not None:
                        self._waiter.wake()
                    self.mend()

    def add_callback(self, outcome: Completion, callback: Callable[[], object]) -> bool:
        """Have the thread call back once settled; return False when it is settled already."""
        with self.lock:
            return outcome.add_callback(callback)

    def announce(self) -> None:
        """Announce, on the caller's thread, what was settled after the thread ended."""
        with self.lock:
            events = self._core.take_events()
        self.dispatcher.announce(events)

    def close(self, timeout: float) -> None:
        """Finish within ``timeout`` seconds, whatever the network does.

        Raises:
            ConcurrencyError: when called from a callback.
        """
        thread = self._thread
        if isinstance(self.usage_error, ForkedError):
            return  # everything that was here belongs to the parent
        if thread is threading.current_thread():
            raise ConcurrencyError(f"{self._name}: close() must not be called from a callback")
        with self.lock:
            self._refuse(ClosedError(f"{self._name} is closed; make a new one"))
            self.mend()
            self._core.close(time.monotonic(), timeout)
        self.wake()
        if thread is None or not thread.is_alive():
            self._fail(ClosedError(f"{self._name} is closed; make a new one"))
            return
        if not join(
            thread, timeout + _JOIN_GRACE
        ):  # in a callback or in name resolution: it cannot be interrupted
            self._fail(ClosedError(f"{self._name} was closed while its I/O thread was busy"))

    def close_at_exit(self, timeout: float) -> None:
        """Finish at interpreter exit, and tell what was not delivered."""
        if self._thread is not None and self._thread.is_alive():
            self.close(timeout)
        if not self._was_dropped:  # else its thread has reported it
            self.tell_loss(self.count_lost(), at_exit.AT_EXIT)

    def let_go(self, timeout: float = _LONGEST_WAIT) -> None:
        """Start closing without waiting: the client was dropped without being closed.

        A finalizer may run anywhere, even in a thread that holds the lock, so it must not wait
        for it. Where the lock is taken, the thread finds the flag at its next look.
        """
        self._drop_limit, self._dropped = timeout, True
        taken: list[bool] = []
        try:
            if acquire(self.lock, 0.0, taken) and self._waiter is not None:
                self._waiter.wake()
        finally:
            if True in taken:
                self.lock.release()

    def _close_dropped(self, now: float) -> None:
        self._dropped, self._was_dropped = False, True
        self._refuse(ClosedError(f"{self._name} is closed; make a new one"))
        self._core.close(now, self._drop_limit)

    def forked(self) -> None:
        """Let go of everything inherited; called in a forked child."""
        self.lock = threading.Lock()  # the old one may be held by a thread that is not here
        self.usage_error = ForkedError(
            f"{self._name} was opened before os.fork(); open a new one in the child process"
        )
        self._thread = None
        self._close_descriptors()
        at_exit.unregister(self)
        with contextlib.suppress(Exception):  # the core may have been forked in mid-step
            # Nobody here may wait for the parent.
            self._core.fail(self.usage_error, time.monotonic())

    def _refuse(self, reason: UsageError) -> None:
        if self.usage_error is None or isinstance(self.usage_error, NotOpenError):
            self.usage_error = reason

    def _fail(self, error: LanceError) -> None:
        with self.lock:
            self.mend()
            self._core.fail(error, time.monotonic())
        self.announce()

    # The thread

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:
            self._fail(ClosedError(f"{self._name}: the I/O thread ended by an error: {error!r}"))
            raise
        finally:
            self._finish()

    def _loop(self) -> None:
        assert self._waiter is not None
        while True:
            with self.lock:
                self._waiter.woken = False  # what changes after this look wakes again
                now = time.monotonic()
                broken = None if self._direct is None else self._direct.settle(now)
                if self._dropped:
                    self._close_dropped(now)
                self._core.handle_timeout(now)
                action = None if broken else self._core.next_action(now)
                if self._stream is not None and not self._stream.backlog and not broken:
                    self._queue(self._stream, now)
                events = self._core.take_events()
                finished = self._core.finished
                deadline = self._core.next_deadline()
            offloaded_tasks = self.dispatcher.announce(events)
            self._tell_waiting(events)
            self._run_offloadeds(offloaded_tasks)
            if finished:
                return
            if broken is not None:
                self._hang_up(broken)
            elif action is None:
                self._exchange(-math.inf if offloaded_tasks else deadline)
            elif isinstance(action, Connect):
                self._dial(action)
            elif isinstance(action, Close):
                self._hang_up(None)

    def _tell_waiting(self, events: list[Event]) -> None:
        """Have whoever waits at the socket look whether it is settled what it waits for."""
        if events and self._direct is not None:
            with self.lock:
                self._direct.ring()

    def _queue(self, stream: Stream, now: float) -> None:
        buffers = self._core.data_to_send(now)
        if self._wirelog is not None:
            self._wirelog.sent(buffers)
        stream.queue(buffers)

    def _run_offloadeds(self, offloaded_tasks: list[OffloadedTask]) -> None:
        """Do what may take time, with the lock free meanwhile."""
        for offloaded in offloaded_tasks:
            result, error = offloaded.run()
            with self.lock:
                offloaded.done(result, error, time.monotonic())

    def _exchange(self, deadline: float) -> None:
        """Send what is queued; wait for bytes, for room, for a wake-up, or for the deadline."""
        assert self._waiter is not None
        stream = self._stream
        if stream is None:
            self._waiter.wait(deadline)
            return
        try:
            stream.flush()
        except OSError as error:
            self._hang_up(error)
            return
        backlog = stream.backlog
        if backlog is not self._writing:  # ask for room exactly while something waits
            self._writing = backlog
            self._waiter.watch(stream.sock, write=self._writing)
        if self._rest(deadline, stream) & selectors.EVENT_READ:
            self._receive(stream, deadline)

    def _rest(self, deadline: float, stream: Stream) -> int:
        """Wait, and leave a connection without backlog to who sends and waits meanwhile."""
        assert self._waiter is not None
        direct = self._direct
        if direct is None:
            return self._waiter.wait(deadline)
        if not stream.backlog:
            direct.rest(deadline)
        ready = self._waiter.wait(deadline)
        with self.lock:
            return ready if direct.rouse() else 0

    def _receive(self, stream: Stream, deadline: float) -> None:
        """Take what one read brings; a peer that never stops sending must not stop the timers."""
        while True:
            with self.lock:
                room = self.room()
            large = len(room) >= _WORTH_A_READ
            buffer = room if large else self._buffer
            try:
                count = self._fill(stream, room, deadline) if large else stream.receive(buffer)
            except OSError as error:
                self._hang_up(error)
                return
            if count is None:
                return
            if count == 0:
                self._hang_up(None)
                return
            if self._wirelog is not None:
                self._wirelog.received(bytes(buffer[:count]))
            with self.lock:
                self._core.receive_data(buffer[:count], time.monotonic())
            if not stream.decrypted:
                return

    def _fill(self, stream: Stream, room: memoryview, deadline: float) -> int | None:
        """Receive the rest of a large frame as it arrives, which the core need not see in pieces.

        Returns:
            As `Stream.receive`: fewer bytes where the connection ends, the thread is woken or the
            deadline is reached before the frame is there.
        """
        assert self._waiter is not None
        filled = 0
        while filled < len(room):
            count = stream.receive(room[filled:])
            if count:
                filled += count
            elif count == 0:
                return filled
            elif self._waiter.woken or not self._waiter.wait(deadline) & selectors.EVENT_READ:
                return filled or None
        return filled

    def _dial(self, action: Connect) -> None:
        assert self._waiter is not None
        try:
            stream, token = self._connector.connect(action, self._waiter)
        except DialFailed as failed:
            with self.lock:
                self._core.dial_failed(failed.tries, time.monotonic())
        except Abandoned:
            with self.lock:
                self._core.disconnected(None, time.monotonic())
        else:
            self._stream, self._writing = stream, False
            self._wirelog = WireLog.if_wanted(self._name)
            self._waiter.watch(stream.sock)
            with self.lock:
                if self._direct is not None and self._wirelog is None:
                    self._direct.attach(stream)
                self._core.connected(stream.address, time.monotonic(), token)

    def _attend(self) -> float:
        """Serve the core's timers during a dial; return its next deadline."""
        assert self._waiter is not None
        now = time.monotonic()
        with self.lock:
            self._waiter.woken = False
            self._core.handle_timeout(now)
            action = self._core.next_action(now)
            events = self._core.take_events()
            deadline = self._core.next_deadline()
        self._run_offloadeds(self.dispatcher.announce(events))
        if isinstance(action, Close):
            raise Abandoned
        return deadline

    def _hang_up(self, error: Exception | None) -> None:
        with self.lock:
            stream, self._stream = self._stream, None
            if self._direct is not None:
                self._direct.detach(time.monotonic())
        if stream is not None:
            assert self._waiter is not None
            self._waiter.unwatch(stream.sock)
            stream.close()
        with self.lock:
            self._core.disconnected(error, time.monotonic())

    def _finish(self) -> None:
        failure = self._core.failure
        because = f": {failure}" if failure is not None else ""
        with self.lock:
            self._refuse(ClosedError(f"{self._name} is closed{because}"))
            if self._direct is not None:
                self._direct.detach(time.monotonic())
            self._close_descriptors()
        at_fork.unregister(self)
        at_exit.unregister(self)
        lost = self.count_lost()
        if self.count_delivered is not None:
            self.dispatcher.tell_end(self.count_delivered(), lost)
        if self._was_dropped:
            self.tell_loss(lost, f"after {self._name} was dropped without being closed")

    def _close_descriptors(self) -> None:
        waiter, self._waiter = self._waiter, None
        direct, self._direct = self._direct, None
        if direct is not None:
            direct.close()
        if self._stream is not None:
            self._stream.close()
        if waiter is not None:
            waiter.close()
