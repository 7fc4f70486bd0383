"""Places in a log, and records, that are not what the program takes them for."""
# ruff: noqa: D103 - the table says what each program gets wrong

from pathlib import Path

from tests.sdk.mistakes.registry import mistake

from lance_sdk import Client, Consumer, Producer
from lance_sdk.testing import FakeServer
from lance_sdk.values.keyed import join
from lance_server import running
from lance_spec.records import encode_record


@mistake
def seek_into_a_record(folder: Path) -> None:
    with running(folder / "data") as server:
        with Producer(f"{server.url}/orders", create_topic=True) as producer:
            producer.send(b"first")
        with Consumer(f"{server.url}/orders", start=3, stop_at_end=True) as consumer:
            list(consumer)


@mistake
def log_was_replaced(folder: Path) -> None:
    with running(folder / "data") as server:
        with Producer(f"{server.url}/orders", create_topic=True) as producer:
            producer.send_many([b"first", b"second"])
        with Consumer(
            f"{server.url}/orders",
            consumer="c",
            offsets=f"file:{folder / 'offsets'}",
            stop_at_end=True,
        ) as consumer:
            assert len(list(consumer)) == 2
        with Client(server.url) as client:
            client.delete_topic("orders")
            client.create_topic("orders")
        with Consumer(f"{server.url}/orders", consumer="c", offsets=f"file:{folder / 'offsets'}"):
            pass


@mistake
def commit_ahead(_folder: Path) -> None:
    with FakeServer() as server:
        server.topics.append(1, encode_record(b"x", 1))
        with Consumer(server.url(), consumer="c", offsets="memory:", stop_at_end=True) as consumer:
            list(consumer)
            consumer.commit(10_000)


@mistake
def undecodable_value(_folder: Path) -> None:
    raw, kind = join(b"{", "k", None)
    with FakeServer() as server:
        server.topics.append(1, encode_record(raw, kind))
        with Consumer(server.url(), values="json", stop_at_end=True) as consumer:
            assert [record.value for record in consumer]
