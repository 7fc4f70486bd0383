"""Clients, on three clients: topics, retention, status, ping."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lance_sdk.errors import (
    ClosedError,
    ConnectionLost,
    DeadlineExceeded,
    LocalProtocolError,
    NotOpenError,
    RemoteProtocolError,
    ServerError,
    TopicAlreadyExists,
    TopicNotFound,
    Unsupported,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_sdk.types import BatchTimes
from lance_spec.bodies import encode_json
from lance_spec.enums import Command
from lance_spec.frames import Frame
from lance_spec.messages.lwp import CreateTopicWithRetention, SetRetention
from lance_spec.records import encode_record

pytestmark = pytest.mark.anyio


async def test_topics_are_created_listed_found_and_deleted(api: Any, server: FakeServer) -> None:
    """By name and by number (LWP section 5)."""
    async with api.client(server.url()) as client:
        created = await client.create_topic("events")
        assert (created.id, created.name) == (2, "events")
        assert [topic.name for topic in await client.list_topics()] == ["events", "orders"]
        assert await client.get_topic("events") == created
        assert await client.get_topic(2) == created
        await client.delete_topic("events")
        await client.delete_topic(1)
        assert await client.list_topics() == []


async def test_creating_twice_raises_unless_it_is_allowed(api: Any, server: FakeServer) -> None:
    """exist_ok returns the topic that is there."""
    async with api.client(server.url()) as client:
        with pytest.raises(TopicAlreadyExists):
            await client.create_topic("orders")
        assert (await client.create_topic("orders", exist_ok=True)).id == 1


async def test_a_topic_that_somebody_is_creating_is_waited_for(
    api: Any, server: FakeServer
) -> None:
    """exist_ok: a server may refuse the name before it lists the topic."""
    unlisted = [b'{"topics":[]}'] * 3

    def hide(peer: FakePeer, frame: Frame) -> bool:
        hidden = frame.command is Command.LIST_TOPICS and bool(unlisted)
        if hidden:
            peer.control(Command.TOPIC_RESPONSE, unlisted.pop())
        return hidden

    server.on_control = hide
    async with api.client(server.url()) as client:
        assert (await client.create_topic("orders", exist_ok=True)).id == 1
    assert not unlisted


async def test_a_topic_that_is_not_there(api: Any, server: FakeServer) -> None:
    """By name the message says how to create it."""
    async with api.client(server.url()) as client:
        with pytest.raises(TopicNotFound, match="lwp topics create absent"):
            await client.get_topic("absent")
        with pytest.raises(TopicNotFound):
            await client.delete_topic("absent")
        with pytest.raises(TopicNotFound):
            await client.get_topic(77)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\nb", "x" * 256])
async def test_a_name_that_no_topic_may_have_is_not_sent(
    api: Any, server: FakeServer, name: str
) -> None:
    """AMB-24, before the server is asked."""
    async with api.client(server.url()) as client:
        with pytest.raises(LocalProtocolError, match="topic name"):
            await client.create_topic(name)
        with pytest.raises(TypeError, match="must be text, not int"):
            await client.create_topic(5)
    assert "CREATE_TOPIC" not in server.frames


async def test_a_deployed_server_takes_plain_names_only(api: Any, deployed: FakeServer) -> None:
    """Letters, digits and dashes (AMB-24)."""
    async with api.client(deployed.url()) as client:
        with pytest.raises(LocalProtocolError, match="only letters"):
            await client.create_topic("with_underscore")
        assert (await client.create_topic("with-dash")).name == "with-dash"


async def test_retention_is_set_on_creation_and_later(api: Any, server: FakeServer) -> None:
    """0 means no limit to a server that reads LWP (AMB-08)."""
    asked = capture(server)
    async with api.client(server.url()) as client:
        await client.create_topic("kept", max_age_secs=60)
        await client.set_retention(1, max_bytes=1000)
    assert CreateTopicWithRetention.decode(asked[0]) == CreateTopicWithRetention(b"kept", 60, 0)
    assert SetRetention.decode(asked[1]) == SetRetention(1, 0, 1000)


async def test_no_limit_is_never_zero_to_a_deployed_server(api: Any, deployed: FakeServer) -> None:
    """There 0 deletes the data (AMB-08)."""
    asked = capture(deployed)
    async with api.client(deployed.url()) as client:
        await client.set_retention(1)
        await client.set_retention(1, max_age_secs=60)
    for payload, age in zip(asked, (18_446_744_073, 60), strict=True):
        assert SetRetention.decode(payload) == SetRetention(1, age, 2**63 - 1)


def capture(server: FakeServer) -> list[bytes]:
    """Answer every retention command, and collect what was asked."""
    asked: list[bytes] = []

    def answer(peer: FakePeer, frame: Frame) -> bool:
        if frame.command not in {Command.SET_RETENTION, Command.CREATE_TOPIC_WITH_RETENTION}:
            return False
        asked.append(bytes(frame.payload))
        body = {"id": 9, "name": "kept", "created_at": 1}
        peer.control(Command.TOPIC_RESPONSE, encode_json(body))
        return True

    server.on_control = answer
    return asked


async def test_the_offset_of_a_time_is_found(api: Any, server: FakeServer) -> None:
    """By the server's clock, as a time or in nanoseconds; after all records it is the end."""
    for second in (10, 20):
        server.topics.clock_ns = lambda second=second: second * 10**9
        server.topics.append(1, encode_record(b"abc"))
    async with api.client(server.url()) as client:
        assert await client.offset_for_time("orders", datetime.fromtimestamp(11, UTC)) == 8
        assert await client.offset_for_time(1, 10 * 10**9) == 0
        assert await client.offset_for_time(1, 21 * 10**9) == 16


async def test_a_server_without_times_says_so(api: Any, deployed: FakeServer) -> None:
    """The command is an extension (AMB-37)."""
    async with api.client(deployed.url()) as client:
        with pytest.raises(Unsupported, match="cannot find an offset by its time"):
            await client.offset_for_time(1, 0)


async def test_the_times_of_batches_are_told(api: Any, server: FakeServer) -> None:
    """Of those that have bytes in the range (AMB-61)."""
    for second in (10, 20, 30):
        server.topics.clock_ns = lambda second=second: second * 10**9
        server.topics.append(1, encode_record(b"abc"))
    async with api.client(server.url()) as client:
        found = await client.batch_times("orders", 9, 17)
    assert found == BatchTimes((8, 16), (20 * 10**9, 30 * 10**9), 17)


async def test_a_server_that_tells_no_times_of_batches_says_so(
    api: Any, deployed: FakeServer
) -> None:
    """The command is an extension (AMB-61)."""
    async with api.client(deployed.url()) as client:
        with pytest.raises(Unsupported, match="cannot tell when batches were stored"):
            await client.batch_times(1, 0, 8)


async def test_ping_measures_a_round_trip(api: Any, server: FakeServer) -> None:
    """In seconds; the same number is in stats()."""
    async with api.client(server.url()) as client:
        rtt = await client.ping()
        assert 0 < rtt < 10
        assert client.stats().rtt == rtt


async def test_cluster_status(api: Any, server: FakeServer) -> None:
    """What the server says of itself, whole (AMB-11)."""
    async with api.client(server.url()) as client:
        status = await client.cluster_status()
    assert (status.is_leader, status.node_count) == (True, 1)
    assert status.dedup_window is None


async def test_a_question_that_does_no_harm_survives_a_lost_connection(
    api: Any, server: FakeServer
) -> None:
    """It is asked again."""

    def drop_once(peer: FakePeer, frame: Frame) -> bool:
        if peer.number > 1 or frame.command is not Command.LIST_TOPICS:
            return False
        peer.close()
        return True

    server.on_control = drop_once
    async with api.client(server.url()) as client:
        assert len(await client.list_topics()) == 1
    assert server.accepted == 2


async def test_a_command_that_may_have_been_carried_out_is_not_repeated(
    api: Any, server: FakeServer
) -> None:
    """The error says that nobody knows."""

    def drop(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.CREATE_TOPIC:
            return False
        peer.close()
        return True

    server.on_control = drop
    async with api.client(server.url()) as client:
        with pytest.raises(ConnectionLost) as caught:
            await client.create_topic("new")
    assert caught.value.maybe_applied
    assert server.frames.count("CREATE_TOPIC") == 1


async def test_no_answer_is_an_error_in_time(api: Any, server: FakeServer) -> None:
    """request_timeout bounds every call."""

    def silent(_peer: FakePeer, frame: Frame) -> bool:
        return frame.command is Command.LIST_TOPICS

    server.on_control = silent
    async with api.client(server.url(), request_timeout=0.05) as client:
        with pytest.raises((DeadlineExceeded, ConnectionLost)):
            await client.list_topics()


async def test_an_answer_that_is_no_answer_is_the_servers_fault(
    api: Any, server: FakeServer
) -> None:
    """JSON that is none, fields that are missing: named, and the client goes on."""

    def nonsense(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.LIST_TOPICS:
            return False
        peer.control(Command.TOPIC_RESPONSE, b'{"topics": [{"id": "x"}]}')
        return True

    server.on_control = nonsense
    async with api.client(server.url()) as client:
        with pytest.raises(RemoteProtocolError, match=r"TopicResponse\.id"):
            await client.list_topics()
        assert await client.ping() > 0


async def test_an_answer_about_another_topic_is_no_success(api: Any, server: FakeServer) -> None:
    """DeleteTopic and SetRetention believe what is told of the topic they named."""

    def mistake(peer: FakePeer, frame: Frame) -> bool:
        mistaken = frame.command in (Command.DELETE_TOPIC, Command.SET_RETENTION)
        if mistaken:
            peer.control(Command.TOPIC_RESPONSE, b'{"deleted":9,"topic_id":9}')
        return mistaken

    server.on_control = mistake
    async with api.client(server.url()) as client:
        with pytest.raises(RemoteProtocolError, match=r"TopicResponse\.deleted"):
            await client.delete_topic(1)
        with pytest.raises(RemoteProtocolError, match=r"TopicResponse\.topic_id"):
            await client.set_retention(1, max_age_secs=60, max_bytes=1 << 20)


async def test_an_unlisted_error_code_is_still_an_error(api: Any, server: FakeServer) -> None:
    """As a plain ServerError with its number."""

    def odd(peer: FakePeer, frame: Frame) -> bool:
        if frame.command is not Command.LIST_TOPICS:
            return False
        peer.error(0x77, "what is this")
        return True

    server.on_control = odd
    async with api.client(server.url()) as client:
        with pytest.raises(ServerError, match=r"what is this\. \(Code 0x77\)") as caught:
            await client.list_topics()
    assert type(caught.value) is ServerError


async def test_use_before_open_and_after_close_is_refused(api: Any, server: FakeServer) -> None:
    """With an error, never with a hang."""
    client = api.client(server.url())
    with pytest.raises(NotOpenError):
        await client.ping()
    async with client:
        await client.ping()
    with pytest.raises(ClosedError):
        await client.ping()
