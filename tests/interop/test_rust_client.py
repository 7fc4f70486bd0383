"""The published Rust client, `lnc-client` 0.2.8, with our server and our SDK."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.interop.conftest import RustClient
from tests.restarted import RestartedServer

from lance_sdk import Client, Consumer, Producer
from lance_sdk.errors import TopicNotFound
from lance_spec.disk.offset_files import OffsetFileName, decode_offset

Rust = Any
LINES = [f"line {number}" for number in range(200)]


def values(found: dict[str, Any]) -> list[str]:
    """The text of the records that the driver read."""
    return [bytes.fromhex(value).decode() for _, value in found["records"]]


@pytest.fixture
def topic(rust: Rust, name: str) -> int:
    """The id of a new topic."""
    return int(rust("create", name)["id"])


def test_a_topic_it_creates_is_there_for_us(rust: Rust, address: str, name: str) -> None:
    """With the same id and name; creating it again finds it."""
    made = rust("create", name)
    with Client(f"lance://{address}") as client:
        assert client.get_topic(name).id == made["id"]
    assert rust("create", name) == made


def test_topics_we_create_are_listed_by_it(rust: Rust, address: str, name: str) -> None:
    """And found by id."""
    with Client(f"lance://{address}") as client:
        made = client.create_topic(name)
    told = {"id": made.id, "name": name, "epoch": made.topic_epoch}
    assert told in rust("list")
    assert rust("get", made.id) == told


def test_a_topic_it_deletes_is_gone(rust: Rust, address: str, name: str, topic: int) -> None:
    """For both."""
    rust("delete", topic)
    assert rust.complaint("get", topic) == "Server error: Topic not found"
    with Client(f"lance://{address}") as client, pytest.raises(TopicNotFound):
        client.get_topic(name)


def test_retention_it_sets_is_what_we_read(rust: Rust, address: str, name: str) -> None:
    """At creation and later."""
    made = rust("create-with-retention", name, 3600, 1_000_000)
    with Client(f"lance://{address}") as client:
        info = client.get_topic(made["id"])
        assert (info.max_age_secs, info.max_bytes) == (3600, 1_000_000)
        rust("set-retention", made["id"], 60, 2_000_000)
        info = client.get_topic(made["id"])
        assert (info.max_age_secs, info.max_bytes) == (60, 2_000_000)


def test_retention_of_no_topic_is_refused_in_its_words(rust: Rust) -> None:
    """As text, which is the form of error that it reads."""
    said = rust.complaint("set-retention", 2**32 - 1, 1, 1)
    assert said == "Server error: Configuration error: Topic 4294967295 not found"


def test_we_read_what_it_produced(rust: Rust, address: str, name: str, topic: int) -> None:
    """Every record, in order."""
    assert rust("produce", topic, 1, lines=LINES)["sent"] == len(LINES)
    with Consumer(f"lance://{address}/{name}", stop_at_end=True) as consumer:
        assert [record.value.decode() for record in consumer] == LINES


@pytest.mark.parametrize("dialect", ["specified", "deployed"])
@pytest.mark.parametrize("fetch", [100, 1_048_576])
def test_it_reads_what_we_produced(
    rust: Rust, address: str, topic: int, dialect: str, fetch: int
) -> None:
    """Whatever we speak and however little it fetches at a time."""
    with Producer(f"lance://{address}?topic_id={topic}", dialect=dialect) as producer:
        producer.send_many(line.encode() for line in LINES)
    found = rust("consume", topic, fetch)
    assert values(found) == LINES
    assert found["fetches"] == 1 if fetch > 100 else found["fetches"] > 20


def test_its_batches_are_acknowledged_in_the_order_it_sent_them(rust: Rust, topic: int) -> None:
    """It sends them all before it reads the first answer."""
    found = rust("pipeline", topic, 500)
    assert found["acked"] == found["sent"] == list(range(1, 501))


def test_records_for_no_topic_are_refused(rust: Rust) -> None:
    """It hears why."""
    assert "Unknown topic" in rust.complaint("produce", 2**32 - 1, 1, lines=["lost"])


def test_its_pings_are_answered_one_for_one(rust: Rust) -> None:
    """Each at once."""
    assert rust("ping", 100)["answers"] == 100


def test_it_sees_one_healthy_node(rust: Rust) -> None:
    """The status that a cluster-aware client looks for."""
    expected = {"is_leader": True, "node_count": 1, "quorum_available": True}
    assert rust("status") == expected


def test_a_subscription_resumes_at_its_commit(rust: Rust, topic: int) -> None:
    """AMB-36: subscribing at 0 means going on."""
    rust("produce", topic, 1, lines=LINES)
    assert rust("subscribe", topic, 7, 0, 24) == {"start": 0, "committed": 24}
    assert rust("subscribe", topic, 7, 0, 48) == {"start": 24, "committed": 48}


def test_its_consumer_goes_on_where_it_stopped(rust: Rust, topic: int, tmp_path: Path) -> None:
    """Its offsets, kept in its own files, stay true across two runs."""
    rust("produce", topic, 1, lines=LINES[:150])
    first = rust("standalone", topic, "worker", tmp_path)
    rust("produce", topic, 1, lines=LINES[150:])
    second = rust("standalone", topic, "worker", tmp_path)
    assert values(first) + values(second) == LINES
    assert second["began"] == first["committed"]


def test_its_offset_file_is_the_one_we_describe(
    rust: Rust, address: str, name: str, topic: int, tmp_path: Path
) -> None:
    """AMB-49: the name says whose it is, and we go on from what stands in it."""
    rust("produce", topic, 1, lines=LINES[:10])
    committed = rust("standalone", topic, "worker", tmp_path)["committed"]
    (path,) = tmp_path.rglob("*.offset")
    assert OffsetFileName.parse(path.name).topic_id == topic
    offset = decode_offset(path.read_bytes())
    assert offset == committed
    rust("produce", topic, 1, lines=["next"])
    with Consumer(f"lance://{address}/{name}", start=offset, stop_at_end=True) as consumer:
        assert [record.value for record in consumer] == [b"next"]


def test_nothing_that_it_was_acknowledged_is_lost_in_an_outage(
    driver: Path, restarted: RestartedServer
) -> None:
    """It connects again by itself, and sends once more what it has no answer to."""
    client = RustClient(driver, restarted.address)
    topic = client("create", "orders")["id"]
    with client.running("send-each", topic) as sending:
        assert sending.stdin
        assert sending.stdout
        sending.stdin.write("".join(f"{line}\n" for line in LINES))
        sending.stdin.close()
        acked = [sending.stdout.readline().strip() for _ in range(20)]
        restarted.kill()
        acked += [line.strip() for line in sending.stdout]
    assert acked == [*LINES, "null"]
    with Consumer(f"{restarted.url}/orders", stop_at_end=True) as consumer:
        found = [record.value.decode() for record in consumer]
    assert list(dict.fromkeys(found)) == LINES
    assert len(found) <= len(LINES) + 1


def test_its_consumer_reads_on_after_an_outage(driver: Path, restarted: RestartedServer) -> None:
    """By itself, every record once."""
    client = RustClient(driver, restarted.address)
    topic = client("create", "orders")["id"]
    client("produce", topic, 1, lines=LINES[:100])
    with client.running("follow", topic, len(LINES)) as reading:
        assert reading.stdout
        assert any(line.strip() == "100" for line in reading.stdout)
        restarted.kill()
        client("produce", topic, 1, lines=LINES[100:])
        *_, last = reading.stdout
    assert values(json.loads(last)) == LINES
