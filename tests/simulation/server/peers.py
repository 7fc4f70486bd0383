"""Peers of the server: what they send, what they are owed, and what they make of answers."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.simulation.model import Batch, State, TopicModel, ViolationError, number_at
from tests.simulation.server.network import Link

from lance_server.testing.requests import Requests
from lance_spec.bodies import decode_error, decode_json
from lance_spec.dialect import SPECIFIED
from lance_spec.enums import Command, Flag
from lance_spec.frames import Frame, FrameKind, FrameSplitter
from lance_spec.messages import lwp

if TYPE_CHECKING:
    from tests.simulation.server.clients import GoodPeers

_LARGEST: Final = 1 << 20
_HEAD: Final = 12
"""Bytes of a batch that tell which it is."""
_NEVER_STORED: Final = "Nothing was stored"


class Owed(NamedTuple):
    """An answer that a peer waits for.

    Attributes:
        what: the request, in words.
        since: when it was sent.
        commands: the commands that may answer it.
        judge: judges an answer; raises `ViolationError` where it is not an answer to this.
        batch: the batch that it is about, if it is.
        lost: called when the answer will never come.
    """

    what: str
    since: float
    commands: tuple[int, ...]
    judge: Callable[[Frame], None]
    batch: Batch | None = None
    lost: Callable[[], None] = lambda: None


@dataclass(eq=False)
class Peer:
    """One end of a connection that is not the server's.

    Attributes:
        run: what it lives in.
        number: which it is.
        link: its connection, while there is one.
        reads: whether it reads what it is sent.
        error: what the server said before it closed the connection.
        corked: whether what is sent is kept until `uncork`.
    """

    run: "GoodPeers"
    number: int
    link: Link | None = None
    reads: bool = True
    error: str = ""
    corked: bool = False
    left: bytearray = field(default_factory=bytearray)
    """Bytes that the connection has not taken."""
    ending: bool = False
    """Whether it ends its side once these have left."""

    @property
    def nonsense(self) -> bool:
        """Whether it sent what cannot be answered."""
        return False

    @property
    def name(self) -> str:
        """What it is called."""
        return f"peer {self.number}"

    def connect(self, link: Link) -> None:
        """Begin to use a connection."""
        self.link, self.error, self.ending = link, "", False
        self.left.clear()
        link.to_peer.on_news = lambda: self._on_news(link)
        link.to_server.on_room = lambda: self._push(link)
        self.began()

    def began(self) -> None:
        """Send what comes first."""

    def send(self, *parts: bytes) -> None:
        """Send bytes, as soon as the connection takes them."""
        link = self.link
        if link is not None:
            self.left += b"".join(parts)
            if not self.corked:
                self._push(link)

    def uncork(self) -> None:
        """Send what was kept, at once."""
        self.corked = False
        self.send()

    def _push(self, link: Link) -> None:
        if link is self.link and self.left:
            del self.left[: link.to_server.send(self.left)]
        if link is self.link and self.ending and not self.left:
            self.ending = False
            link.to_server.end()

    def end(self) -> None:
        """End this side of the connection, behind what was sent."""
        if self.link is not None:
            self.ending = True
            self._push(self.link)

    def read_again(self) -> None:
        """Begin to read again."""
        self.reads = True
        if self.link is not None:
            self._on_news(self.link)

    def _on_news(self, link: Link) -> None:
        if link is not self.link or not self.reads:
            return
        pipe = link.to_peer
        try:
            while pipe.data and link is self.link:
                self.receive(pipe.read(_LARGEST))
        except ViolationError as error:
            self.run.trouble.append(error)
            return
        if pipe.ended and link is self.link:
            link.close()
            self.lose()

    def receive(self, data: bytes) -> None:
        """Take bytes."""
        raise NotImplementedError

    def lose(self) -> None:
        """Note that the connection is gone, and with it what was owed."""
        self.link = None

    def waits_since(self) -> tuple[float, str] | None:
        """Return since when the oldest request waits, and which it is."""
        raise NotImplementedError


class LwpPeer(Peer, Requests):
    """A client of LWP.

    Args:
        run: what it lives in.
        number: which it is.

    Attributes:
        owed: what it waits for, in order.
        consumer: the id that it commits under.
        unanswered: batches that it does not know the fate of.
    """

    dialect = SPECIFIED

    def __init__(self, run: "GoodPeers", number: int) -> None:
        super().__init__(run, number)
        self.owed: deque[Owed] = deque()
        self.consumer = 100 + number
        self.unanswered: dict[int, tuple[TopicModel, Batch]] = {}
        self._splitter = FrameSplitter((SPECIFIED,), max_payload=_LARGEST)
        self._keepalives = 0
        self._alive_since = 0.0
        self._nonsense = False
        self._pushed: dict[int, int | None] = {}
        """By topic that is subscribed to the offset of the next push, once it is known."""

    def connect(self, link: Link) -> None:
        """Begin to use a connection."""
        self._splitter = FrameSplitter((SPECIFIED,), max_payload=_LARGEST)
        self._keepalives, self._nonsense = 0, False
        self._pushed.clear()
        super().connect(link)

    @property
    def nonsense(self) -> bool:
        """Whether it sent what cannot be answered."""
        return self._nonsense

    def lose(self) -> None:
        """Note that the connection is gone."""
        super().lose()
        self._keepalives = 0
        owed, self.owed = self.owed, deque()
        for each in owed:
            each.lost()
        self.run.lost(self)

    def waits_since(self) -> tuple[float, str] | None:
        """Return since when the oldest request waits, and which it is."""
        if not self.owed and self._keepalives:
            return self._alive_since, f"{self.name}: {self._keepalives} keepalives"
        return (self.owed[0].since, self.owed[0].what) if self.owed else None

    # Requests --------------------------------------------------------------------------------

    def ask(
        self,
        what: str,
        frame: bytes,
        commands: tuple[int, ...],
        judge: Callable[[Frame], None],
        *,
        batch: Batch | None = None,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a request that is owed an answer."""
        if self.link is None:
            lost()
            return
        if not self._nonsense:
            owed = Owed(f"{self.name}: {what}", self.run.world.now, commands, judge, batch, lost)
            self.owed.append(owed)
        else:
            lost()
        self.send(frame)

    def append(self, model: TopicModel, batch: Batch) -> None:
        """Send a batch."""
        batch.waits += 1
        self.unanswered[batch.number] = model, batch
        if batch.state in {State.ABSENT, State.REFUSED}:
            batch.state = State.SENT
        frame = self.raw_ingest(
            batch.raw,
            batch.id,
            count=batch.records,
            topic_id=model.id or 0,
            timestamp_ns=1 + batch.number,
            flags=Flag.BATCH_MODE,
        )

        def judge(answer: Frame) -> None:
            if answer.kind is FrameKind.ACK:
                if answer.batch_id != batch.id:
                    raise ViolationError(
                        f"{self.name}: batch id {answer.batch_id} is acknowledged "
                        f"where {batch} ({batch.id}) is the next"
                    )
                self.run.result.acknowledged += 1
                del self.unanswered[batch.number]
                model.settle(batch, State.ACKED)
                return
            message = self._judge_refusal(answer, batch)
            del self.unanswered[batch.number]
            never = message.startswith(_NEVER_STORED)
            model.settle(batch, State.REFUSED if never else State.UNKNOWN)

        def lost() -> None:
            model.settle(batch, State.UNKNOWN)

        self.ask(f"append {batch.number}", frame, (), judge, batch=batch, lost=lost)

    def _judge_refusal(self, answer: Frame, batch: Batch | None) -> str:
        """Judge an ErrorResponse; return what it says."""
        body = decode_error(answer.payload)
        about = body.details.get("batch_id")
        if about != (None if batch is None else batch.id):
            raise ViolationError(f"{self.name}: a refusal of batch {about} where {batch} waits")
        self.run.refused(self, body.message)
        return body.message

    def control_for(
        self,
        what: str,
        command: int,
        payload: bytes,
        answers: tuple[int, ...],
        judge: Callable[[Frame], None],
    ) -> None:
        """Send a command."""

        def judge_any(answer: Frame) -> None:
            if answer.command == Command.ERROR_RESPONSE:
                self._judge_refusal(answer, None)
            else:
                judge(answer)

        self.ask(what, self.control(command, payload), answers, judge_any)

    def fetch(self, model: TopicModel, start: int, size: int) -> None:
        """Fetch from an offset on."""

        def judge(answer: Frame) -> None:
            if answer.command == Command.CATCHING_UP:
                return
            message = lwp.FetchResponse.decode(answer.payload)
            if message.next_offset - message.bytes_returned != start:
                raise ViolationError(
                    f"{self.name}: a fetch at {start} of {model.name} is answered with "
                    f"{message.bytes_returned} bytes up to {message.next_offset}"
                )
            self.run.judge_data(model, start, bytes(message.data))

        payload = lwp.Fetch(model.id or 0, start, size).encode()
        answers = Command.FETCH_RESPONSE, Command.CATCHING_UP
        self.control_for(f"fetch {model.name} at {start}", Command.FETCH, payload, answers, judge)

    def get_topic(self, model: TopicModel) -> None:
        """Ask for a topic."""

        def judge(answer: Frame) -> None:
            body = decode_json(answer.payload, "answer")
            if (body.get("id"), body.get("name")) != (model.id, model.name):
                raise ViolationError(f"{self.name}: asked for {model.name}, got {body}")

        payload = lwp.GetTopic(model.id or 0).encode()
        answers = (Command.TOPIC_RESPONSE,)
        self.control_for(f"get {model.name}", Command.GET_TOPIC, payload, answers, judge)

    def create(self, model: TopicModel) -> None:
        """Create a topic."""

        def judge(answer: Frame) -> None:
            body = decode_json(answer.payload, "answer")
            if body.get("name") != model.name:
                raise ViolationError(f"{self.name}: created {model.name}, got {body}")
            self.run.created(model, int(str(body["id"])))

        answers = (Command.TOPIC_RESPONSE,)
        name = model.name.encode()
        self.control_for(f"create {model.name}", Command.CREATE_TOPIC, name, answers, judge)

    def list_topics(self) -> None:
        """Ask for all topics."""

        def judge(answer: Frame) -> None:
            if "topics" not in decode_json(answer.payload, "answer"):
                raise ViolationError(f"{self.name}: asked for a list, got {answer}")

        answers = (Command.TOPIC_RESPONSE,)
        self.control_for("list", Command.LIST_TOPICS, b"", answers, judge)

    def commit(self, model: TopicModel, offset: int) -> None:
        """Commit an offset."""

        def judge(answer: Frame) -> None:
            message = lwp.CommitAck.decode(answer.payload)
            if (message.consumer_id, message.offset) != (self.consumer, offset):
                raise ViolationError(f"{self.name}: committed {offset}, got {message}")
            self.run.committed(model, self.consumer, offset)

        model.commits.setdefault(self.consumer, [None]).append(offset)
        payload = lwp.CommitOffset(model.id or 0, self.consumer, offset).encode()
        self.control_for(
            f"commit {offset}", Command.COMMIT_OFFSET, payload, (Command.COMMIT_ACK,), judge
        )

    def seek(self, model: TopicModel, time_ns: int) -> None:
        """Look an offset up by its time."""
        payload = lwp.OffsetForTime(model.id or 0, time_ns).encode()
        answers = (Command.OFFSET_FOR_TIME_RESPONSE,)
        self.control_for("seek", Command.OFFSET_FOR_TIME, payload, answers, lambda _: None)

    def subscribe(self, model: TopicModel, size: int) -> None:
        """Subscribe to a topic from its begin on."""
        topic_id = model.id or 0

        def judge(answer: Frame) -> None:
            message = lwp.SubscribeAck.decode(answer.payload)
            if message.consumer_id != self.consumer:
                raise ViolationError(f"{self.name}: subscribed as {self.consumer}, got {message}")
            self._pushed[topic_id] = message.offset

        payload = lwp.Subscribe(topic_id, 0, size, self.consumer).encode()
        answers = (Command.SUBSCRIBE_ACK,)
        self.control_for(f"subscribe {model.name}", Command.SUBSCRIBE, payload, answers, judge)

    def unsubscribe(self, model: TopicModel) -> None:
        """Unsubscribe from a topic."""
        topic_id = model.id or 0

        def judge(answer: Frame) -> None:
            if answer.kind is FrameKind.ACK and answer.batch_id == self.consumer:
                self._pushed.pop(topic_id, None)
            elif answer.kind is FrameKind.ACK:
                raise ViolationError(f"{self.name}: unsubscribed, got {answer}")
            else:
                self._judge_refusal(answer, None)

        payload = lwp.Unsubscribe(topic_id, self.consumer).encode()
        frame = self.control(Command.UNSUBSCRIBE, payload)
        self.ask(f"unsubscribe {model.name}", frame, (), judge)

    def ask_alive(self) -> None:
        """Send a keepalive."""
        if self.link is not None:
            self._keepalives += 1
            self._alive_since = self.run.world.now
            self.send(self.keepalive())

    def authenticate(self) -> None:
        """Present a token."""
        answers = (Command.AUTHENTICATE_RESPONSE,)
        self.control_for("token", Command.AUTHENTICATE, b"token", answers, lambda _: None)

    def babble(self, data: bytes) -> None:
        """Send what is not a frame, or a part of one: what it is owed from here on is open."""
        self._nonsense = True
        self.send(data)

    # Answers ---------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take bytes, and judge the frames in them."""
        for frame in self._splitter.receive_data(data):
            self._take(frame)
        if self._splitter.fault is not None:
            raise ViolationError(f"{self.name} got no frame: {self._splitter.fault}")

    def _take(self, frame: Frame) -> None:
        kind = frame.kind
        if self.error:
            raise ViolationError(f"{self.name}: {frame} comes after the last word: {self.error}")
        if kind is FrameKind.BACKPRESSURE:
            return
        if kind is FrameKind.KEEPALIVE:
            self._keepalives -= 1
            if self._keepalives < 0:
                raise ViolationError(f"{self.name}: more keepalives come than were sent")
            return
        head = self.owed[0] if self.owed else None
        if head is not None and self._answers(head, frame):
            self.owed.popleft()
            head.judge(frame)
            self.run.result.answers += 1
        elif kind is FrameKind.CONTROL and frame.command == Command.FETCH_RESPONSE:
            self._take_push(frame)
        elif kind is FrameKind.CONTROL and frame.command == Command.ERROR_RESPONSE:
            self._take_notice(frame)
        else:
            raise ViolationError(
                f"{self.name}: {_shown(frame)} comes where {head and head.what} is owed"
            )

    def _answers(self, head: Owed, frame: Frame) -> bool:
        """Whether a frame answers a request, rightly or not."""
        if frame.kind is FrameKind.ACK:
            return not head.commands
        if frame.kind is not FrameKind.CONTROL:
            return False
        if frame.command == Command.ERROR_RESPONSE:
            details = decode_error(frame.payload).details
            if "batch_id" in details:
                return True
            # a word about a subscription, or the last one of a connection
            return head.batch is None and details.get("topic_id") not in self._pushed
        return frame.command in head.commands

    def _take_push(self, frame: Frame) -> None:
        offset = self._pushed.get(frame.topic_id)
        if offset is None:
            raise ViolationError(f"{self.name}: {_shown(frame)} was not asked for")
        message = lwp.FetchResponse.decode(frame.payload)
        start = message.next_offset - message.bytes_returned
        model = self.run.topics[frame.topic_id]
        if start != offset and not self.run.may_be_hole(model, offset, start):
            raise ViolationError(f"{self.name}: a push begins at {start}, and not at {offset}")
        self._pushed[frame.topic_id] = message.next_offset
        self.run.judge_data(model, start, bytes(message.data))
        self.run.result.answers += 1

    def _take_notice(self, frame: Frame) -> None:
        """Take an error that answers nothing: a subscription ends, or the connection does."""
        body = decode_error(frame.payload)
        topic_id = body.details.get("topic_id")
        if isinstance(topic_id, int) and topic_id in self._pushed:
            del self._pushed[topic_id]
            self.run.refused(self, body.message)
            return
        if body.details.get("batch_id") is not None and not self._nonsense:
            raise ViolationError(f"{self.name}: {body} is about nothing that was sent")
        self.error = body.message


def _shown(frame: Frame) -> str:
    command: Any = frame.command if frame.kind is FrameKind.CONTROL else frame.batch_id
    return f"{frame.kind.name} {command!r}"


def batches_in(model: TopicModel, start: int, data: bytes) -> dict[int, Batch]:
    """Return the batches that data consists of, by offset; it may begin and end inside one.

    Raises:
        ViolationError: it holds what nobody sent there.
    """
    found: dict[int, Batch] = {}
    position = 0
    while position < len(data):
        rest = data[position:]
        number = number_at(data, position)
        batch, before = (None, 0) if number is None else (model.batches.get(number), 0)
        if number is None:
            batch, before = _begun(model, start + position, rest)
        if batch is None and len(rest) < _HEAD:
            break  # too little to tell
        if batch is None or not _agree(batch.raw[before:], rest):
            raise ViolationError(f"{model.name}: at {start + position} stands {rest[:24]!r}")
        found[start + position - before] = batch
        position += len(batch.raw) - before
    return found


def _agree(one: bytes, other: bytes) -> bool:
    return one.startswith(other) or other.startswith(one)


def _begun(model: TopicModel, offset: int, rest: bytes) -> tuple[Batch | None, int]:
    """Return the batch that an offset lies inside of, and how many of its bytes are before."""
    place = max((place for place in model.taken if place < offset), default=None)
    if place is not None:
        batch = model.batches[model.taken[place]]
        if offset < place + len(batch.raw):
            return batch, offset - place
    for batch in model.batches.values():  # one of which too little was read to know it
        for before in range(1, _HEAD):
            if batch.place in {None, offset - before} and _agree(batch.raw[before:], rest):
                return batch, before
    return None, 0
