"""Writing once to a server that states no duplicate window: looking what it has already.

The manifest notes where each topic ended before the first frame was sent. A repetition reads on
from there, finds the frames that arrived, byte for byte and in order, and sends the others. So
frames are sent one at a time, and never a second time by the sender itself: after a lost
connection only a look tells whether the last one arrived.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from lance_sdk import Client
from lance_sdk.errors import TopicNotFound
from lance_sdk.spark.logs.server_calls import batches_of, open_consumer
from lance_sdk.spark.logs.server_log import ServerLog
from lance_sdk.spark.options import Options
from lance_sdk.spark.rows.encoding import Frame
from lance_sdk.spark.writing.sending import FrameSender
from lance_spec.limits import RECORD_HEADER_SIZE
from lance_spec.records import record_bounds

_BOUND_SIZE: Final = 8
"""Bytes of a place in what `record_bounds` returns."""


class StrictSender(FrameSender):
    """Sends one frame at a time, each at most once.

    Args:
        options: of the query.
        topic: the topic's name.
    """

    def __init__(self, options: Options, topic: str) -> None:
        super().__init__(options, topic, repeats=False)

    def send_frame(self, frame: Frame, *, batch_id: int = 0, timestamp_ns: int = 0) -> None:
        """Send a frame and wait for its acknowledgement.

        Raises:
            DeliveryError: it did not come; the server may have stored the frame all the same.
        """
        super().send_frame(frame, batch_id=batch_id, timestamp_ns=timestamp_ns)
        self.finish()


def ends_of(options: Options, topics: Iterable[str]) -> dict[str, int]:
    """Return where topics end now; those that do not exist are created where that was asked for.

    Raises:
        TopicNotFound: one does not exist.
    """
    found = {}
    for topic in topics:
        alone = replace(options, topics=(topic,), topics_pattern=None)
        try:
            (view,) = ServerLog(alone).look()
        except TopicNotFound:
            if not options.create_topic:
                raise
            with Client(options.url(), **options.client_options()) as client:
                client.create_topic(topic, exist_ok=True)
            (view,) = ServerLog(alone).look()
        found[topic] = view.end
    return found


def missing(options: Options, ends: Mapping[str, int], frames: Iterable[Frame]) -> set[int]:
    """Return the places of the frames that are not in the log.

    Args:
        options: of the query.
        ends: where each topic ended before the first of them was sent.
        frames: all of them, in the order in which they are sent.
    """
    by_topic: dict[str, list[tuple[int, Frame]]] = {}
    for place, frame in enumerate(frames):
        by_topic.setdefault(frame.topic, []).append((place, frame))
    found: set[int] = set()
    for topic, numbered in by_topic.items():
        with open_consumer(options, topic, ends[topic]) as consumer:
            data = (batch.data for batch in batches_of(consumer, options))
            arrived = count_arrived(data, (frame for _, frame in numbered))
        found.update(place for place, _ in numbered[arrived:])
    return found


def batches_since(options: Options, topic: str, end: int, frames: Iterable[Frame]) -> "Since":
    """Return what a topic got since some of the frames may have been sent.

    Args:
        options: of the query.
        topic: the topic.
        end: where it ended before the first of them was sent.
        frames: those that go there, in the order in which they are sent.
    """
    with open_consumer(options, topic, end) as consumer:
        return compare((batch.data for batch in batches_of(consumer, options)), frames)


@dataclass(frozen=True, slots=True)
class Since:
    """What a log got.

    Attributes:
        arrived: frames, from the first on, that stand in it in their order.
        others: records that belong to none of those; each may have been a batch.
        complete: whether all of the frames arrived.
    """

    arrived: int
    others: int
    complete: bool


def count_arrived(data: Iterable[bytes], frames: Iterable[Frame]) -> int:
    """Return how many of the frames, from the first on, stand in a log in their order."""
    return compare(data, frames).arrived


def compare(data: Iterable[bytes], frames: Iterable[Frame]) -> Since:
    """Look for frames in a log.

    Args:
        data: the log from where the first one can be, as runs of whole records; what others
            have written may stand between the frames.
        frames: the frames.
    """
    wanted = iter(frames)
    frame, arrived, others, held = next(wanted, None), 0, 0, b""
    for run in data:
        held += run
        position = 0
        while position < len(held):
            payload = b"" if frame is None else frame.payload
            if payload and held.startswith(payload, position):
                position += len(payload)
                arrived += 1
                frame = next(wanted, None)
            elif payload and payload.startswith(held[position : position + len(payload)]):
                break  # the rest of it comes with the next run
            else:
                position = _behind(held, position)
                others += 1
        held = held[position:]
    if held:  # the beginning of a frame whose rest did not come
        others += len(record_bounds(held)) // _BOUND_SIZE - 1
    return Since(arrived, others, frame is None)


def _behind(data: bytes, position: int) -> int:
    """Return where the record at a place ends."""
    length = int.from_bytes(data[position + 1 : position + RECORD_HEADER_SIZE], "little")
    return position + RECORD_HEADER_SIZE + length


def send_missing(options: Options, frames: Iterator[Frame], places: set[int] | None) -> None:
    """Send frames one at a time.

    Args:
        options: of the query.
        frames: all of them.
        places: those to send; None means all.

    Raises:
        DeliveryError: one was not acknowledged; the next look tells whether it arrived.
    """
    senders: dict[str, StrictSender] = {}
    try:
        for place, frame in enumerate(frames):
            if places is not None and place not in places:
                continue
            if frame.topic not in senders:
                senders[frame.topic] = StrictSender(options, frame.topic)
                senders[frame.topic].open()
            senders[frame.topic].send_frame(frame)
    finally:
        for sender in senders.values():
            sender.close(0)
