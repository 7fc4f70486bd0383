"""One connection to the target, and what it may answer."""

from lance_conformance.engine.deadline import Deadline
from lance_conformance.engine.event_reader import EventReader
from lance_conformance.engine.expectations import ANOTHER_KIND, Allowed
from lance_conformance.engine.failures import NotApplicable
from lance_conformance.engine.raw_connection import RawConnection
from lance_conformance.rustlog.wire.frame import Decoder, Heard, framed, may_change, write
from lance_conformance.rustlog.wire.message import Form, Message


class Peer(EventReader[Heard]):
    """The target, as one connection shows it.

    Args:
        connection: The open connection.
        deadline: When the case ends; each right answer moves it.
        read_only: Nothing may be sent that could change something at the target.
    """

    def __init__(
        self, connection: RawConnection, deadline: Deadline, *, read_only: bool = False
    ) -> None:
        super().__init__(connection, Decoder(), deadline)
        self._read_only = read_only

    def send(self, *requests: Message) -> None:
        """Send requests in one write."""
        self.send_bytes(b"".join(map(write, requests)))

    def send_payload(self, payload: bytes, fault: str | None = None) -> None:
        """Send a frame that is not written from a message.

        Args:
            payload: What it holds.
            fault: The field in which it is wrong on purpose.
        """
        self.send_bytes(framed(payload), fault)

    def send_bytes(self, data: bytes, fault: str | None = None) -> None:
        """Send bytes as they are: frames, or a piece of one.

        Raises:
            NotApplicable: The target is only to be read, and they could change something there.
        """
        if self._read_only and (name := may_change(data)):
            raise NotApplicable(f"--read-only: {name} could change something at the target")
        self._connection.write(data, fault)

    def finish(self) -> None:
        """Send nothing more, and go on listening."""
        self._connection.finish()

    def read_late(self) -> None:
        """Take nothing from the connection until `read_on`, and let the target feel it."""
        self._connection.stop_reading()

    def read_on(self) -> None:
        """Take what has come meanwhile."""
        self._connection.read_on()

    async def told(self, *allowed: Allowed) -> Message:
        """The next answer, when it is one of the allowed ones, all of which are answers."""
        event: Heard = await self.expect(*allowed)
        assert event.message is not None, "only answers are allowed"
        return event.message

    async def ask(self, request: Message, *allowed: Allowed) -> Message:
        """Send one request and return its answer, one of the allowed ones."""
        self.send(request)
        return await self.told(*allowed)


def kind(name: str, cite: str, form: Form = "binary") -> Allowed:
    """An answer of this name, whatever its fields say."""

    def judge(event: object) -> str | None:
        if not isinstance(event, Heard):
            return ANOTHER_KIND
        if event.message is None:
            return event.reason
        return None if (event.message.name, event.message.form) == (name, form) else ANOTHER_KIND

    return Allowed(f"an answer to {name}, {form}", cite, judge)


def exactly(cite: str, name: str, form: Form = "binary", **fields: object) -> Allowed:
    """An answer whose fields say this; those not named may say anything."""
    right = kind(name, cite, form).judge

    def judge(event: object) -> str | None:
        found = right(event)
        if found is not None or not isinstance(event, Heard) or event.message is None:
            return found
        told = event.message.fields
        wrong = (each for each, value in fields.items() if told.get(each) != value)
        return next((f"field:{each}" for each in wrong), None)

    return Allowed(str(Message(name, fields, form)), cite, judge)


def refused(code: int, cite: str) -> Allowed:
    """A binary error with this code, whatever its text."""
    return exactly(cite, "Error", code=code)


def refused_saying(text: str, cite: str, *, begins: bool = False) -> Allowed:
    """A binary error with this text, whatever its code.

    Args:
        text: The text.
        cite: The clause.
        begins: The text only begins so.
    """
    right = kind("Error", cite).judge

    def judge(event: object) -> str | None:
        found = right(event)
        if found is not None or not isinstance(event, Heard) or event.message is None:
            return found
        said = str(event.message.fields["message"])
        fits = said.startswith(text) if begins else said == text
        return None if fits else "body:text"

    return Allowed(f"binary Error saying {text!r}{' and more' if begins else ''}", cite, judge)


def refused_in_json(cite: str) -> Allowed:
    """An error in JSON, whatever it says."""
    return kind("Error", cite, "json")
