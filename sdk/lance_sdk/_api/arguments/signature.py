"""What a class that takes options shows to `help` and `inspect.signature`."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Parameter, Signature

    from lance_sdk.config import ClientConfig


class OptionSignature:
    """The ``__signature__`` of a class whose ``**options`` are the fields of its settings.

    Made when it is asked for: importing `inspect` takes longer than opening a connection.

    Args:
        config: the class of the settings.
    """

    def __init__(self, config: "type[ClientConfig]") -> None:
        self._config = config

    def __repr__(self) -> str:
        return f"<OptionSignature {self._config.__name__}>"

    def __get__(self, instance: object, owner: type | None = None) -> "Signature":
        from inspect import Parameter, Signature  # noqa: PLC0415 - see above

        from lance_sdk.url import URL  # noqa: PLC0415 - it uses settings, too

        parameters = [Parameter("url", Parameter.POSITIONAL_OR_KEYWORD, annotation=str | URL)]
        return Signature([*parameters, *_keywords(self._config)])


class ExpandedSignature:
    """The ``__signature__`` of a class whose ``**options`` are fields of several settings.

    Args:
        configs: the classes of the settings, each with those of its fields that are options; one
            that two have is shown as the last has it.
    """

    def __init__(self, configs: Mapping[type[Any], Collection[str]]) -> None:
        self._configs = configs

    def __repr__(self) -> str:
        return f"<ExpandedSignature {', '.join(each.__name__ for each in self._configs)}>"

    def __get__(self, instance: object, owner: type) -> "Signature":
        from inspect import Parameter, signature  # noqa: PLC0415 - as above

        constructor = signature(owner.__init__)  # type: ignore[misc]  # looked at, not called
        own = [
            each
            for name, each in constructor.parameters.items()
            if name != "self" and each.kind is not Parameter.VAR_KEYWORD
        ]
        taken = {each.name for each in own}
        options = {
            each.name: each
            for config, names in self._configs.items()
            for each in _keywords(config)
            if each.name in names and each.name not in taken
        }
        return constructor.replace(parameters=[*own, *options.values()])


def _keywords(config: type[Any]) -> "Iterator[Parameter]":
    from inspect import Parameter  # noqa: PLC0415 - as above

    for field in dataclasses.fields(config):
        made = field.default_factory
        default = field.default if made is dataclasses.MISSING else made()
        keyword: dict[str, Any] = {"annotation": field.type, "default": default}
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, **keyword)
