"""What the kit may delete: its own topics, and nothing that is not confirmed to be one."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from lance_conformance.engine.expectations import Closed
from lance_conformance.server.expect import Event
from lance_conformance.server.own_topics import OwnTopics
from lance_conformance.server.peer import Peer
from lance_conformance.wire.control import control, delete_topic, get_topic
from lance_conformance.wire.frame import Command, Frame

OURS = "lance-conformance-run1-"


def topic(topic_id: object, name: object) -> Frame:
    """A TopicResponse about this topic."""
    return control(Command.TOPIC_RESPONSE, json.dumps({"id": topic_id, "name": name}).encode())


class FakePeer(Peer):
    """A peer that answers from a list and remembers what it was asked."""

    def __init__(self, answers: Sequence[Event]) -> None:
        self._answers = list(answers)
        self.sent: list[Frame] = []

    def send(self, *frames: Frame) -> None:
        """Remember."""
        self.sent += frames

    async def receive_any(self) -> Event:
        """Answer."""
        return self._answers.pop(0)


def deleted(adopted: Sequence[Frame], *answers: Event) -> list[Frame]:
    """What is sent to remove the topics that these frames speak of."""
    topics = OwnTopics(OURS)
    for frame in adopted:
        topics.adopt(frame)
    peer = FakePeer(answers)
    asyncio.run(topics.delete(peer))
    return peer.sent


def test_a_topic_of_this_run_is_deleted_once_it_is_confirmed() -> None:
    """GetTopic first, DeleteTopic then."""
    own = topic(7, f"{OURS}x")
    assert deleted([own], own, topic(7, "gone")) == [get_topic(7), delete_topic(7)]


@pytest.mark.parametrize(
    "answer",
    [
        topic(7, "orders"),
        topic(8, f"{OURS}x"),
        topic(7, "lance-conformance-run2-x"),
        control(Command.ERROR_RESPONSE, b"not found"),
        Closed("fin"),
    ],
)
def test_what_is_not_confirmed_stays(answer: Event) -> None:
    """Another name, another id, another run, an error or a close: nothing is deleted."""
    assert deleted([topic(7, f"{OURS}x")], answer) == [get_topic(7)]


@pytest.mark.parametrize(
    "frame",
    [
        topic(7, "orders"),
        topic(7, None),
        topic(0, f"{OURS}x"),
        topic("7", f"{OURS}x"),
        topic(2**32, f"{OURS}x"),
        control(Command.ERROR_RESPONSE, b"{}"),
        control(Command.TOPIC_RESPONSE, b"no json"),
    ],
)
def test_only_topics_of_this_run_are_remembered(frame: Frame) -> None:
    """Other names and odd ids are nobody's business."""
    assert deleted([frame]) == []


def test_each_topic_is_asked_about_by_itself() -> None:
    """One that is gone already does not keep the next one."""
    first, second = topic(1, f"{OURS}a"), topic(2, f"{OURS}b")
    gone = control(Command.ERROR_RESPONSE, b"not found")
    sent = deleted([second, first, second], gone, second, second)
    assert sent == [get_topic(1), get_topic(2), delete_topic(2)]
