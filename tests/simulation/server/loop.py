"""An event loop that is a thread of the simulated world."""

import asyncio
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, Self

from greenlet import GreenletExit, getcurrent, greenlet
from tests.simulation.world import World

from lance_server.config.settings import Address

_TURN: Final = 2e-6
"""Seconds that a turn of the loop takes, beside what is done in it."""
_HANDS: Final = 20
"""Turns that the tasks of a process that is over get to end in."""


class _Selector:
    """Waits in the world instead of the system."""

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        self._wait = wait

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for so many seconds at most."""
        self._wait(timeout)
        return []


class SimLoop(asyncio.BaseEventLoop):
    """Runs callbacks on a thread of a world.

    Args:
        world: the world.

    Attributes:
        doors: what is to serve a connection, by the port that it comes to.
        turn: counts turns.
        dead: whether the process is over: nothing that is still done has an effect.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.doors: dict[int, Callable[[], asyncio.BaseProtocol]] = {}
        self.turn = 0
        self.dead = self._disposing = False
        self._asleep: greenlet | None = None
        self._clock_resolution = 1e-9
        self._selector = _Selector(self._wait)

    # What asyncio asks for -------------------------------------------------------------------

    def time(self) -> float:
        """Return the seconds that passed."""
        return self.world.now

    def _wait(self, timeout: float | None) -> None:
        if self._disposing:
            return
        if self.dead:
            raise GreenletExit
        self.turn += 1
        self.world.now += _TURN
        thread = self._asleep = getcurrent()
        alarm = None
        if timeout is not None:  # also for no time at all: what came meanwhile is taken first
            alarm = self.world.call_later(timeout, lambda: self._rouse(thread))
        self.world.wait()
        if alarm is not None:
            alarm.cancel()

    def _rouse(self, thread: greenlet) -> None:
        if self._asleep is thread:
            self._asleep = None
            self.world.wake(thread)

    def _write_to_self(self) -> None:
        if self._asleep is not None:
            self._rouse(self._asleep)

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: what happens calls back itself."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what a callback raised, for the run to judge."""
        error = context.get("exception")
        if self._disposing:
            return
        if isinstance(error, GreenletExit):
            if "handle" in context:
                raise error
        elif error is not None and not self.dead:
            self.world.errors.append(error)
        elif not self.dead:
            self.world.errors.append(RuntimeError(str(context.get("message"))))

    def run_in_executor(  # type: ignore[override]  # asyncio's is generic
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Run a function on a thread of its own."""
        del executor
        outcome = self.create_future()

        def work() -> None:
            self.world.pause()
            try:
                value = func(*args)
            except Exception as error:  # noqa: BLE001 - whoever waits gets it
                self.call_soon_threadsafe(_settle, outcome.set_exception, outcome, error)
            else:
                self.call_soon_threadsafe(_settle, outcome.set_result, outcome, value)

        self.world.spawn(work)
        return outcome

    async def create_server(  # type: ignore[override]  # only what the server asks for
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: object = None,
        port: object = None,
        *,
        sock: "Bound",
        **options: Any,
    ) -> "Door":
        """Serve connections to an address."""
        del host, port, options
        self.doors[sock.address.port] = protocol_factory
        return Door(self, sock)

    def remove_reader(self, fd: object) -> bool:
        """Do nothing: there is no reader."""
        del fd
        return False

    def dispose(self) -> None:
        """End what tasks are left after the thread has ended; nothing of it has an effect."""
        self.dead = self._disposing = True
        kept = [each for each in self._ready if _is_step(each)]
        self._ready.clear()
        self._ready.extend(kept)  # a task that never began ends in its first step
        self._scheduled.clear()
        for _ in range(_HANDS):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.call_soon(self.stop)
            self.run_forever()
        self.close()


def _is_step(handle: asyncio.Handle) -> bool:
    """Whether it lets a task go on."""
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


def _settle(how: Callable[[Any], None], outcome: "asyncio.Future[Any]", value: Any) -> None:
    if not outcome.done():
        how(value)


class Bound:
    """A socket that is bound to an address.

    Attributes:
        address: the address.
        family: what the system would say of it.
    """

    family = socket.AF_INET

    def __init__(self, address: Address) -> None:
        self.address = address

    def getsockname(self) -> tuple[str, int]:
        """Return the address."""
        return self.address.host, self.address.port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def listen(self, backlog: int) -> None:
        """Do nothing: nobody else has the address."""

    def close(self) -> None:
        """Do nothing."""


class Door:
    """What `SimLoop.create_server` returns: satisfies what is asked of an `asyncio.Server`."""

    def __init__(self, loop: SimLoop, bound: Bound) -> None:
        self._loop = loop
        self.sockets = (bound,)

    def close(self) -> None:
        """Take no more connections."""
        self._loop.doors.pop(self.sockets[0].address.port, None)

    def get_loop(self) -> SimLoop:
        """Return the event loop."""
        return self._loop

    def is_serving(self) -> bool:
        """Whether it takes connections."""
        return self.sockets[0].address.port in self._loop.doors

    async def start_serving(self) -> None:
        """Do nothing: it serves."""

    async def wait_closed(self) -> None:
        """Do nothing: it is closed at once."""


def bind(address: Address) -> list[Bound]:
    """Return a socket for an address."""
    return [Bound(address)]


class NoLock:
    """The lock of a data directory that nobody else wants."""

    def __init__(self, path: object) -> None:
        del path

    def check(self) -> None:
        """Do nothing: it is always there."""

    def release(self) -> None:
        """Do nothing."""


class Poll:
    """What ``select.poll`` is to the server: it sees how the peer of a transport is."""

    def __init__(self) -> None:
        self._asked: list[Any] = []

    def register(self, transport: Any, mask: int) -> None:
        """Ask for a transport, which takes the place of its file descriptor."""
        del mask
        self._asked.append(transport)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        """Return the transports whose peer has ended."""
        del timeout
        found = ((0, transport.peer_events()) for transport in self._asked)
        return [each for each in found if each[1]]


POLLING: Final = SimpleNamespace(poll=Poll, POLLRDHUP=0x2000)
"""Takes the place of the module ``select``."""
