"""Fields of a JSON object in a request."""

from collections.abc import Mapping, Sequence
from typing import Any

from lance_server.errors import ConfigError


class JsonBody:
    """An object whose fields are known.

    Args:
        name: what it describes, for messages.
        body: the object.
        known: the fields it may have.

    Raises:
        ConfigError: it is not an object, or has other fields.
    """

    def __init__(self, name: str, body: object, known: Sequence[str]) -> None:
        if not isinstance(body, Mapping):
            raise ConfigError(f"{name} must be an object with {', '.join(known)}, not {body!r}")
        for field in body:
            if field not in known:
                raise ConfigError(f"{name} has no field {field!r}; there is {', '.join(known)}")
        self._name = name
        self._body = body

    def _wrong(self, field: str, wanted: str) -> ConfigError:
        got = repr(self._body.get(field))[:80]
        return ConfigError(f"{self._name}: {field} must be {wanted}, not {got}")

    def choice(self, field: str, allowed: Sequence[str]) -> str:
        """Return one of several words; it must be there."""
        value = self._body.get(field)
        if value not in allowed:
            raise self._wrong(field, f"one of {', '.join(allowed)}")
        return str(value)

    def text(self, field: str) -> str | None:
        """Return a string, or None."""
        value = self._body.get(field)
        if value is not None and not isinstance(value, str):
            raise self._wrong(field, "a string")
        return value

    def flag(self, field: str) -> bool:
        """Return true or false; by default false."""
        value = self._body.get(field, False)
        if not isinstance(value, bool):
            raise self._wrong(field, "true or false")
        return value

    def whole(self, field: str, default: int = 0) -> int:
        """Return a whole number that is not negative."""
        value = self._body.get(field, default)
        if type(value) is not int or value < 0:
            raise self._wrong(field, "a whole number, 0 or more")
        return value

    def number(self, field: str, default: float = 0.0) -> float:
        """Return a number from 0 to 3600."""
        value = self._body.get(field, default)
        if type(value) not in (int, float) or not 0 <= value <= 3600:
            raise self._wrong(field, "a number of seconds from 0 to 3600")
        return float(value)

    def items(self, field: str) -> list[Any]:
        """Return a list; by default an empty one."""
        value = self._body.get(field, [])
        if not isinstance(value, list):
            raise self._wrong(field, "a list")
        return value
