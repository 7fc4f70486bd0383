"""Which refusals are worth another try, and how often."""

from typing import Any

import pytest

from lance_sdk import RetryPolicy
from lance_sdk.errors import (
    ConfigError,
    DeliveryFailed,
    InternalServerError,
    QuorumNotReached,
    RateLimited,
    StorageError,
)
from lance_sdk.testing import FakePeer, FakeServer
from lance_spec.enums import ErrorCode
from lance_spec.frames import Frame

pytestmark = pytest.mark.anyio


def refuse(server: FakeServer, code: ErrorCode, times: int) -> None:
    """Have the server refuse the first Ingest frames."""
    left = times

    def hook(peer: FakePeer, frame: Frame) -> bool:
        nonlocal left
        left -= 1
        if left >= 0:
            peer.error(code, f"refused with {code.name}", batch_id=frame.batch_id)
        return left >= 0

    server.on_ingest = hook


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER,
        ErrorCode.QUORUM_NOT_REACHED,
        ErrorCode.LEADER_UNKNOWN,
        ErrorCode.CLUSTER_NOT_READY,
        ErrorCode.RATE_LIMITED,
        ErrorCode.BACKPRESSURE,
        ErrorCode.TIMEOUT_ERROR,
    ],
)
async def test_what_passes_is_tried_again(api: Any, server: FakeServer, code: ErrorCode) -> None:
    """LWP section 12.4: with the same id and the same bytes."""
    refuse(server, code, 3)
    async with api.producer(server.url()) as producer:
        receipt = await (await producer.send(b"x")).result(timeout=30)
    assert receipt.attempts == 4
    assert len({(each.batch_id, each.payload) for each in server.ingested}) == 1
    assert server.records() == [b"x"]


@pytest.mark.parametrize(
    "code",
    [ErrorCode.TOPIC_NOT_FOUND, ErrorCode.ACCESS_DENIED, ErrorCode.STORAGE_ERROR],
)
async def test_what_does_not_pass_fails_at_once(
    api: Any, server: FakeServer, code: ErrorCode
) -> None:
    """Trying again would only take time."""
    refuse(server, code, 1)
    async with api.producer(server.url()) as producer:
        with pytest.raises(DeliveryFailed):
            await (await producer.send(b"x")).result(timeout=30)
    assert len(server.ingested) == 1


async def test_a_policy_may_try_more(api: Any, server: FakeServer) -> None:
    """Whoever knows that the disk comes back."""
    refuse(server, ErrorCode.STORAGE_ERROR, 2)
    retry = RetryPolicy(also={ErrorCode.STORAGE_ERROR})
    async with api.producer(server.url(), retry=retry) as producer:
        assert (await (await producer.send(b"x")).result(timeout=30)).attempts == 3


async def test_a_policy_may_try_less(api: Any, server: FakeServer) -> None:
    """And says so with the server's own error."""
    refuse(server, ErrorCode.QUORUM_NOT_REACHED, 1)
    retry = RetryPolicy(never=[ErrorCode.QUORUM_NOT_REACHED])
    async with api.producer(server.url(), retry=retry) as producer:
        failure = (await settled(producer)).exception()
    assert isinstance(failure.cause, QuorumNotReached)
    assert failure.maybe_applied


async def test_a_policy_may_count(api: Any, server: FakeServer) -> None:
    """max_attempts ends what would go on until delivery_timeout."""
    refuse(server, ErrorCode.RATE_LIMITED, 100)
    async with api.producer(server.url(), retry=RetryPolicy(max_attempts=3)) as producer:
        failure = (await settled(producer)).exception()
    assert isinstance(failure.cause, RateLimited)
    assert len(server.ingested) == 3


async def settled(producer: Any) -> Any:
    """Send a record and return its handle once it has failed."""
    delivery = await producer.send(b"x")
    with pytest.raises(DeliveryFailed):
        await delivery.result(timeout=30)
    return delivery


@pytest.mark.parametrize(
    "options",
    [{"max_attempts": -1}, {"also": {0}}, {"never": {"x"}}, {"also": {0x61}, "never": {0x61}}],
)
def test_a_policy_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """When it is made."""
    with pytest.raises(ConfigError):
        RetryPolicy(**options)


def test_the_classes_say_what_the_policy_says() -> None:
    """The default goes by the error's own word."""
    assert QuorumNotReached.retryable
    assert not StorageError.retryable
    assert not InternalServerError.retryable
