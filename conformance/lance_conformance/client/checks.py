"""Checks of the bytes that a client sent, as data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lance_conformance.client.scripted.model import trigger_of
from lance_conformance.client.scripted.received_frame import ReceivedFrame
from lance_conformance.client.scripted.server import ScriptedConnection, ScriptedServer
from lance_conformance.engine.failures import Failure


class Check(Protocol):
    """One thing to look at when all operations are done."""

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Judge.

        Args:
            server: What a client did.
            deadline: When to stop waiting for it, in the time of the event loop's clock.

        Raises:
            Failure: It did not do what it must.
        """


def _failure(
    reason: str, wanted: str, found: str, connection: int | None = None, *, late: bool | None = None
) -> Failure:
    """A failure; ``late`` when slowness alone could have caused it."""
    return Failure(
        reason,
        f"expected {wanted}; got {found}",
        expected=(wanted,),
        received=found,
        connection=connection,
        timing=late,
    )


@dataclass(frozen=True, slots=True)
class Closes:
    """The client ends every connection on which it was wronged."""

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Wait for the ends."""
        wronged = [connection for connection in server.connections if connection.wronged]
        await server.until(lambda: all(connection.ended for connection in wronged), deadline)
        for connection in wronged:
            if connection.ended is None:
                raise _failure(
                    "not-closed",
                    "the client closes the connection",
                    "it stays open",
                    connection.number,
                )


@dataclass(frozen=True, slots=True)
class StaysOn:
    """The client does not end a connection for this."""

    async def judge(self, server: ScriptedServer, _deadline: float) -> None:
        """Look for connections that it ended; nothing is waited for."""
        for connection in server.connections:
            if connection.ended is not None:
                # A client whose time ran out, as for connecting, ends the connection, too.
                found = _how(connection)
                wanted = "the connection stays open"
                raise _failure("closed-early", wanted, found, connection.number, late=True)


def _how(connection: ScriptedConnection) -> str:
    return f"the client closed it ({connection.ended})"


@dataclass(frozen=True, slots=True)
class Count:
    """How often a client does something.

    Attributes:
        what: The trigger.
        at_least: This often or more; it is waited for.
        at_most: This often or less.
    """

    what: str
    at_least: int = 0
    at_most: int | None = None

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Wait and count."""
        await server.until(lambda: server.count(self.what) >= self.at_least, deadline)
        count = server.count(self.what)
        wrong = count < self.at_least or (self.at_most is not None and count > self.at_most)
        if wrong:
            late = count < self.at_least or None
            raise _failure(f"count:{self.what}", str(self), f"{count} of them", late=late)

    def __str__(self) -> str:
        most = "" if self.at_most is None else f" and at most {self.at_most}"
        return f"at least {self.at_least}{most} times {self.what}"


@dataclass(frozen=True, slots=True)
class Same:
    """All frames of a kind say the same: a retry repeats what it retries (AMB-25).

    Attributes:
        what: The trigger.
        at_least: So many of them must come.
    """

    what: str
    at_least: int = 2

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Compare them."""
        await server.until(lambda: server.count(self.what) >= self.at_least, deadline)
        frames = server.frames(self.what)
        if len(frames) < self.at_least:
            raise _failure(f"count:{self.what}", f"{self.at_least} {self.what}",
                           str(len(frames)), late=True)  # fmt: skip
        for other in frames[1:]:
            if other.data != frames[0].data:
                field = _first_difference(frames[0], other)
                raise _failure(
                    f"field:{field}",
                    f"the same {self.what} again, byte for byte",
                    f"one that differs in {field}",
                    other.connection,
                )


def _first_difference(one: ReceivedFrame, other: ReceivedFrame) -> str:
    names = ("batch_id", "timestamp_ns", "record_count", "topic_id", "payload", "flags")
    differing = (n for n in names if getattr(one.frame, n) != getattr(other.frame, n))
    return next(differing, "the header")


@dataclass(frozen=True, slots=True)
class Sent:
    """A frame of a kind says what it was told to say.

    Attributes:
        what: The trigger.
        holds: Looks at the frame; returns what is wrong, empty when nothing is.
        wanted: What it must say, in words.
        some: One of them is enough; otherwise it is every one, and there must be one.
        instead: A frame of this kind does in the place of all of them.
    """

    what: str
    holds: Callable[[ReceivedFrame], str]
    wanted: str
    some: bool = False
    instead: str = ""

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Look."""
        await server.until(
            lambda: bool(server.frames(self.what) or server.frames(self.instead)), deadline
        )
        frames = server.frames(self.what)
        if not frames and server.frames(self.instead):
            return
        if not frames:
            raise _failure(f"count:{self.what}", f"a frame: {self.wanted}", "none", late=True)
        found = [(received, self.holds(received)) for received in frames]
        wrong = [(received, words) for received, words in found if words]
        if wrong and (not self.some or len(wrong) == len(found)):
            received, words = wrong[0]
            raise _failure(f"field:{self.what}", self.wanted, words, received.connection)


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one frame of several kinds says what the client was told to say.

    Attributes:
        kinds: The triggers.
        holds: Looks at a frame; returns what is wrong, empty when nothing is.
        wanted: What one must say, in words.
    """

    kinds: tuple[str, ...]
    holds: Callable[[ReceivedFrame], str]
    wanted: str

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Look."""
        wrong: list[str] = []

        def is_there() -> bool:
            frames = [frame for kind in self.kinds for frame in server.frames(kind)]
            wrong[:] = map(self.holds, frames)
            return "" in wrong

        await server.until(is_there, deadline)
        if "" not in wrong:
            found = wrong[0] if wrong else "no such frame"
            raise _failure(f"field:{self.kinds[0]}", self.wanted, found, late=not wrong)


@dataclass(frozen=True, slots=True)
class Order:
    """Batches arrive in the order in which they were sent, on every connection.

    Attributes:
        payloads: Their payloads in order.
    """

    payloads: tuple[bytes, ...]

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Compare the places of what each connection brought, and look for what is missing."""
        del deadline
        frames = server.frames("ingest")
        missing = set(self.payloads) - {each.opened.payload for each in frames}
        if missing:
            raise _failure("lost", f"{len(self.payloads)} batches", f"{len(missing)} never came")
        for connection in server.connections:
            mine = [each.opened.payload for each in frames if each.connection == connection.number]
            places = [self.payloads.index(payload) for payload in mine]
            if places != sorted(places):
                found = f"the order {places}"
                raise _failure("order", "batches in order", found, connection.number)


@dataclass(frozen=True, slots=True)
class Settles:
    """The rate of something stays bounded: so many at most while the operations ran.

    Attributes:
        what: The trigger.
        most: The largest number on one connection.
    """

    what: str
    most: int

    async def judge(self, server: ScriptedServer, _deadline: float) -> None:
        """Count per connection."""
        for connection in server.connections:
            count = sum(each.connection == connection.number for each in server.frames(self.what))
            if count > self.most:
                raise _failure(
                    f"storm:{self.what}",
                    f"at most {self.most} times {self.what} on a connection",
                    str(count),
                    connection.number,
                )


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The client goes to the server it was sent to."""

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Wait for a connection there."""
        await server.until(
            lambda: any(not connection.scripted for connection in server.connections), deadline
        )
        if all(connection.scripted for connection in server.connections):
            raise _failure("not-redirected", "a connection to the leader", "none", late=True)


@dataclass(frozen=True, slots=True)
class After:
    """A frame of one kind follows one of another kind, on the same connection.

    Attributes:
        what: What must follow.
        first: What it follows.
        at_least: So many of them.
    """

    what: str
    first: str
    at_least: int = 1

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Wait for it."""
        await server.until(lambda: self._count(server) >= self.at_least, deadline)
        if self._count(server) < self.at_least:
            wanted = f"{self.at_least} {self.what} after the {self.first}"
            found = f"{self._count(server)} of them"
            raise _failure(f"missing:{self.what}", wanted, found, late=True)

    def _count(self, server: ScriptedServer) -> int:
        return sum(
            any(trigger_of(each.frame) == self.first for each in received.before)
            for received in server.frames(self.what)
        )


@dataclass(frozen=True, slots=True)
class KeptAlive:
    """The client sends Keepalives on each connection that it has open.

    Attributes:
        at_least: So many of them on each.
    """

    at_least: int = 2

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Wait for them."""
        await server.until(lambda: not self._quiet(server), deadline)
        if quiet := self._quiet(server):
            wanted = f"{self.at_least} Keepalives on each open connection"
            found, number = quiet[0]
            raise _failure("missing:keepalive", wanted, f"{found} of them", number, late=True)

    def _quiet(self, server: ScriptedServer) -> list[tuple[int, int]]:
        """How many came on the connections that lack some, and the connections' numbers."""
        sent = [received.connection for received in server.frames("keepalive")]
        counts = [(sent.count(each.number), each.number) for each in server.connections
                  if each.ended is None]  # fmt: skip
        return [(count, number) for count, number in counts if count < self.at_least]


@dataclass(frozen=True, slots=True)
class ConsumerNumbers:
    """Each consumer has a number of its own, and the same one again.

    Attributes:
        names: The consumers that committed, in order.
    """

    names: tuple[str, ...]

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Compare the numbers of the commits."""
        await server.until(lambda: server.count("commit") >= len(self.names), deadline)
        numbers = [received.frame.payload[4:12].hex() for received in server.frames("commit")]
        told = set(zip(self.names, numbers, strict=False))
        if len(numbers) != len(self.names) or not (
            len(told) == len(set(self.names)) == len(set(numbers))
        ):
            raise _failure("field:commit", f"a number for each of {', '.join(self.names)}",
                           ", ".join(numbers) or "no commit")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reads:
    """All that was read is this, in order: nothing lost, nothing twice."""

    values: tuple[bytes, ...]

    async def judge(self, server: ScriptedServer, _deadline: float) -> None:
        """Compare."""
        if server.read != list(self.values):
            late = server.read == list(self.values[: len(server.read)]) or None
            raise _failure(
                "records",
                f"{len(self.values)} records, in order",
                f"{server.read!r:.200}",
                late=late,
            )


@dataclass(frozen=True, slots=True)
class First:
    """Nothing but Keepalives comes before a frame of this kind, on any connection."""

    what: str

    async def judge(self, server: ScriptedServer, deadline: float) -> None:
        """Look at each connection's frames."""
        del deadline
        for connection in server.connections:
            mine = [trigger_of(s.frame) for s in server.seen if s.connection == connection.number]
            others = [name for name in mine if name != "keepalive"]
            if others and others[0] != self.what:
                raise _failure("order", f"{self.what} first", others[0], connection.number)


@dataclass(frozen=True, slots=True)
class Secret:
    """What a client says in words never contains this."""

    text: str

    async def judge(self, server: ScriptedServer, _deadline: float) -> None:
        """Search."""
        if any(self.text in told for told in server.told):
            raise _failure("secret", "an error without the token in it", "the token")
