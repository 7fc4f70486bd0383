"""Ninety mistakes and mishaps, each made for real: its error says what it was and what to do.

`mistakes.toml` has what the documentation prints of each; the programs that cause them are here.
"""
# ruff: noqa: D103 - the table says what each program gets wrong

import errno
import http.server
import socket
import ssl
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import trustme

import lance_sdk.errors
from lance_sdk import AsyncProducer, Client, Consumer, DeadLetter, DeadLetters, Producer, Record
from lance_sdk.errors import LanceError
from lance_sdk.journal import StoreAndForwardSender
from lance_sdk.testing import FakeServer
from lance_sdk.values.keyed import join
from lance_server import running
from lance_server.security.tokens import AuthConfig
from lance_server.testing.storage import FaultyStorage, MemoryStorage
from lance_spec.enums import ErrorCode, RecordType
from lance_spec.records import encode_record

ROWS: Final = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())["mistake"]
TOKENS: Final = AuthConfig(tokens=("a-secret-token",))
URL: Final = "lance://127.0.0.1:1/orders"
MISTAKES: Final[dict[str, Callable[[Path], object]]] = {}


def mistake(cause: Callable[[Path], object]) -> Callable[[Path], object]:
    """Register a program under its name."""
    MISTAKES[cause.__name__.replace("_", "-")] = cause
    return cause


def wrong(name: str, cause: Callable[[], object]) -> None:
    """Register one that needs nothing."""
    MISTAKES[name] = lambda _folder: cause()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_mistake_is_named_with_its_remedy(row: dict[str, str], tmp_path: Path) -> None:
    """The error is of the class that the table says, and its text has both; at most 3 seconds."""
    kind = getattr(lance_sdk.errors, row["error"], None)
    began = time.monotonic()
    with pytest.raises((LanceError, TypeError, ValueError)) as caught:
        MISTAKES[row["id"]](tmp_path)
    assert time.monotonic() - began < 3.0
    assert type(caught.value).__name__ == row["error"], caught.value
    assert kind is None or isinstance(caught.value, LanceError)
    text = " ".join(str(caught.value).split())
    assert row["says"] in text, text
    assert row["remedy"] in text, text


def test_every_program_has_a_row() -> None:
    """And there are at least ninety."""
    assert sorted(MISTAKES) == sorted(row["id"] for row in ROWS)
    assert len(ROWS) >= 90


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_is_complete(row: dict[str, str]) -> None:
    """What was done, what comes, what it says and what to do."""
    assert row.keys() == {"id", "what", "error", "says", "remedy"}
    assert all(row.values())


# URLs

for name, text in {
    "url-without-scheme": "localhost:1992/orders",
    "url-of-http": "http://localhost:1992/orders",
    "url-without-topic": "lance://localhost",
    "url-with-fragment": "lance://localhost/orders#2",
    "url-with-port-text": "lance://localhost:abc/orders",
    "url-with-port-0": "lance://localhost:99999/orders",
    "url-with-two-topics": "lance://localhost/a/b",
    "url-with-unknown-key": "lance://localhost/orders?lingr=5ms",
    "url-with-bad-duration": "lance://localhost/orders?linger=soon",
    "url-with-bad-size": "lance://localhost/orders?batch=big",
    "url-with-key-twice": "lance://localhost/orders?linger=1ms&linger=2ms",
    "url-with-empty-host": "lance:///orders",
    "url-with-token-in-query": "lance://localhost/orders?token=x",
    "url-with-bad-topic-id": "lance://localhost?topic_id=x",
    "url-with-name-and-id": "lance://localhost/orders?topic_id=3",
    "url-with-long-topic": f"lance://localhost/{'x' * 256}",
    "url-with-control-character": "lance://localhost/a%07b",
}.items():
    wrong(name, lambda text=text: Producer(text))  # type: ignore[misc]
wrong("url-is-bytes", lambda: Producer(b"lance://localhost/orders"))  # type: ignore[call-overload]

# Options

for name, options in {
    "option-unknown": {"lingr": 0.1},
    "option-group-id": {"group_id": "shipping"},
    "option-bootstrap-servers": {"bootstrap_servers": "localhost"},
    "option-acks": {"acks": "all"},
    "option-negative-duration": {"linger": -1},
    "option-duration-text": {"linger": "5ms"},
    "option-size-text": {"batch_bytes": "64KiB"},
    "option-bool-text": {"create_topic": "false"},
    "option-zero-timeout": {"connect_timeout": 0},
    "option-linger-too-long": {"delivery_timeout": 1, "linger": 2},
    "option-idle-too-short": {"idle_timeout": 5, "keepalive_interval": 6},
    "option-buffer-too-small": {"buffer_bytes": 1},
    "option-batch-too-large": {"batch_bytes": 2**30},
    "option-on-full": {"on_full": "drop"},
    "option-journal-missing": {"on_full": "journal"},
    "option-compression": {"compression": "gzip"},
    "option-dialect": {"dialect": "v2"},
    "option-values": {"values": "yaml"},
    "option-values-class": {"values": int},
    "option-retry": {"retry": 3},
    "option-hooks": {"hooks": print},
    "option-token-bytes": {"token": b"secret"},
    "option-tls-true": {"tls": True},
    "option-tls-key-alone": {"tls_key": "a.key"},
    "option-fetch-header": {"fetch_header": 20},
}.items():
    wrong(name, lambda options=options: Producer(URL, **options))  # type: ignore[misc]
for name, options in {
    "consumer-offsets-without-name": {"offsets": "server"},
    "consumer-start-text": {"start": "latest"},
    "consumer-start-naive": {"start": datetime(2026, 1, 1)},  # noqa: DTZ001 - the mistake
    "consumer-start-negative": {"start": -1},
    "consumer-auto-commit": {"auto_commit": True},
    "consumer-mode": {"mode": "pull"},
    "consumer-on-truncation": {"on_truncation": "earliest"},
    "consumer-store-url": {"consumer": "c", "offsets": "sqlit:x"},
    "consumer-group-id": {"group_id": "shipping"},
}.items():

    def _consume(options: dict[str, Any] = options) -> None:
        with Consumer(URL, **options):
            pass

    wrong(name, _consume)

# The wrong kind of call


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


# Values


def sending(
    name: str, value: Any = b"x", options: dict[str, Any] | None = None, **how: Any
) -> None:
    """Register a producer that is given something it cannot send."""

    def cause() -> None:
        with FakeServer() as server, Producer(server.url(), **(options or {})) as producer:
            producer.send(value, **how)

    wrong(name, cause)


sending("send-text", "hello")
sending("send-dict", {"id": 7})
sending("send-object", lance_sdk.CloseReport())
sending("send-number", 7)
sending("send-nan", float("nan"), {"values": "json"})
sending("send-bytes-as-json", b"x", {"values": "json"})
sending("send-bytes-as-text", b"x", {"values": "text"})
sending("send-other-class", {"id": 7}, {"values": lance_sdk.CloseReport})
sending("send-key-number", key=7)
sending("send-key-too-long", key=b"k" * 70_000)
sending("send-time-naive", timestamp=datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake
sending("send-time-float", timestamp=1.5)
sending("send-time-negative", timestamp=-1)
sending("send-stored-type", b"\x01\x00kv", record_type=RecordType.KEY_VALUE)
sending("send-type-and-key", key="k", record_type=RecordType.JSON)
sending("send-type-0", record_type=0)
sending("send-type-300", record_type=300)
sending("send-null-with-value", record_type=RecordType.NULL)
sending("send-none-with-type", None, record_type=RecordType.JSON)
sending("send-too-large", b"x" * (17 * 1024 * 1024))
sending("send-larger-than-buffer", b"x" * 200_000, {"buffer_bytes": 100_000, "batch_bytes": 1000})


@mistake
def send_raw_malformed(_folder: Path) -> None:
    with FakeServer() as server, Producer(server.url()) as producer:
        producer.send_raw(b"short", RecordType.TIMESTAMPED)


wrong("record-not-json", lambda: Record(5, 1, b"{", "orders").json())
wrong("record-not-text", lambda: Record(5, 1, b"\xff", "orders").text())
wrong("record-malformed", lambda: Record(5, RecordType.KEY_VALUE, b"\xff", "orders").value)
wrong("record-no-dead-letter", lambda: DeadLetter.of(Record(5, 1, b"x", "orders")))
wrong("record-copied-as-tuple", lambda: Record(5, 1))  # type: ignore[call-arg]
wrong("dead-letters-zero-attempts", lambda: DeadLetters(Producer(URL), max_attempts=0))


# Connecting


def opened(url: str, **options: Any) -> None:
    """Connect."""
    with Client(url, **options) as client:
        client.list_topics()


wrong("connect-refused", lambda: opened("lance://127.0.0.1:1"))
wrong("connect-unknown-host", lambda: opened("lance://no-such-host.invalid"))


@mistake
def connect_silent(_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        opened(f"lance://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=1.0)


class _Http(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Write nothing to the test's output."""


@contextmanager
def http_server() -> Iterator[int]:
    """Serve HTTP; return the port."""
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Http)
    thread = threading.Thread(target=web.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield web.server_port
    finally:
        web.shutdown()
        thread.join()
        web.server_close()


@mistake
def connect_http(_folder: Path) -> None:
    with http_server() as port:
        opened(f"lance://127.0.0.1:{port}")


@mistake
def connect_tls_to_http(_folder: Path) -> None:
    with http_server() as port:
        opened(f"lances://127.0.0.1:{port}")


@mistake
def connect_other_protocol(_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"220 mail.example.org ESMTP ready for whatever comes next, hello\r\n")
                peer.recv(100)

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            opened(f"lance://127.0.0.1:{server.getsockname()[1]}")
        finally:
            thread.join()


@contextmanager
def tls_server(name: str = "localhost", **settings: Any) -> Iterator[tuple[int, trustme.CA]]:
    """Run a server with TLS; return its port and the authority of its certificate."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    if settings.get("mutual"):
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    with FakeServer(tls=context) as server:
        yield server.port, authority


def _pem(authority: trustme.CA, folder: Path) -> Path:
    path = folder / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@mistake
def connect_plain_to_tls(_folder: Path) -> None:
    with tls_server() as (port, _):
        opened(f"lance://localhost:{port}")


@mistake
def connect_tls_to_plain(_folder: Path) -> None:
    with FakeServer() as server:
        opened(f"lances://127.0.0.1:{server.port}")


@mistake
def connect_untrusted(_folder: Path) -> None:
    with tls_server() as (port, _):
        opened(f"lances://localhost:{port}")


@mistake
def connect_other_name(folder: Path) -> None:
    with tls_server("example.org") as (port, authority):
        opened(f"lances://localhost:{port}", tls_ca=_pem(authority, folder))


@mistake
def connect_without_certificate(folder: Path) -> None:
    with tls_server(mutual=True) as (port, authority):
        opened(f"lances://localhost:{port}", tls_ca=_pem(authority, folder))


@mistake
def connect_missing_ca(_folder: Path) -> None:
    with tls_server() as (port, _):
        opened(f"lances://localhost:{port}", tls_ca="missing.pem")


@mistake
def token_missing(folder: Path) -> None:
    with running(folder / "data", auth=TOKENS) as server:
        opened(server.url)


@mistake
def token_wrong(folder: Path) -> None:
    with running(folder / "data", auth=TOKENS) as server:
        opened(server.url, token="guess")


@mistake
def token_function_fails(_folder: Path) -> None:
    def token() -> str:
        raise RuntimeError("vault is sealed")

    with FakeServer() as server:
        opened(server.url(), token=token)


# Topics


@mistake
def topic_missing(folder: Path) -> None:
    with running(folder / "data") as server, Producer(f"{server.url}/orders"):
        pass


@mistake
def topic_missing_to_read(folder: Path) -> None:
    with running(folder / "data") as server, Consumer(f"{server.url}/orders"):
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


# Delivery


def _certain(delivery: Any) -> LanceError:
    with pytest.raises(LanceError) as caught:
        delivery.result()
    assert not caught.value.maybe_applied
    assert caught.value.__cause__ is not None
    return caught.value


@mistake
def disk_full(_folder: Path) -> None:
    disk = FaultyStorage(MemoryStorage())
    with running(Path("/data"), storage=disk) as server:
        with Producer(f"{server.url}/orders", create_topic=True) as producer:
            producer.send(b"x").result(5)
        with Producer(f"{server.url}/orders", delivery_timeout=1.0) as producer:
            disk.fail = {"write": errno.ENOSPC}
            delivery = producer.send(b"y")
            try:
                raise _certain(delivery)
            finally:
                disk.fail = {}


@mistake
def disk_fails(_folder: Path) -> None:
    disk = FaultyStorage(MemoryStorage())
    with (
        running(Path("/data"), storage=disk) as server,
        Producer(f"{server.url}/orders", create_topic=True) as producer,
    ):
        producer.send(b"x").result(5)
        disk.fail = {"sync": errno.EIO}
        delivery = producer.send(b"y")
        try:
            delivery.result(5)
        finally:
            disk.fail = {}


def refusing(code: ErrorCode, text: str, **options: Any) -> None:
    """Send to a server that refuses every batch."""
    with FakeServer() as server:

        def refuse(peer: Any, frame: Any) -> bool:
            peer.error(code, text, batch_id=frame.batch_id)
            return True

        server.on_ingest = refuse
        with Producer(server.url(), delivery_timeout=0.3, **options) as producer:
            producer.send(b"x").result()


wrong("rate-limited", lambda: refusing(ErrorCode.RATE_LIMITED, "too many batches"))
wrong("not-allowed", lambda: refusing(ErrorCode.ACCESS_DENIED, "orders is read only for you"))
wrong("quorum", lambda: refusing(ErrorCode.QUORUM_NOT_REACHED, "1 of 2 nodes"))


@mistake
def server_does_not_acknowledge(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        with Producer(server.url(), delivery_timeout=0.3) as producer:
            producer.send(b"x").result()


@mistake
def result_too_early(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        producer = Producer(server.url()).open()
        try:
            producer.send(b"x").result(0.05)
        finally:
            producer.close(0.0)


@mistake
def server_gone(_folder: Path) -> None:
    with FakeServer() as server:
        producer = Producer(server.url(), delivery_timeout=0.5, backoff_base=0.01).open()
    try:
        producer.send(b"x").result()
    finally:
        producer.close(0.0)


@mistake
def server_gone_at_close(_folder: Path) -> None:
    with FakeServer() as server:
        producer = Producer(server.url(), close_timeout=0.3).open()
    with_block = producer.send(b"x")
    producer.close()
    with_block.result()


@mistake
def buffer_full(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        small = {"buffer_bytes": 2000, "batch_bytes": 1000}
        producer = Producer(server.url(), on_full="raise", **small).open()  # type: ignore[call-overload]
        try:
            for _ in range(10):
                producer.send(b"x" * 500)
        finally:
            producer.close(0.0)


@mistake
def buffer_full_for_long(_folder: Path) -> None:
    with FakeServer() as server:
        server.on_ingest = lambda _peer, _frame: True
        small = {"buffer_bytes": 2000, "batch_bytes": 1000}
        producer = Producer(server.url(), block_timeout=0.1, **small).open()  # type: ignore[call-overload]
        try:
            for _ in range(10):
                producer.send(b"x" * 500)
        finally:
            producer.close(0.0)


@mistake
def journal_not_a_folder(folder: Path) -> None:
    (folder / "file").write_text("")
    with Producer(URL, journal=folder / "file" / "slot"):
        pass


# Consuming


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
