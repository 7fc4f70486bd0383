"""The clients of a group's member have the same names and parameters."""

import inspect

import lance_sdk
from lance_sdk.groups import AsyncGroupConsumer, GroupConsumer


def public(kind: type) -> dict[str, list[tuple[str, object]]]:
    """Return the public methods with their parameters, and the properties."""
    found: dict[str, list[tuple[str, object]]] = {}
    for name, value in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            found[name] = []
        else:
            parameters = inspect.signature(value).parameters.values()
            found[name] = [(each.name, each.default) for each in parameters]
    return found


def test_same_methods() -> None:
    """What threads have, tasks have, and the other way round."""
    assert public(GroupConsumer) == public(AsyncGroupConsumer)


def test_same_constructor() -> None:
    """Both are made with the same options and defaults."""
    sync, tasks = (inspect.signature(kind) for kind in (GroupConsumer, AsyncGroupConsumer))
    assert sync == tasks


def test_both_are_public() -> None:
    """Both come from the package itself."""
    assert lance_sdk.GroupConsumer is GroupConsumer
    assert lance_sdk.AsyncGroupConsumer is AsyncGroupConsumer
