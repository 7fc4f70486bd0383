"""A lone batch and its answer, without waking the I/O thread: for the thread driver.

A program that sends a record and waits for it would wake the I/O thread to send it, the I/O thread
would wake for the answer, and then wake the program. Where the I/O thread rests and nothing else is
under way, the program's own thread writes to the socket, waits at it and reads from it instead.

In that thread a signal's handler may raise anywhere between two calls. Therefore:

- what is given to the socket or taken from it is noted in the same step of the interpreter; the
  I/O thread goes on from the notes;
- a step of the core that was begun and not completed stays noted as well (`_torn`). `mend`
  completes it, and the I/O thread ends the connection, of whose bytes nothing is known any more;
- whoever waits at the socket holds a lock (`sit`) that a ``with`` statement gives back; when nobody
  holds it, the I/O thread watches the socket again.

Everything here is called under the driver's lock, but for `rest` and `pause`.
"""

import math
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from lance_sdk._io.driver_contract import ProtocolCore
from lance_sdk._io.nonblocking_stream import Stream
from lance_sdk._io.platform import WakeUp, readiness
from lance_sdk._io.threads.socket_selector import SocketSelector
from lance_sdk._protocol.completion import Completion
from lance_sdk.errors import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Callable

_ONE_READ: Final = (1024,)
"""Bytes: more than one acknowledgement; whatever else came is left to the I/O thread."""


class LoneBatches(Protocol):
    """What sends batches, as far as it is asked here; `Sender` is one."""

    def about_to_leave(self) -> Completion | None:
        """Return the open batch, where it would leave at once and alone."""
        ...

    def is_alone(self, batch: Completion) -> bool:
        """Whether a batch is all that is under way."""
        ...

    def is_answer(self, data: bytes, batch: Completion) -> bool:
        """Whether bytes are the acknowledgement of a batch in flight, and nothing else."""
        ...

    def has_news(self, batch: Completion) -> bool:
        """Whether events should be announced soon, others than that a batch is settled."""
        ...

    def mend(self, batch: Completion, now: float, *, answered: bool) -> None:
        """Complete a step that an exception cut short: sending a batch, or settling it."""
        ...


class DirectExchange:
    """What the threads of a program do at the socket of a driver.

    Args:
        core: the driver's core.
        batches: what the core sends.
        waiter: what the I/O thread waits on.
    """

    def __init__(self, core: ProtocolCore, batches: LoneBatches, waiter: SocketSelector) -> None:
        self._core = core
        self._batches = batches
        self._waiter = waiter
        self._bell = WakeUp()
        self._rung = False
        self._stream: Stream | None = None
        self._ready: Callable[[float], bool] = bool
        self._resting = False
        self._rests_until = -math.inf
        self._seat: threading.Lock | None = None
        self._left_alone = False
        """Whether the I/O thread does not watch the socket."""
        self._torn: Completion | None = None
        self._answered = False
        self._broken = False
        self._frame = b""
        self._taken: list[int] = []
        """How many bytes of the frame the socket has taken, once it was tried."""
        self._received: list[bytes] = []

    def __repr__(self) -> str:
        return f"<DirectExchange resting={self._resting} seated={self._seated}>"

    @property
    def _seated(self) -> bool:
        return self._seat is not None and self._seat.locked()

    # What the I/O thread calls

    def attach(self, stream: Stream) -> None:
        """Use a connection from now on."""
        if stream.plain and self._waiter.can_leave_alone:
            self._stream = stream
            self._ready = readiness(stream.sock, self._bell)

    def detach(self, now: float) -> None:
        """Let go of the connection, and have whoever waits at it leave."""
        if self._stream is not None:
            self.settle(now)
        self.ring()
        self._stream = self._seat = None
        self._resting = self._left_alone = self._broken = False

    def ring(self) -> None:
        """Have whoever waits at the socket look again."""
        if self._seated:
            self._rung = True
            self._bell.set()

    def rest(self, until: float) -> None:
        """Say that the I/O thread leaves the connection alone until it calls `rouse`."""
        self._rests_until = until
        self._resting = True

    def rouse(self) -> bool:
        """End the rest; return whether the socket is for the I/O thread to read."""
        self._resting = False
        return not self._seated and not self._busy

    def settle(self, now: float) -> ConnectionLost | None:
        """Go on from the notes; return why the connection is to be ended, if it is."""
        self._watch_again()
        self.mend(now)
        if self._broken:
            return ConnectionLost("an exception in the program's thread interrupted the protocol")
        for data in self._received:
            if data:  # where the stream has ended, the I/O thread sees it for itself
                self._core.receive_data(data, now)
        self._received = []
        if self._frame and self._stream is not None:
            self._stream.queue([self._frame[sum(self._taken) :]])
        self._frame, self._taken = b"", []
        return None

    def close(self) -> None:
        """Let go of the descriptors."""
        self._stream = self._seat = None
        self._bell.close()

    # What the program's threads call

    def send(self, now: float) -> bool:
        """Send the open batch; return False where the I/O thread is to have a look."""
        self._watch_again()
        stream = self._stream
        if stream is None or not self._resting or self._busy:
            return False
        batch = self._batches.about_to_leave()
        if batch is None:
            return False
        self._torn = batch
        frame = b"".join(self._core.data_to_send(now))
        self._frame, self._torn = frame, None
        if not frame:
            return False
        with suppress(OSError):  # the I/O thread gets the error, too
            self._taken.extend(map(stream.sock.send, (frame,)))
        if not self._taken or self._taken[0] < len(frame):
            return False
        self._frame, self._taken = b"", []
        return self._core.next_deadline() >= self._rests_until

    def sit(self, seat: threading.Lock, batch: Completion) -> bool:
        """Wait at the socket instead of the I/O thread; return whether it is possible.

        Args:
            seat: held by the caller until it waits no more.
            batch: what it waits for.
        """
        stream = self._stream
        if batch.done or stream is None or not self._resting or self._seated or self._busy:
            return False
        if not self._batches.is_alone(batch):
            return False
        self._seat, self._left_alone = seat, True
        self._waiter.leave_alone(stream.sock)
        return True

    def pause(self, seconds: float) -> None:
        """Wait until there is something to read, or the I/O thread rings."""
        self._ready(seconds)

    def take(self, seat: threading.Lock, batch: Completion, now: float) -> bool:
        """Read what is there; return whether there is nothing more to wait for here."""
        stream = self._stream
        if stream is None or self._seat is not seat or batch.done:
            return True
        if self._rung:
            self._bell.clear()
            self._rung = False
        try:
            self._received.extend(map(stream.sock.recv, _ONE_READ))
        except stream.not_now:
            return False
        except OSError:
            return True  # the I/O thread gets the error, too
        if len(self._received) == 1 and self._batches.is_answer(self._received[0], batch):
            self._answered, self._torn = True, batch
            self._core.receive_data(self._received[0], now)
            self._answered, self._torn, self._received = False, None, []
        return True

    def leave(self, seat: threading.Lock, batch: Completion) -> bool:
        """Give the socket back; return whether the I/O thread is to have a look."""
        if self._seat is seat:
            self._seat = None
            self._watch_again()
        return self._busy or not batch.done or self._batches.has_news(batch)

    def mend(self, now: float) -> None:
        """Complete what an exception has cut short."""
        if self._torn is not None:
            self._broken = True
            self._batches.mend(self._torn, now, answered=self._answered)
            self._answered, self._torn = False, None
            self._frame, self._taken, self._received = b"", [], []

    @property
    def _busy(self) -> bool:
        """Whether there is something to go on with."""
        return bool(self._torn or self._broken or self._frame or self._received)

    def _watch_again(self) -> None:
        """Have the I/O thread watch the socket where nobody else does."""
        if self._left_alone and not self._seated and self._stream is not None:
            self._waiter.watch_again(self._stream.sock)
            self._left_alone = False
