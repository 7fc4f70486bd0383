"""Ctrl-C at any step of a change of topics: the application goes on as if it had not been."""

from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from tests.interrupts import strikes

from lance_sdk import Client, Producer
from lance_sdk._api import interruptible
from lance_sdk.groups import Coordinator, GroupConsumer
from lance_sdk.groups._protocol.membership import Change

MINUTE = 60.0
MEMBER = "groups"
"""Where a change is applied."""


@pytest.fixture(autouse=True)
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look often, so that the tests are fast."""
    monkeypatch.setattr(interruptible, "LOOK", 0.02)


def member(server: Any, coordinator: Coordinator) -> GroupConsumer:
    """Return the member of a new group, which reads a new topic."""
    name = uuid4().hex[:8]
    with Client(server.url) as client:
        client.create_topic(name)
    return GroupConsumer(server.url, group=name, topics=[name], coordinator=coordinator.url)


def revoke(consumer: GroupConsumer) -> None:
    """Have the member's topic revoked; a sync after its release brings it back."""
    with consumer._driver.lock:
        revoked = dict.fromkeys(consumer._member.held, monotonic() + MINUTE)
        consumer._member._release_by.update(revoked)
        consumer._member.changes.tell(Change(consumer.generation, revoked=consumer.assignment))


def wait_for_change(consumer: GroupConsumer) -> None:
    """Wait until there is a change to apply."""
    consumer._news.clear()
    consumer._arm()
    while not consumer._member.changes:
        consumer._news.wait(MINUTE)


def require_reading(server: Any, consumer: GroupConsumer) -> None:
    """Require that the member reads its topic, from where it began."""
    until = monotonic() + MINUTE / 2
    while not consumer.assignment or consumer.position(consumer.assignment[0]) is None:
        assert monotonic() < until, "the member has no topic, or does not read it"
        consumer.poll(0.01)
    with Producer(f"{server.url}/{consumer.assignment[0].label}") as producer:
        producer.send(b"x")
    batch = consumer.poll(MINUTE / 2)
    assert batch is not None, "nothing is read"
    assert [record.value for record in batch] == [b"x"]


def test_a_topic_that_was_assigned_is_read(server: Any, coordinator: Coordinator) -> None:
    """Also where Ctrl-C came after the member took note of it, and before it began to read."""
    for strike in strikes(within=MEMBER):
        with member(server, coordinator) as consumer:
            wait_for_change(consumer)
            strike(consumer._attend)
            require_reading(server, consumer)


def test_a_topic_that_was_revoked_is_released(server: Any, coordinator: Coordinator) -> None:
    """In time; the member gets it back then, as nobody else wants it."""
    for strike in strikes(within=MEMBER):
        with member(server, coordinator) as consumer:
            wait_for_change(consumer)
            consumer._attend()
            revoke(consumer)
            strike(consumer._attend)
            require_reading(server, consumer)
