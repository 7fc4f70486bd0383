"""Tests of the service, with the fixtures that come with ``lance-sdk``."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from orders_api import Order, app

from lance_sdk import Consumer
from lance_spec.enums import ErrorCode


@pytest.fixture
def client(lance_fake_server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a client of the running service."""
    monkeypatch.setenv("ORDERS_URL", lance_fake_server.url("orders"))
    with TestClient(app) as client:
        yield client


def test_an_order_is_stored_when_it_is_answered(client: Any, lance_fake_server: Any) -> None:
    """With its article as the key."""
    assert client.post("/orders", json={"id": 7, "article": "fig"}).status_code == 201
    with Consumer(lance_fake_server.url("orders"), values=Order, stop_at_end=True) as consumer:
        (record,) = consumer
    assert (record.key, record.value) == (b"fig", Order(id=7, article="fig"))


def test_an_order_that_is_not_one_is_refused(client: Any, lance_fake_server: Any) -> None:
    """Nothing is stored."""
    assert client.post("/orders", json={"id": 7, "article": "fig", "count": 0}).status_code == 422
    assert lance_fake_server.records() == []


def test_a_server_that_refuses_is_told_as_unavailable(client: Any, lance_fake_server: Any) -> None:
    """And whether the order may be stored."""

    def refuse(peer: Any, frame: Any) -> bool:
        peer.error(ErrorCode.ACCESS_DENIED, "read only", batch_id=frame.batch_id)
        return True

    lance_fake_server.on_ingest = refuse
    answer = client.post("/orders", json={"id": 7, "article": "fig"})
    assert answer.status_code == 503
    assert answer.json()["detail"]["maybe_stored"] is False
    assert "read only" in answer.json()["detail"]["error"]
