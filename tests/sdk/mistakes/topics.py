"""Topics that are not what the program takes them for."""
# ruff: noqa: D103 - the table says what each program gets wrong

from pathlib import Path

from tests.sdk.mistakes.registry import mistake

from lance_sdk import Client, Consumer, Producer
from lance_sdk.testing import FakeServer
from lance_server import running


@mistake
def topic_missing(folder: Path) -> None:
    with running(folder / "data") as server, Producer(f"{server.url}/orders"):
        pass


@mistake
def topic_missing_to_read(folder: Path) -> None:
    with running(folder / "data") as server, Consumer(f"{server.url}/orders"):
        pass


@mistake
def topic_misspelt(folder: Path) -> None:
    with running(folder / "data") as server, Client(server.url) as client:
        client.create_topic("orders")
        with Consumer(f"{server.url}/ordrs"):
            pass


@mistake
def topic_number_missing(folder: Path) -> None:
    with running(folder / "data") as server, Consumer(f"{server.url}?topic_id=7"):
        pass


@mistake
def topic_exists(folder: Path) -> None:
    with running(folder / "data") as server, Client(server.url) as client:
        client.create_topic("orders")
        client.create_topic("orders")


@mistake
def topic_to_delete_missing(folder: Path) -> None:
    with running(folder / "data") as server, Client(server.url) as client:
        client.create_topic("orders")
        client.delete_topic("ordres")


@mistake
def topic_deleted_while_sending(folder: Path) -> None:
    with (
        running(folder / "data") as server,
        Client(server.url) as client,
        Producer(f"{server.url}/orders", create_topic=True) as producer,
    ):
        producer.send(b"x").result(5)
        client.delete_topic("orders")
        producer.send(b"y").result(5)


@mistake
def topic_name_not_allowed(_folder: Path) -> None:
    with FakeServer() as server, Client(server.url()) as client:
        client.create_topic("a/b")
