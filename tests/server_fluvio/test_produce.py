"""Produce: what is stored, under which offsets, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from lance_server.listeners.fluvio.options import FluvioOptions
from lance_server.listeners.fluvio.testing import FluvioPeer, FluvioServers, fluvio_servers
from lance_spec.fluvio.batches import Compression, FluvioRecord, pack_batches
from lance_spec.messages.fluvio import (
    ErrorCode,
    ErrorText,
    ModuleKind,
    ModuleRole,
    ProducePartition,
    ProduceResponse,
    ProduceTopic,
    RecordSet,
    SmartModuleInvocation,
    Wasm,
    WasmForm,
    WasmName,
)

from .messages import VERSION, acknowledge, batch, create, ends, fetch, produce, request, streamed


@pytest.fixture(autouse=True)
def orders(sc: FluvioPeer) -> None:
    """Have a topic to write to."""
    assert create(sc, "orders").outcome.code is ErrorCode.NONE


def text_of(outcome: object) -> str:
    """Return the text that comes with code 2."""
    detail = getattr(outcome, "detail", None)
    assert isinstance(detail, ErrorText)
    return detail.text


def test_offsets_are_counted_in_records(spu: FluvioPeer) -> None:
    """Each batch begins where the records before it end."""
    assert produce(spu, "orders", batch(b"a", b"b", b"c")).base_offset == 0
    assert produce(spu, "orders", batch(b"d")).base_offset == 3
    assert ends(spu, "orders")[1:] == (0, 4)


def test_several_batches_of_an_entry_are_stored_in_order(spu: FluvioPeer) -> None:
    """The answer names the first one's offset."""
    assert produce(spu, "orders", batch(b"a"), batch(b"b", b"c")).base_offset == 0
    assert produce(spu, "orders", batch(b"d")).base_offset == 3


@pytest.mark.parametrize("version", [0, 1, 2, 5, 7, 8, 19, 23, 24, 25])
def test_every_version_is_answered_in_kind(spu: FluvioPeer, version: int) -> None:
    """The response has the fields of the request's version, and no others."""
    assert produce(spu, "orders", batch(b"a"), version=version).base_offset == 0


@pytest.mark.parametrize("compression", list(Compression))
def test_every_compression_is_opened(spu: FluvioPeer, compression: Compression) -> None:
    """Records are stored as they are, however they came."""
    values = [b"%d" % number * 50 for number in range(300)]
    assert produce(spu, "orders", batch(*values, compression=compression)).base_offset == 0
    spu.send(1003, VERSION, fetch("orders", 0))
    found = streamed(spu)
    assert [each.attributes for each in found.records.batches] == [Compression.NONE]
    assert ends(spu, "orders")[2] == 300


@pytest.mark.parametrize("isolation", [1, 0, -1])
def test_both_isolations_answer_when_it_is_stored(spu: FluvioPeer, isolation: int) -> None:
    """What is acknowledged can be read at once."""
    assert produce(spu, "orders", batch(b"a"), isolation=isolation).base_offset == 0
    assert ends(spu, "orders")[2] == 1


def test_entries_are_answered_one_to_one(spu: FluvioPeer) -> None:
    """Several entries of one partition, and one that fails, keep their places."""
    good = ProducePartition(partition=0, records=RecordSet(batches=[batch(b"a")]))
    bad = ProducePartition(partition=9, records=RecordSet(batches=[batch(b"b")]))
    asked = replace(
        request("orders"),
        topics=[
            ProduceTopic(name="orders", partitions=[good, bad, good]),
            ProduceTopic(name="missing", partitions=[good]),
        ],
    )
    answer = ProduceResponse.decode(spu.ask(0, VERSION, asked.encode(VERSION)), VERSION)
    found = [
        (topic.name, each.partition, each.outcome.code, each.base_offset)
        for topic in answer.topics
        for each in topic.partitions
    ]
    refused = ErrorCode.NOT_LEADER_FOR_PARTITION
    assert found == [
        ("orders", 0, ErrorCode.NONE, 0),
        ("orders", 9, refused, -1),
        ("orders", 0, ErrorCode.NONE, 1),
        ("missing", 0, refused, -1),
    ]


def test_a_flush_without_batches_is_answered(spu: FluvioPeer) -> None:
    """Published producers send one topic with no partition when they flush."""
    asked = replace(request("orders"), topics=[ProduceTopic(name="orders", partitions=[])])
    answer = ProduceResponse.decode(spu.ask(0, VERSION, asked.encode(VERSION)), VERSION)
    assert [(each.name, each.partitions) for each in answer.topics] == [("orders", [])]
    assert produce(spu, "orders").outcome.code is ErrorCode.NONE


def test_many_requests_may_be_under_way(spu: FluvioPeer) -> None:
    """Who does not wait for answers gets them all, with rising offsets."""
    body = request("orders", batch(b"x")).encode(VERSION)
    numbers = [spu.send(0, VERSION, body) for _ in range(200)]
    answers = {}
    for _ in numbers:
        response = spu.receive()
        found = ProduceResponse.decode(response.body, VERSION).topics[0].partitions[0]
        answers[response.correlation_id] = found.base_offset
    assert [answers[number] for number in numbers] == list(range(200))


def test_a_wrong_checksum_is_refused(spu: FluvioPeer) -> None:
    """Nothing of the entry is stored, and the client is told why."""
    wrong = replace(batch(b"a"), crc=1)
    found = produce(spu, "orders", batch(b"good"), wrong)
    assert found.outcome.code is ErrorCode.OTHER
    assert "crc" in text_of(found.outcome)
    assert ends(spu, "orders")[2] == 0


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda good: replace(good, last_offset_delta=7), "as last_offset_delta says"),
        (lambda good: replace(good, records=good.records[:-1]), "its bytes end"),
        (lambda good: replace(good, records=good.records + b"x"), "follow the last record"),
        (lambda good: replace(good, records=b""), "a count of 4 bytes"),
        (lambda good: replace(good, records=b"\x7f" * 4), "a count of at most 0"),
        (lambda good: replace(good, attributes=5), "compression 0 to 4"),
        (lambda good: replace(good, attributes=Compression.GZIP), "gzip"),
        (lambda good: replace(good, attributes=Compression.SNAPPY), "snappy"),
        (lambda good: replace(good, attributes=Compression.LZ4), "LZ4"),
        (lambda good: replace(good, attributes=Compression.ZSTD), "zstd"),
        (lambda good: replace(good, first_timestamp=-7), "0 to"),
    ],
)
def test_a_broken_batch_is_refused(spu: FluvioPeer, spoil: object, complaint: str) -> None:
    """What is not a batch is not stored, whatever its checksum says."""
    assert callable(spoil)
    found = produce(spu, "orders", spoil(batch(b"a", b"b")).with_crc())
    assert found.outcome.code is ErrorCode.OTHER
    assert complaint in text_of(found.outcome)
    assert produce(spu, "orders", batch(b"a")).base_offset == 0


def test_a_key_that_the_log_cannot_keep_is_refused(spu: FluvioPeer) -> None:
    """A key of more than 65,535 bytes has no place in a record of the log."""
    record = FluvioRecord(b"value", b"k" * 65_536, 1_000)
    found = produce(spu, "orders", next(pack_batches([record])))
    assert "at most 65535" in text_of(found.outcome)


def test_a_smartmodule_is_refused(spu: FluvioPeer) -> None:
    """Records must not be stored as if the module had run."""
    module = SmartModuleInvocation(
        wasm=Wasm(form=WasmForm.PREDEFINED, source=WasmName(name="filter")),
        role=ModuleRole(kind=ModuleKind.FILTER, context=None),
        params=[],
    )
    asked = replace(request("orders", batch(b"a")), smartmodules=[module])
    answer = ProduceResponse.decode(spu.ask(0, VERSION, asked.encode(VERSION)), VERSION)
    assert "SmartModules" in text_of(answer.topics[0].partitions[0].outcome)


@pytest.mark.parametrize("compression", list(Compression))
def test_a_bomb_does_not_go_off(tmp_path: Path, compression: Compression) -> None:
    """Records that take more than the limit are refused before they take it."""
    options = FluvioOptions(max_batch=100_000)
    with (
        fluvio_servers(tmp_path / "bomb", options) as servers,
        FluvioPeer(servers.sc) as sc,
        FluvioPeer(servers.spu) as spu,
    ):
        create(sc, "orders")
        found = produce(spu, "orders", batch(b"\0" * 2_000_000, compression=compression))
        assert found.outcome.code is ErrorCode.MESSAGE_TOO_LARGE
        assert produce(spu, "orders", batch(b"small", compression=compression)).base_offset == 0


def test_a_lenient_server_takes_a_wrong_checksum(tmp_path: Path) -> None:
    """``check_crc=False`` does as Fluvio's own servers do."""
    options = FluvioOptions(check_crc=False)
    with (
        fluvio_servers(tmp_path / "lenient", options) as servers,
        FluvioPeer(servers.sc) as sc,
        FluvioPeer(servers.spu) as spu,
    ):
        create(sc, "orders")
        assert produce(spu, "orders", replace(batch(b"a"), crc=1)).base_offset == 0


def test_records_of_two_clients_are_numbered_together(
    servers: FluvioServers, spu: FluvioPeer
) -> None:
    """A batch's offset is right although others write to the same partition at once."""
    body = request("orders", batch(b"x", b"y")).encode(VERSION)
    with FluvioPeer(servers.spu) as other:
        for _ in range(50):
            spu.send(0, VERSION, body)
            other.send(0, VERSION, body)
        found = [
            ProduceResponse.decode(peer.receive().body, VERSION).topics[0].partitions[0].base_offset
            for peer in (spu, other)
            for _ in range(50)
        ]
    assert sorted(found) == list(range(0, 200, 2))


def test_a_stream_serves_what_was_stored(spu: FluvioPeer) -> None:
    """Times survive to the millisecond."""
    produce(spu, "orders", batch(b"a", b"b", time=1_700_000_000_123))
    spu.send(1003, VERSION, fetch("orders", 0))
    found = streamed(spu)
    assert [each.first_timestamp for each in found.records.batches] == [1_700_000_000_123]
    assert acknowledge(spu, found.stream_id, 2).status[0].outcome.code is ErrorCode.NONE
