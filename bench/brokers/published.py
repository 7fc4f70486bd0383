"""Our server against the published one: the same client on both sides, in the published dialect.

The environment variable ``LANCE_BENCH_SERVER`` names the published server's program, which is to
be built with optimisation. It acknowledges after its own sync, which it makes when nothing has come
for 5 ms or 4 MiB wait.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import perf_counter

from bench.brokers.broker import free_port
from bench.brokers.child import running
from bench.harness import Rate, Scenario
from bench.peers import data_directory, server_process
from bench.scenarios.latency import quantile
from lance_sdk import Client, Producer

_PROGRAM = os.environ.get("LANCE_BENCH_SERVER", "")
_OTHER = "the published server, standalone, with the same client in the published dialect"
_SIZES = {"100B": (100, 100_000), "1KiB": (1024, 40_000)}
_SINGLE = 100
"""Records of one run in which each waits for its acknowledgement."""
_numbers = count()


@contextmanager
def _published() -> Iterator[str]:
    with data_directory() as folder:
        port = free_port()
        arguments = ["--listen", f"127.0.0.1:{port}", "--data-dir", str(folder)]
        for listener in ("--replication", "--metrics", "--health"):
            arguments += [listener, f"127.0.0.1:{free_port()}"]
        with running([_PROGRAM, *arguments], ready="Listening for connections"):
            yield f"127.0.0.1:{port}"


@contextmanager
def _topic(address: str) -> Iterator[Producer]:
    name = f"bench-{next(_numbers)}"
    with Client(f"lance://{address}", dialect="deployed") as client:
        client.create_topic(name)
        with Producer(f"lance://{address}/{name}", dialect="deployed") as producer:
            yield producer
        client.delete_topic(name)


def _send(address: str, value: bytes, records: int) -> float:
    """Return how many records a second were acknowledged."""
    with _topic(address) as producer:
        began = perf_counter()
        for _ in range(records):
            producer.send(value)
        producer.flush()
        return records / (perf_counter() - began)


def _single(address: str) -> float:
    """Return 1/s of the median time of a record that is waited for."""
    times = []
    with _topic(address) as producer:
        for _ in range(_SINGLE):
            began = perf_counter()
            producer.send(b"x" * 100).result(30)
            times.append(perf_counter() - began)
    return 1 / quantile(times, 0.5)


@contextmanager
def _sides(measure: Callable[[str], float]) -> Iterator[tuple[Rate, Rate]]:
    with server_process() as ours, _published() as theirs:
        yield partial(measure, ours), partial(measure, theirs)


def scenarios() -> Iterator[Scenario]:
    """Yield what is compared with the published server, where it is there."""
    if not _PROGRAM:
        print("no LANCE_BENCH_SERVER: the published server's are left out", file=sys.stderr)
        return
    for label, (size, records) in _SIZES.items():
        yield Scenario(
            name=f"published/publish-{label}",
            unit="records/s",
            other=_OTHER,
            sides=partial(_sides, partial(_send, value=b"x" * size, records=records)),
        )
    yield Scenario(
        name="published/single-p50",
        unit="1/s, of the p50 of send().result(), everything by default",
        other=_OTHER,
        sides=partial(_sides, _single),
    )
