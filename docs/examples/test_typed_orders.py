"""Tests of typed records, with the fixtures that come with ``lance-sdk``."""

from typing import Any

from typed_orders import Order, failures, read, write

from lance_sdk import Producer


def test_orders_are_counted_by_article(lance_fake_server: Any) -> None:
    """Each is an object again when it is read."""
    url = lance_fake_server.url("orders")
    write(url, [Order(1, "fig", 3), Order(2, "fig")])
    assert read(url) == {"fig": 4}


def test_what_is_no_order_becomes_a_dead_letter(lance_fake_server: Any) -> None:
    """It says what is missing, and the others are counted."""
    url = lance_fake_server.url("orders")
    write(url, [Order(1, "fig")])
    with Producer(url) as producer:
        producer.send(b'{"id": 3}')
    assert read(url) == {"fig": 1}
    (why,) = failures(url)
    assert "article" in why
