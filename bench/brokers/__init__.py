"""Publishing with durable acknowledgements: our SDK and server against other brokers.

The brokers come from the distribution's packages, their clients are the usual ones for Python,
and each syncs as durably as its version allows; the scenario says what that means.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter

from bench.brokers import kafka, nats, published, redis
from bench.brokers.broker import Broker, missing
from bench.harness import Rate, Scenario
from bench.peers import server_process
from lance_sdk import Client, Producer

_OURS = {100: 200_000, 1024: 60_000}
"""Records that we send in a run, by their size."""
_TOPIC = "bench"
_SIZES = {"100B": 100, "1KiB": 1024}


def _send(address: str, value: bytes, count: int) -> float:
    """Send records one by one; return how many a second, the last acknowledgement included.

    The topic is deleted afterwards, as the brokers' streams are emptied.
    """
    with Producer(f"lance://{address}/{_TOPIC}", create_topic=True) as producer:
        send, began = producer.send, perf_counter()
        for _ in range(count):
            send(value)
        producer.flush()
        seconds = perf_counter() - began
    with Client(f"lance://{address}") as client:
        client.delete_topic(_TOPIC)
    return count / seconds


@contextmanager
def _sides(broker: Broker, size: int) -> Iterator[tuple[Rate, Rate]]:
    with server_process() as ours, broker.served() as theirs:
        value = b"x" * size
        yield (
            partial(_send, ours, value, _OURS[size]),
            partial(broker.publish, theirs, value, broker.records),
        )


def _scenarios(broker: Broker) -> Iterator[Scenario]:
    if lacking := missing(broker):
        print(f"no {lacking}: the {broker.name} scenarios are left out", file=sys.stderr)
        return
    for label, size in _SIZES.items():
        yield Scenario(
            name=f"brokers/{broker.name}-publish-{label}",
            unit="records/s",
            other=f"{broker.compared()} (ours: Producer.send, synced before every acknowledgement)",
            sides=partial(_sides, broker, size),
        )


def _kafka_scenarios() -> Iterator[Scenario]:
    if lacks := kafka.lacking():
        print(f"no {lacks}: the kafka scenarios are left out", file=sys.stderr)
        return
    yield from kafka.scenarios()


SCENARIOS = (
    *_scenarios(nats.BROKER),
    *_scenarios(redis.BROKER),
    *_kafka_scenarios(),
    *published.scenarios(),
)
