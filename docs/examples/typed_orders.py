"""Typed records: orders of a dataclass, what cannot be read goes to a topic of its own.

::

    python typed_orders.py lance://localhost:1992/orders < orders.jsonl

Each line is an order, such as ``{"id": 1, "article": "fig", "count": 3}``.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lance_sdk import Consumer, DeadLetter, DeadLetters, Producer, Record


@dataclass
class Order:
    """What a customer has ordered."""

    id: int
    article: str
    count: int = 1
    at: datetime | None = None


def write(url: str, orders: Iterable[Order]) -> None:
    """Send orders, each under its article, and say of each that it is stored."""
    with Producer(url, values=Order, create_topic=True) as producer:
        for order in orders:
            producer.send(order, key=order.article).result()
            print("stored", order.id, flush=True)


def read(url: str) -> dict[str, int]:
    """Count articles; what is not an order becomes a dead letter."""
    counts: dict[str, int] = {}

    def count(record: Record) -> None:
        order: Order = record.value  # raises UndecodableRecord where it is none
        counts[order.article] = counts.get(order.article, 0) + order.count

    with (
        Consumer(url, values=Order, stop_at_end=True) as consumer,
        Producer(f"{url}-failed", create_topic=True) as failed,
    ):
        letters = DeadLetters(failed, max_attempts=1)
        for record in consumer:
            letters.handle(record, count)
    return counts


def failures(url: str) -> list[str]:
    """Return why records could not be read."""
    with Consumer(f"{url}-failed", stop_at_end=True) as consumer:
        return [DeadLetter.of(record).error for record in consumer]


if __name__ == "__main__":
    write(sys.argv[1], (Order(**json.loads(line)) for line in sys.stdin))
    print(read(sys.argv[1]))
