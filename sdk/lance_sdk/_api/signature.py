"""What a class that takes options shows to `help` and `inspect.signature`."""

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

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
        for field in dataclasses.fields(self._config):
            keyword: dict[str, Any] = {"annotation": field.type, "default": field.default}
            parameters.append(Parameter(field.name, Parameter.KEYWORD_ONLY, **keyword))
        return Signature(parameters)
