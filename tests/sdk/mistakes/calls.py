"""The wrong kind of call, and calls in the wrong order."""
# ruff: noqa: D103 - the table says what each program gets wrong

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from tests.sdk.mistakes.registry import MISTAKES, URL, mistake, wrong

from lance_sdk import AsyncProducer, Consumer, DeadLetters, Producer
from lance_sdk.errors import LanceError
from lance_sdk.journal import StoreAndForwardSender
from lance_sdk.testing import FakeServer


@mistake
def with_of_an_async_class(_folder: Path) -> None:
    with AsyncProducer(URL):  # type: ignore[attr-defined]
        pass


@mistake
def async_with_of_a_sync_class(_folder: Path) -> None:
    async def program() -> None:
        async with Producer(URL):  # type: ignore[attr-defined]
            pass

    anyio.run(program)


def send_wrongly(name: str, call: Callable[[Any], object]) -> None:
    """Register a call of an open producer."""

    def program(_folder: Path) -> None:
        options: dict[str, Any] = {"batch_bytes": 50000, "buffer_bytes": 100000}
        with FakeServer() as server, Producer(server.url(), **options) as producer:
            call(producer)

    MISTAKES[name] = program


send_wrongly("send-many-one-value", lambda producer: producer.send_many(b"abc"))
send_wrongly("send-records-flat", lambda producer: producer.send_records([b"abc"]))
send_wrongly(
    "send-records-too-many", lambda producer: producer.send_records([(bytes(50000), 0x01)] * 3)
)
send_wrongly("timeout-text", lambda producer: producer.send(b"x").result("5s"))
send_wrongly("callback-is-no-function", lambda producer: producer.send(b"x").add_done_callback(5))
send_wrongly(
    "dead-letters-of-the-other-api",
    lambda _producer: DeadLetters(AsyncProducer(URL)),  # type: ignore[arg-type]
)


@mistake
def seek_negative(_folder: Path) -> None:
    with FakeServer() as server, Consumer(server.url()) as consumer:
        consumer.seek(-5)


@mistake
def commit_a_record(folder: Path) -> None:
    with FakeServer() as server:
        with Producer(server.url()) as producer:
            producer.send(b"x")
        keeps: dict[str, Any] = {"consumer": "c", "offsets": f"file:{folder}"}
        with Consumer(server.url(), **keeps) as consumer:
            consumer.commit(next(iter(consumer)))  # type: ignore[arg-type]


@mistake
def slot_is_a_file(folder: Path) -> None:
    (folder / "slot").touch()
    StoreAndForwardSender(URL, folder / "slot").open()


@mistake
def edge_option_unknown(folder: Path) -> None:
    StoreAndForwardSender(URL, folder / "slot", linger=0.1)  # type: ignore[call-arg]


# The order of calls

wrong("send-before-open", lambda: Producer(URL).send(b"x"))
wrong("poll-before-open", lambda: Consumer(URL).poll(0))


@mistake
def send_after_close(_folder: Path) -> None:
    with FakeServer() as server:
        with Producer(server.url()) as producer:
            pass
        producer.send(b"x")


@mistake
def open_twice(_folder: Path) -> None:
    with FakeServer() as server, Producer(server.url()) as producer:
        producer.open()


@mistake
def commit_without_store(_folder: Path) -> None:
    with FakeServer() as server, Consumer(server.url()) as consumer:
        consumer.commit()


@mistake
def wait_in_a_callback(_folder: Path) -> None:
    told: list[BaseException] = []
    done = threading.Event()

    def wait(_delivery: Any) -> None:
        try:
            producer.send(b"y").result()
        except LanceError as error:
            told.append(error)
        done.set()

    added = threading.Event()
    with FakeServer() as server, Producer(server.url()) as producer:
        server.on_ingest = lambda _peer, _frame: not added.wait(5)
        producer.send(b"x").add_done_callback(wait)
        added.set()
        assert done.wait(5)
    raise told[0]
