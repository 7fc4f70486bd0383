"""``python -m bench.soak.clients JOB URL``: a producer or a consumer at full rate.

When its standard input ends it stops, and prints how many records it was.
"""

import sys
from collections.abc import Callable

from bench.soak.orders import Orders
from lance_sdk import Consumer, Producer

_VALUE = b"x" * 100
_BLOCK = 10_000
"""Records between two looks at the orders."""


def produce(url: str) -> int:
    """Send records one by one; return how many were acknowledged."""
    orders, count = Orders(working=True), 0
    with Producer(url) as producer:
        send = producer.send
        while not orders.stop.is_set():
            for _ in range(_BLOCK):
                send(_VALUE)
            count += _BLOCK
            if orders.rest.is_set():
                producer.flush()
                orders.quiet.set()
                orders.go.wait()
        producer.flush()
    return count


def consume(url: str) -> int:
    """Read along; return how many records it was. It stops at the batch after the order."""
    orders, count = Orders(working=False), 0
    with Consumer(url) as consumer:
        for batch in consumer.batches():
            count += len(batch)
            if orders.stop.is_set():
                break
    return count


JOBS: dict[str, Callable[[str], int]] = {"produce": produce, "consume": consume}


if __name__ == "__main__":
    _, job, address = sys.argv
    print(JOBS[job](address), flush=True)
