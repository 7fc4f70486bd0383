"""Both clients have the same names, parameters, defaults and promises."""

import copy
import dataclasses
import inspect
import pickle
import pkgutil
import pydoc
import re
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import pytest

import lance_sdk

PAIRS = [
    ("Producer", "AsyncProducer"),
    ("Consumer", "AsyncConsumer"),
    ("Client", "AsyncClient"),
    ("Delivery", "AsyncDelivery"),
    ("Deliveries", "AsyncDeliveries"),
]
apis = pytest.mark.parametrize(("sync", "async_"), PAIRS)


def public(name: str) -> dict[str, Any]:
    """Return what an application may use of a class."""
    cls = getattr(lance_sdk, name)
    return {
        each: inspect.getattr_static(cls, each)
        for each in dir(cls)
        if not each.startswith("_") or each == "__init__"
    }


@apis
def test_names_are_the_same(sync: str, async_: str) -> None:
    """Neither client has anything that the other lacks."""
    assert public(sync).keys() == public(async_).keys()


@pytest.mark.parametrize("name", ["Delivery", "AsyncDelivery"])
def test_a_delivery_shows_its_record_only(name: str) -> None:
    """The batch it travels in is nobody's business, and it is no tuple."""
    verbs = {"add_done_callback", "done", "exception", "result"}
    assert public(name).keys() - {"__init__"} == verbs


@pytest.mark.parametrize(
    ("name", "config"),
    [("Producer", "ProducerConfig"), ("Consumer", "ConsumerConfig"), ("Client", "ClientConfig")],
)
@pytest.mark.parametrize("api", ["", "Async"])
def test_a_signature_shows_every_option(name: str, config: str, api: str) -> None:
    """With its type and its default, also in `help`."""
    shown = inspect.signature(getattr(lance_sdk, api + name)).parameters
    fields = {field.name: field for field in dataclasses.fields(getattr(lance_sdk, config))}
    assert shown.keys() == {"url", *fields}
    for option, field in fields.items():
        assert shown[option].default == field.default
        assert option == "values" or shown[option].annotation == field.type
    text = pydoc.render_doc(getattr(lance_sdk, api + name), renderer=pydoc.plaintext)
    constructor = next(line for line in text.splitlines() if line.startswith(" |  __init__("))
    assert "open_timeout: float | datetime.timedelta = 0.0" in constructor


def public_classes() -> Iterator[type]:
    """Yield the classes that the packages for applications name."""
    left = {"cli", "spark", "pytest_plugin"}  # a command, what takes Spark's options, fixtures
    names = {each.name for each in pkgutil.iter_modules(lance_sdk.__path__)} - left
    for name in sorted(["", ".fluvio.aio", *(f".{each}" for each in names if each[0] != "_")]):
        module = import_module(f"lance_sdk{name}")
        for each in map(partial(getattr, module), getattr(module, "__all__", ())):
            if inspect.isclass(each) and not inspect.isabstract(each):
                yield each


def test_no_public_class_hides_its_options() -> None:
    """What a constructor takes is told by name, type and default."""
    seen = 0
    for each in set(public_classes()):
        constructor = vars(each).get("__init__")
        if inspect.isfunction(constructor) and constructor.__module__.startswith("lance_sdk"):
            seen += 1
            for shown in (each, constructor):
                kinds = {one.kind for one in inspect.signature(shown).parameters.values()}
                assert inspect.Parameter.VAR_KEYWORD not in kinds, each
    assert seen > len(PAIRS)


@apis
def test_parameters_and_defaults_are_the_same(sync: str, async_: str) -> None:
    """So that a program changes sides by adding `await`."""
    others = public(async_)
    for name, member in public(sync).items():
        if callable(member):
            mine, theirs = inspect.signature(member), inspect.signature(others[name])
            assert list(mine.parameters.values()) == list(theirs.parameters.values()), name


def test_dead_letters_take_the_same() -> None:
    """Each takes its own client's producer and handlers, under the same names and defaults."""
    others = public("AsyncDeadLetters")
    mine = public("DeadLetters")
    assert mine.keys() == others.keys()
    for name in ("__init__", "handle"):
        one, two = (inspect.signature(each[name]).parameters for each in (mine, others))
        assert [(each.name, each.kind, each.default) for each in one.values()] == [
            (each.name, each.kind, each.default) for each in two.values()
        ]
        assert raises(mine[name]) == raises(others[name])


@apis
def test_results_are_the_same(sync: str, async_: str) -> None:
    """Apart from the names of the handles and of the iterators."""
    others = public(async_)
    for name, member in public(sync).items():
        if callable(member):
            mine = str(inspect.signature(member).return_annotation)
            theirs = str(inspect.signature(others[name]).return_annotation)
            plain = theirs.replace(".aio.", ".").replace("Async", "")
            assert mine == plain, name


@apis
def test_promises_are_the_same(sync: str, async_: str) -> None:
    """The errors a method documents are those its twin documents."""
    others = public(async_)
    for name, member in public(sync).items():
        assert raises(member) == raises(others[name]), name


def raises(member: Any) -> list[str]:
    """Return the errors that a docstring lists."""
    text = inspect.getdoc(member) or ""
    _, _, section = text.partition("Raises:\n")
    return re.findall(r"^    (\w+):", section, re.MULTILINE)


def test_the_public_names_are_documented() -> None:
    """Whatever `lance_sdk` exports has a docstring of its own."""
    for name in lance_sdk.__all__:
        value = getattr(lance_sdk, name)
        if not isinstance(value, str):
            assert value.__doc__, name


def test_every_public_method_is_documented() -> None:
    """On both APIs."""
    for pair in PAIRS:
        for api in pair:
            for name, member in public(api).items():
                told_by_class = name == "__init__" or inspect.ismemberdescriptor(member)
                assert told_by_class or inspect.getdoc(member), f"{api}.{name}"


@pytest.mark.parametrize("name", [name for pair in PAIRS[:3] for name in pair])
def test_apis_are_neither_pickled_nor_copied(name: str) -> None:
    """They hold a connection; the error says what can travel instead."""
    api = getattr(lance_sdk, name)("lance://h/t")
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=f"hand on the URL and the options, and make a {name}"):
            attempt(api)
