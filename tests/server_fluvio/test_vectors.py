"""The test vectors for Fluvio, put to both servers over sockets."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_server.listeners.fluvio.testing import FluvioPeer, FluvioServers, fluvio_servers
from lance_spec.fluvio.apis import APIS
from lance_spec.fluvio.batches import open_batch
from lance_spec.messages import fluvio as messages
from lance_spec.messages._cursor import whole
from lance_spec.messages.fluvio import Batch, ErrorCode, ProduceResponse

from .messages import batch, create, ends, fetch, produce, streamed

VECTORS = Path(__file__).parents[2] / "vectors"


def groups(family: str) -> list[dict[str, Any]]:
    """Return the groups of a family."""
    document = json.loads((VECTORS / f"{family}.json").read_text())
    found: list[dict[str, Any]] = document["testGroups"]
    return found


def requests(result: str) -> list[Any]:
    """Return whole requests with this result and whom they are for."""
    return [
        pytest.param(each.server, group["message"], test, id=f"{each.server}-{test['id']}")
        for group in groups("fluvio_exchange")
        if group["side"] == "request"
        for test in group["tests"]
        if test["result"] == result
        for each in APIS
        if each.request == group["message"]
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FluvioServers]:
    """Return servers for all vectors."""
    with fluvio_servers(tmp_path_factory.mktemp("vectors") / "data") as running:
        yield running


@pytest.fixture
def hello(shared: FluvioServers) -> FluvioServers:
    """Return servers with the topic that the vectors speak of, and a record in it."""
    with FluvioPeer(shared.sc) as sc, FluvioPeer(shared.spu) as spu:
        if create(sc, "hello").outcome.code is ErrorCode.NONE:
            produce(spu, "hello", batch(b"first"))
    return shared


def response_to(server: str, message: str, test: dict[str, Any], body: bytes) -> Any:
    """Return what a response says; only a whole one of the right kind is read."""
    found = [each for each in APIS if (each.server, each.request) == (server, message)]
    key = test["fields"]["frame"]["api_key"]
    (api,) = (each for each in found if each.key == key)
    kind = test["fields"]["frame"]["body"].get("object_type", next(iter(api.responses)))
    return whole(getattr(messages, api.responses[kind]), body, test["version"])


@pytest.mark.parametrize(("server", "message", "test"), requests("valid"))
def test_a_valid_request_is_answered(
    hello: FluvioServers, server: str, message: str, test: dict[str, Any]
) -> None:
    """In its own version, under its own number; a batch of records is stored."""
    with FluvioPeer(getattr(hello, server)) as peer:
        peer.socket.sendall(bytes.fromhex(test["bytes"]))
        answer = peer.receive()
    assert answer.correlation_id == test["fields"]["frame"]["correlation_id"]
    found = response_to(server, message, test, answer.body)
    if isinstance(found, ProduceResponse):
        outcomes = [part.outcome.code for topic in found.topics for part in topic.partitions]
        assert set(outcomes) <= {ErrorCode.NONE}
        asked = test["fields"]["frame"]["body"]["topics"]
        assert [len(each.partitions) for each in found.topics] == [
            len(each["partitions"]) for each in asked
        ]


@pytest.mark.parametrize(("server", "message", "test"), requests("invalid"))
def test_an_invalid_request_ends_the_connection(
    hello: FluvioServers, server: str, message: str, test: dict[str, Any]
) -> None:
    """It has no answer, nor has anything after a whole one; everybody else is served."""
    with FluvioPeer(getattr(hello, server)) as peer:
        peer.socket.sendall(bytes.fromhex(test["bytes"]))
        peer.socket.shutdown(socket.SHUT_WR)
        if test["outcome"]["reason"] == "trailing" or is_unread(message, test):
            peer.receive()
        assert peer.closed()
    with FluvioPeer(getattr(hello, server)) as peer:
        assert peer.ask(18, 2, bytes(6))


def is_unread(message: str, test: dict[str, Any]) -> bool:
    """Whether the fault is where nobody looks: clients of any version may ask for versions."""
    return message == "ApiVersionsRequest" and test["outcome"]["field"] != "frame"


def records(result: str) -> list[Any]:
    """Return the records of batches with this result, and how they are compressed."""
    return [
        pytest.param(group["attributes"], test, id=test["id"])
        for group in groups("fluvio_records")
        for test in group["tests"]
        if test["result"] == result
    ]


def batch_of(attributes: int, data: str, count: int) -> Batch:
    """Return a batch with a right checksum, whatever its records are."""
    return Batch(
        base_offset=0,
        partition_leader_epoch=-1,
        attributes=attributes,
        last_offset_delta=count - 1,
        first_timestamp=1_000,
        max_time_stamp=1_000,
        producer_id=-1,
        producer_epoch=-1,
        first_sequence=-1,
        records=bytes.fromhex(data),
    ).with_crc()


@pytest.mark.parametrize(("attributes", "test"), records("valid"))
def test_valid_records_are_stored(
    hello: FluvioServers, attributes: int, test: dict[str, Any]
) -> None:
    """However they are compressed, and come back as they were."""
    wanted = test["fields"]["records"]
    with FluvioPeer(hello.spu) as spu:
        _, _, before = ends(spu, "hello")
        answer = produce(spu, "hello", batch_of(attributes, test["bytes"], len(wanted)))
        assert answer.outcome.code is ErrorCode.NONE
        assert ends(spu, "hello")[2] == before + len(wanted)
        if wanted:
            spu.send(1003, 24, fetch("hello", before))
            (stored,) = streamed(spu).records.batches
            found = [(each.key, each.value) for each in open_batch(stored, limit=1_000)]
            assert found == [(octets(each["key"]), octets(each["value"])) for each in wanted]


def octets(text: str | None) -> bytes | None:
    """Return the bytes that a vector tells."""
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize(("attributes", "test"), records("invalid"))
def test_invalid_records_are_refused(
    hello: FluvioServers, attributes: int, test: dict[str, Any]
) -> None:
    """With a text that reaches the user, and none of them is stored."""
    with FluvioPeer(hello.spu) as spu:
        before = ends(spu, "hello")
        found = produce(spu, "hello", batch_of(attributes, test["bytes"], 1))
        assert found.outcome.code is ErrorCode.OTHER
        assert found.outcome.detail.text.startswith("nothing is stored: ")
        assert ends(spu, "hello") == before
