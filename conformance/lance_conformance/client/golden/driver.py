"""The golden client behind the operations of a driver."""

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from lance_conformance.client.driver import DriverDiedError
from lance_conformance.client.golden.client import GOLDEN, Client
from lance_conformance.client.golden.specified import Specified
from lance_conformance.client.golden.subscription import Subscription
from lance_conformance.client.golden.values import Batch, Body, ProblemError, Record, Settings

Request = Mapping[str, Any]
Operation = Callable[["GoldenDriver", Request], Awaitable[Body]]
_OPERATIONS: dict[str, Operation] = {}


def _operation(function: Operation) -> Operation:
    _OPERATIONS[function.__name__] = function
    return function


class GoldenDriver:
    """A driver in this process.

    Args:
        rules: Makes the rules of a client, for a dialect.
    """

    def __init__(
        self, rules: Callable[[str], Specified] = lambda dialect: GOLDEN[dialect]()
    ) -> None:
        self._rules = rules
        self.client: Client | None = None
        self.subscription: Subscription | None = None
        self.waiting: list[Batch] = []

    async def call(self, request: Request) -> Body:
        """Carry out one operation."""
        operation = _OPERATIONS.get(str(request["op"]))
        if operation is None:
            return {"unsupported": True}
        try:
            return {"ok": await operation(self, request)}
        except ProblemError as problem:
            return {"error": {"kind": problem.kind, "text": problem.text}}
        except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as problem:
            raise DriverDiedError(f"{type(problem).__name__}: {problem}") from problem

    async def end(self) -> None:
        """Hang up."""
        await _close(self, {})

    def begin(self, request: Request) -> None:
        """Be a fresh client."""
        rules = self._rules(request["dialect"])
        settings = Settings(
            request["host"], request["port"], request["timeout"], request.get("token"),
            request.get("ca"), request.get("keepalive", 0.0),
        )  # fmt: skip
        self.client, self.subscription, self.waiting = Client(rules, settings), None, []


def _client(driver: GoldenDriver) -> Client:
    assert driver.client is not None, "connect comes first"
    return driver.client


def _subscription(driver: GoldenDriver) -> Subscription:
    assert driver.subscription is not None, "subscribe comes first"
    return driver.subscription


def _records(request: Request) -> list[Record]:
    return [Record(each["type"], base64.b64decode(each["value"])) for each in request["records"]]


def _shown(records: list[Record]) -> list[Body]:
    return [{"type": r.type, "value": base64.b64encode(r.value).decode()} for r in records]


async def _close(driver: GoldenDriver, _request: Request) -> Body:
    if driver.subscription is not None:
        await driver.subscription.end()
    if driver.client is not None:
        await driver.client.close()
    return {}


_OPERATIONS["close"] = _close


@_operation
async def connect(driver: GoldenDriver, request: Request) -> Body:
    """Begin; the connection is made with the first request."""
    driver.begin(request)
    return {}


@_operation
async def ping(driver: GoldenDriver, _request: Request) -> Body:
    """Make the connection."""
    client = _client(driver)
    await client.connection(client.until())
    return {}


@_operation
async def send(driver: GoldenDriver, request: Request) -> Body:
    """Send a batch and wait for its Ack."""
    client = _client(driver)
    batch = client.put(request["topic"]["id"], _records(request))
    await client.settle()
    if batch.problem is not None:
        raise batch.problem
    return {}


@_operation
async def send_async(driver: GoldenDriver, request: Request) -> Body:
    """Send a batch."""
    client = _client(driver)
    batch = client.put(request["topic"]["id"], _records(request))
    driver.waiting.append(batch)
    await client.push()
    return {"ticket": batch.ticket}


@_operation
async def flush(driver: GoldenDriver, _request: Request) -> Body:
    """Wait for all batches."""
    client = _client(driver)
    await client.settle()
    batches, driver.waiting = client.rules.flushed(driver.waiting, client.batches), []
    failed = [
        {"ticket": b.ticket, "kind": b.problem.kind, "text": b.problem.text}
        for b in batches
        if b.problem is not None
    ]
    return {"acked": [b.ticket for b in batches if b.acked], "failed": failed}


@_operation
async def create_topic(driver: GoldenDriver, request: Request) -> Body:
    """Create a topic, limited or not."""
    client = _client(driver)
    rules, name = client.rules, request["name"]
    if "max_bytes" in request:
        payload = rules.limited(name, request["max_age_secs"], request["max_bytes"])
        frame = await client.ask(0x06, payload, 0x80)
    else:
        frame = await client.ask(0x01, rules.name(name), 0x80)
    return rules.topic_of(rules.body(frame.payload))


@_operation
async def list_topics(driver: GoldenDriver, _request: Request) -> Body:
    """List topics."""
    client = _client(driver)
    frame = await client.ask(0x03, b"", 0x80)
    return {"topics": client.rules.topics_of(client.rules.body(frame.payload))}


@_operation
async def get_topic(driver: GoldenDriver, request: Request) -> Body:
    """Ask about a topic."""
    client = _client(driver)
    rules = client.rules
    frame = await client.ask(0x04, rules.topic(request["topic_id"]), 0x80)
    return rules.found(rules.topic_of(rules.body(frame.payload)), request["topic_id"])


@_operation
async def delete_topic(driver: GoldenDriver, request: Request) -> Body:
    """Delete a topic."""
    client = _client(driver)
    frame = await client.ask(0x02, client.rules.topic(request["topic_id"]), 0x80)
    client.rules.about(client.rules.body(frame.payload), "deleted", request["topic_id"])
    return {}


@_operation
async def set_retention(driver: GoldenDriver, request: Request) -> Body:
    """Limit a topic."""
    client = _client(driver)
    limits = request["max_age_secs"], request["max_bytes"]
    frame = await client.ask(0x05, client.rules.retention(request["topic_id"], *limits), 0x80)
    client.rules.about(client.rules.body(frame.payload), "topic_id", request["topic_id"])
    return {}


@_operation
async def fetch(driver: GoldenDriver, request: Request) -> Body:
    """Fetch once."""
    client = _client(driver)
    found = await client.fetch(request["topic"]["id"], request["offset"], request["max_bytes"])
    return {"records": _shown(found.records), "next_offset": found.next_offset}


@_operation
async def subscribe(driver: GoldenDriver, request: Request) -> Body:
    """Begin to read."""
    client = _client(driver)
    place = request["topic"]["id"], request["offset"], request["max_bytes"]
    number = client.rules.consumer(request["consumer"])
    driver.subscription = Subscription(client, *place, number)
    await driver.subscription.begin()
    return {}


@_operation
async def poll(driver: GoldenDriver, _request: Request) -> Body:
    """The next records."""
    return {"records": _shown(await _subscription(driver).poll())}


@_operation
async def commit(driver: GoldenDriver, request: Request) -> Body:
    """Commit an offset."""
    await _subscription(driver).commit(request["offset"])
    return {}
