"""The network and the server for one core, in memory and under a manual clock."""

from lance_sdk._io.driver_contract import ProtocolCore
from lance_sdk._protocol.completion import Completion
from lance_sdk._protocol.events import Action, Close, Connect, Event
from lance_sdk.testing.clock import ManualClock
from lance_spec.bodies import ErrorBody, TopicInfo, encode_json
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.enums import Command
from lance_spec.frames import (
    Frame,
    FrameKind,
    FrameSplitter,
    encode_ack,
    encode_control,
    encode_keepalive,
)
from lance_spec.messages.lwp import FetchResponse


class Wire:
    """Drivers a core by hand and speaks for the server.

    Args:
        core: the core under test; it must have been told to open.
        clock: its clock.
        dialect: what the server speaks.
        topic: what the server answers to ListTopics.

    Attributes:
        frames: frames that the core sent and the server has not looked at.
        events: everything the core announced.
        actions: everything the core wanted of its driver.
    """

    def __init__(
        self,
        core: ProtocolCore,
        clock: ManualClock,
        dialect: Dialect = SPECIFIED,
        topic: TopicInfo | None = None,
    ) -> None:
        self._core = core
        self._clock = clock
        self._dialect = dialect
        self._topic = topic or TopicInfo(id=1, name="orders", created_at=1)
        self._splitter = FrameSplitter((dialect,))
        self.frames: list[Frame] = []
        self.events: list[Event] = []
        self.actions: list[Action] = []

    def __repr__(self) -> str:
        return f"<Wire {self._dialect} frames={len(self.frames)} events={len(self.events)}>"

    # Time and connections

    def turn(self) -> None:
        """Do once what a driver does all the time."""
        now = self._clock.now
        self._core.handle_timeout(now)
        if (action := self._core.next_action(now)) is not None:
            self.actions.append(action)
        for data in self._core.data_to_send(now):
            self.frames += self._splitter.receive_data(bytes(data))
        self.events += self._core.take_events()

    def advance(self, seconds: float) -> None:
        """Let time pass, turning at each of the core's deadlines on the way."""
        until = self._clock.now + seconds
        self.turn()
        while (due := self._core.next_deadline()) <= until:
            self._clock.now = max(self._clock.now, due)
            self.turn()
        self._clock.now = until
        self.turn()

    def accept(self) -> None:
        """Take the connection that the core asks for."""
        self.turn()
        action = self.actions.pop()
        assert isinstance(action, Connect), f"the core asked for {action}"
        self._splitter = FrameSplitter((self._dialect,))
        self._core.connected("192.0.2.1:1992", self._clock.now)
        self.turn()

    def connect(self) -> None:
        """Accept, and answer the handshake."""
        self.accept()
        while asked := [frame for frame in self.frames if _opens(frame)]:
            self.frames.remove(asked[0])
            self.answer_handshake(asked[0])

    def refuse(self, phase: str = "tcp", cause: Exception | None = None) -> None:
        """Let the dial that the core asks for fail."""
        self.turn()
        action = self.actions.pop()
        assert isinstance(action, Connect), f"the core asked for {action}"
        error = cause or ConnectionRefusedError(111, "Connection refused")
        self._core.dial_failed([(phase, "192.0.2.1:1992", error)], self._clock.now)
        self.turn()

    def cut(self, error: Exception | None = None) -> None:
        """End the connection."""
        self.frames.clear()
        self._core.disconnected(error, self._clock.now)
        self.turn()

    def hang_up(self) -> None:
        """Do as the core says: close."""
        action = self.actions.pop()
        assert isinstance(action, Close), f"the core asked for {action}"
        self.cut()

    # Frames

    def send(self, data: bytes) -> None:
        """Let bytes arrive at the core."""
        self._core.receive_data(data, self._clock.now)
        self.turn()

    def answer_handshake(self, frame: Frame) -> None:
        """Answer a Keepalive or a question about topics as a server does."""
        if frame.kind is FrameKind.KEEPALIVE:
            self.send(encode_keepalive(self._dialect))
        elif frame.command is Command.LIST_TOPICS:
            self.control(Command.TOPIC_RESPONSE, encode_json({"topics": [self._topic.to_body()]}))
        else:
            self.control(Command.TOPIC_RESPONSE, encode_json(self._topic.to_body()))

    def control(self, command: Command, payload: bytes) -> None:
        """Send a Control frame."""
        self.send(encode_control(self._dialect, command, payload))

    def ack(self, *batch_ids: int) -> None:
        """Acknowledge batches."""
        self.send(b"".join(encode_ack(self._dialect, batch_id) for batch_id in batch_ids))

    def error(self, code: int, message: str, **details: object) -> None:
        """Send an ErrorResponse in the dialect's form."""
        self.control(
            Command.ERROR_RESPONSE, ErrorBody(code, message, details).encode(self._dialect)
        )

    def data(self, next_offset: int, data: bytes, record_count: int) -> None:
        """Answer a Fetch."""
        response = FetchResponse(next_offset, len(data), record_count, data)
        self.control(Command.FETCH_RESPONSE, response.encode())

    def take(self, kind: FrameKind) -> list[Frame]:
        """Turn, and take the frames of one kind that the core has sent."""
        self.turn()
        taken = [frame for frame in self.frames if frame.kind is kind]
        self.frames = [frame for frame in self.frames if frame.kind is not kind]
        return taken

    def settled(self) -> list[Completion]:
        """Return the outcomes announced so far."""
        return [event for event in self.events if isinstance(event, Completion)]


def _opens(frame: Frame) -> bool:
    """Whether a frame belongs to a handshake."""
    topics = {Command.LIST_TOPICS, Command.GET_TOPIC, Command.CREATE_TOPIC}
    return frame.kind is FrameKind.KEEPALIVE or (
        frame.kind is FrameKind.CONTROL and frame.command in topics
    )
