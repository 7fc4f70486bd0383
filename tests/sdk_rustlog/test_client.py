"""What a program does with a broker, on all clients."""

from typing import Any

import pytest

from lance_sdk.errors import ClosedError, LocalProtocolError, RecordTooLarge, Unsupported
from lance_sdk.rustlog import (
    NoSuchPartition,
    RustlogBatch,
    RustlogError,
    RustlogRecord,
    StoredRecords,
    TopicExists,
)

from .conftest import Client

pytestmark = pytest.mark.anyio


async def test_records_come_back_with_their_offsets(client: Client) -> None:
    """As they went in."""
    assert await client.produce("demo", [b"a", b"b"]) == StoredRecords(base_offset=0, count=2)
    batch = await client.fetch("demo")
    assert batch == RustlogBatch((RustlogRecord(0, b"a"), RustlogRecord(1, b"b")), 2)


async def test_partitions_are_told_apart(client: Client) -> None:
    """By their number."""
    await client.produce("demo", [b"a"], partition=1)
    assert not await client.fetch("demo")
    assert (await client.fetch("demo", partition=1)).records[0].value == b"a"


async def test_json_says_the_same(client: Client, in_json: Client) -> None:
    """What one dialect writes the other reads."""
    assert await in_json.produce("demo", [b"a", b"", b"\xff"]) == StoredRecords(0, 3)
    assert await in_json.fetch("demo", 1) == await client.fetch("demo", 1)


@pytest.mark.parametrize("max_bytes", [1, 1000])
async def test_all_records_to_the_end_are_fetched_as_needed(client: Client, max_bytes: int) -> None:
    """However many requests it takes."""
    await client.produce("demo", [b"%d" % number for number in range(50)])
    found = [record async for record in client.records("demo", 3, max_bytes=max_bytes)]
    assert [record.offset for record in found] == list(range(3, 50))
    assert found[-1].value == b"49"


async def test_a_group_goes_on_where_it_committed(client: Client) -> None:
    """In the binary dialect, wherever it asks."""
    await client.produce("demo", [b"a", b"b"])
    assert await client.committed("g", "demo") is None
    await client.commit("g", "demo", 1)
    assert await client.committed("g", "demo") == 1
    assert (await client.fetch("demo", group="g")).records == (RustlogRecord(1, b"b"),)


async def test_a_group_in_json_begins_where_it_asks(client: Client, in_json: Client) -> None:
    """While nothing is committed; in binary it gets nothing."""
    await client.produce("demo", [b"a", b"b"])
    assert (await in_json.fetch("demo", 1, group="g")).records == (RustlogRecord(1, b"b"),)
    assert not await client.fetch("demo", 1, group="g")


async def test_topics_are_told(client: Client) -> None:
    """With their partitions, and where these end."""
    await client.produce("demo", [b"a"], partition=1)
    assert await client.topics() == {"demo": 2}
    assert await client.describe_topic("demo") == {0: 0, 1: 1}
    assert await client.describe_partition("demo", 1) == 1


async def test_the_broker_is_asked_about_itself(client: Client) -> None:
    """Whether it is there, and what it counts."""
    await client.ping()
    assert "messages_produced" in await client.metrics()


async def test_a_topic_that_exists_has_an_error_of_its_own(client: Client) -> None:
    """With the broker's words and code."""
    with pytest.raises(TopicExists, match="Topic 'demo' already exists") as caught:
        await client.create_topic("demo")
    assert caught.value.code == 11


@pytest.mark.parametrize("place", [("none", 0), ("demo", 7)])
async def test_a_missing_partition_has_one_too(
    client: Client, in_json: Client, place: tuple[str, int]
) -> None:
    """In both dialects."""
    topic, partition = place
    for each in (client, in_json):
        with pytest.raises(NoSuchPartition, match=f"topic={topic}, partition={partition}"):
            await each.produce(topic, [b"a"], partition=partition)


async def test_a_refusal_leaves_the_connection_in_use(client: Client) -> None:
    """The next request goes on."""
    with pytest.raises(RustlogError):
        await client.fetch("none")
    assert "connected" in repr(client)
    await client.ping()


async def test_a_commit_that_json_refuses_is_an_error(client: Client, in_json: Client) -> None:
    """Its answer only says that it failed."""
    del client
    with pytest.raises(RustlogError, match="the offset is not kept"):
        await in_json.commit("g", "none", 1)


async def test_json_has_four_requests(client: Client, in_json: Client) -> None:
    """The others say what to use."""
    del client
    with pytest.raises(Unsupported, match="no CreateTopic; use dialect='binary'"):
        await in_json.create_topic("x")


async def test_what_does_not_fit_a_frame_is_not_sent(client: Client, in_json: Client) -> None:
    """JSON takes up to four bytes for one."""
    with pytest.raises(RecordTooLarge, match="send fewer records at once"):
        await client.produce("demo", [bytes(10_485_760)])
    with pytest.raises(RecordTooLarge, match="send fewer records at once"):
        await in_json.produce("demo", [b"\xff" * 3_000_000])


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (("demo", b"abc", 0), r"a single one: \[record\]"),
        (("demo", ["text"], 0), "records"),
        ((7, [b"a"], 0), "topic"),
        (("demo", [b"a"], -1), "partition"),
        (("demo", [b"a"], 2**32), "partition"),
        (("x" * 70_000, [b"a"], 0), "topic"),
    ],
)
async def test_wrong_values_are_named(
    client: Client, in_json: Client, values: tuple[Any, Any, int], complaint: str
) -> None:
    """Before anything is sent, in both dialects."""
    topic, records, partition = values
    for each in (client, in_json):
        with pytest.raises(LocalProtocolError, match=complaint):
            await each.produce(topic, records, partition=partition)


async def test_a_closed_client_says_so(client: Client) -> None:
    """Closing twice does no harm."""
    await client.close()
    await client.close()
    with pytest.raises(ClosedError, match="make a new one"):
        await client.ping()
