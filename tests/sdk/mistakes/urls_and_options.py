"""URLs and options that cannot be used."""

from datetime import datetime
from typing import Any

from tests.sdk.mistakes.registry import URL, wrong

from lance_sdk import Consumer, Producer

# URLs

for name, text in {
    "url-without-scheme": "localhost:1992/orders",
    "url-of-http": "http://localhost:1992/orders",
    "url-without-topic": "lance://localhost",
    "url-with-fragment": "lance://localhost/orders#2",
    "url-with-port-text": "lance://localhost:abc/orders",
    "url-with-large-port": "lance://localhost:99999/orders",
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
