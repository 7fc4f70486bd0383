"""Values that cannot be sent, and records that cannot be read."""
# ruff: noqa: D103 - the table says what each program gets wrong

from datetime import datetime
from pathlib import Path
from typing import Any

from tests.sdk.mistakes.registry import URL, mistake, wrong

from lance_sdk import CloseReport, DeadLetter, DeadLetters, Producer, Record
from lance_sdk.testing import FakeServer
from lance_spec.enums import RecordType


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
sending("send-object", CloseReport())
sending("send-number", 7)
sending("send-nan", float("nan"), {"values": "json"})
sending("send-bytes-as-json", b"x", {"values": "json"})
sending("send-bytes-as-text", b"x", {"values": "text"})
sending("send-other-class", {"id": 7}, {"values": CloseReport})
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
