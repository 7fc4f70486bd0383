"""Objects of classes with declared fields: ``values="json"`` writes them, ``values=Class`` both."""

import dataclasses
import enum
import json
import sys
import uuid
from datetime import UTC, date, datetime
from typing import Any

import pytest

from lance_sdk import Producer, Record
from lance_sdk.errors import ConfigError, UndecodableRecord
from lance_sdk.testing import FakeServer
from lance_sdk.values import Json, Model, codec_for

WHEN = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
NUMBER = uuid.UUID(int=7)


class State(enum.Enum):
    """Where an order stands."""

    NEW = "new"


@dataclasses.dataclass
class Line:
    """One line of an order."""

    article: str
    count: int = 1


@dataclasses.dataclass
class Order:
    """An order, with everything that JSON has no type for."""

    id: int
    lines: list[Line]
    at: datetime | None = None
    day: date = date(2026, 1, 31)
    state: State = State.NEW
    number: uuid.UUID = NUMBER
    by_name: dict[str, Line] = dataclasses.field(default_factory=dict)
    pair: tuple[Line, ...] = ()
    total: float = dataclasses.field(default=0.0, init=False)


ORDER = Order(7, [Line("apple", 2)], WHEN, by_name={"x": Line("pear")}, pair=(Line("fig"),))


def libraries() -> list[Any]:
    """Return a class of each library that is installed, as parameters; the others are skipped."""
    found = [pytest.param(Order, ORDER, id="dataclasses")]
    for name, make in (("attrs", _attrs), ("pydantic", _pydantic), ("msgspec", _msgspec)):
        try:
            found.append(pytest.param(*make(), id=name))
        except ImportError:
            skip = pytest.mark.skip(reason=f"{name} is not installed; `tox run -e examples` has it")
            found.append(pytest.param(None, None, id=name, marks=skip))
    return found


def _attrs() -> tuple[type, Any]:
    import attrs  # noqa: PLC0415 - it may be missing

    @attrs.define
    class Item:
        article: str
        _count: int = 1
        at: datetime = WHEN

    return Item, Item("apple", 2)


def _pydantic() -> tuple[type, Any]:
    import pydantic  # noqa: PLC0415 - it may be missing

    class Item(pydantic.BaseModel):
        article: str
        count: int = pydantic.Field(1, ge=0)
        at: datetime = WHEN

    return Item, Item(article="apple", count=2)


def _msgspec() -> tuple[type, Any]:
    import msgspec  # noqa: PLC0415 - it may be missing

    class Item(msgspec.Struct):
        article: str
        count: int = 1
        at: datetime = WHEN

    return Item, Item("apple", 2)


LIBRARIES = libraries()


@pytest.mark.anyio
@pytest.mark.parametrize(("model", "value"), LIBRARIES)
async def test_an_object_comes_back_as_it_was_sent(
    api: Any, server: FakeServer, model: type, value: Any
) -> None:
    """With ``values=Model`` on both sides, in iteration, batches and values()."""
    async with api.producer(server.url(), values=model) as producer:
        await producer.send(value, key="k")
        await producer.send(None, key="k")
    async with api.consumer(server.url(), values=model, stop_at_end=True) as consumer:
        found = [(record.key, record.value) async for record in consumer]
        await consumer.seek("beginning")
        values = [each async for each in consumer.values()]
    assert found == [(b"k", value), (b"k", None)]
    assert values == [value, None]


@pytest.mark.parametrize(("model", "value"), LIBRARIES)
def test_json_takes_objects_also_inside_others(model: type, value: Any) -> None:
    """Alone, in a list, and under a key: all alike."""
    assert model is type(value)
    alone = json.loads(Json().encode(value))
    assert json.loads(Json().encode({"a": [value]})) == {"a": [alone]}
    assert alone["article" if "article" in alone else "id"] in {"apple", 7}


@pytest.mark.parametrize(("model", "value"), LIBRARIES)
def test_a_body_that_is_no_such_object_is_undecodable(model: type, value: Any) -> None:
    """Another JSON, a missing field, and no JSON at all."""
    del value
    for body in (b"[1]", b"{}", b"{"):
        record = Record(3, 2, body, "orders", codec_for(model))
        with pytest.raises(UndecodableRecord, match="offset 3 of orders"):
            _ = record.value


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"id": 1}', "lines"),
        (b'{"id": 1, "lines": [{}]}', r"lines\[0\].*article"),
        (b'{"id": 1, "lines": [], "at": 7}', "at: expected the text of a datetime"),
        (b'{"id": 1, "lines": [], "state": "old"}', "old"),
        (b'{"id": 1, "lines": [3]}', r"lines\[0\]: expected an object of Line"),
    ],
)
def test_a_dataclass_that_does_not_fit_says_where(body: bytes, where: str) -> None:
    """The field is named."""
    with pytest.raises(ValueError, match=where):
        Model(Order).decode(body)


@dataclasses.dataclass
class Node:
    """One that may have others inside."""

    inner: "Node | None" = None


def test_a_body_nested_too_deeply_is_undecodable() -> None:
    """A record that is deeper than Python's stack does not end its reader."""
    depth = sys.getrecursionlimit() // 2
    body = b'{"inner":' * depth + b"null" + b"}" * depth
    with pytest.raises(UndecodableRecord, match="offset 0 of nodes"):
        Record(0, 0x02, body, "nodes").decode(Node)


def test_unknown_fields_are_passed_over() -> None:
    """So that writers may add some before readers know them."""
    assert Model(Line).decode(b'{"article": "fig", "colour": "blue"}') == Line("fig")


def test_another_class_is_refused() -> None:
    """The class that the producer takes is named, and what came instead."""
    with pytest.raises(TypeError, match="values=Order takes objects of this class, not dict"):
        Model(Order).encode({"id": 7})


def test_what_json_has_no_room_for_is_named() -> None:
    """With what to do."""
    with pytest.raises(TypeError, match=r"object .* is not JSON serializable; turn it"):
        Json().encode({"a": object()})


def test_a_class_without_fields_is_no_codec() -> None:
    """The message lists what is taken."""
    with pytest.raises(ConfigError, match="a dataclass, or one of pydantic"):
        Producer("lance://h/t", values=State)


def test_a_plain_producer_says_how_to_send_an_object(server: FakeServer) -> None:
    """By the option that encodes it."""
    with Producer(server.url()) as producer, pytest.raises(TypeError, match="values=Line too"):
        producer.send(Line("fig"))
