"""Signatures that classes with options show to `help` and `inspect.signature`."""

import dataclasses
from collections.abc import Callable, Collection, Iterator
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

T = TypeVar("T")


def shows_options(*options: type | tuple[type, Collection[str]]) -> Callable[[type[T]], type[T]]:
    """Return a decorator for a class whose ``**options`` are fields of settings.

    The class and its constructor then show each option with its type and default.

    Args:
        options: the classes of the settings, some with those of their fields that are options; one
            that two have is shown as the last has it.
    """

    def decorate(owner: type[T]) -> type[T]:
        constructor: Any = vars(owner)["__init__"]
        plain = signature(constructor)
        own = [each for each in plain.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        names = {each.name for each in own}
        shown = {each.name: each for each in _keywords(options) if each.name not in names}
        parameters = [*own, *shown.values()]
        constructor.__signature__ = plain.replace(parameters=parameters)
        shown_by: Any = owner
        shown_by.__signature__ = Signature(parameters[1:])
        return owner

    return decorate


def _keywords(options: Collection[type | tuple[type, Collection[str]]]) -> Iterator[Parameter]:
    for each in options:
        config, names = each if isinstance(each, tuple) else (each, None)
        for field in dataclasses.fields(config):
            if names is None or field.name in names:
                made = field.default_factory
                default = field.default if made is dataclasses.MISSING else made()
                keyword: dict[str, Any] = {"annotation": field.type, "default": default}
                yield Parameter(field.name, Parameter.KEYWORD_ONLY, **keyword)
