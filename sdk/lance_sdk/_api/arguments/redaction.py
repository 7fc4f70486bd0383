"""A connection's own secrets, kept out of what the server says.

A server may put what it was sent into its own words, and those end up in messages and logs.
"""

from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "***"
"""Stands where a secret was."""
_TELLING: Final = 4
"""Characters of a secret that tell something when a text was cut in the middle of it."""
_ADDRESS: Final = "leader_addr"
"""The one detail that is not only shown but used: a name in it may not change."""


class Redaction:
    """Hides secrets in a server's words.

    Args:
        secrets: what to hide; empty ones and None hide nothing.
    """

    __slots__ = ("_secrets",)

    def __init__(self, *secrets: str | None) -> None:
        # The longest first: one may be a part of another.
        self._secrets = sorted((each for each in secrets if each), key=len, reverse=True)

    def __repr__(self) -> str:
        return f"<Redaction of {len(self._secrets)} secrets>"

    def text(self, text: str) -> str:
        """Return a text without the secrets, and without the beginning of one at its end."""
        for secret in self._secrets:
            text = _without_beginning(text.replace(secret, HIDDEN), secret)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without the secrets, in its keys as in its values."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return value

    def details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """Return the details of an ErrorResponse without the secrets.

        The leader's address stays as it is, unless it is a secret: a short token may well be a
        part of a host's name, and the leader has to be found.
        """
        shown: dict[str, Any] = self.value(details)
        address = details.get(_ADDRESS)
        if isinstance(address, str) and address not in self._secrets:
            shown[_ADDRESS] = address
        return shown


def _without_beginning(text: str, secret: str) -> str:
    """Hide a secret whose end was cut off with the end of the text."""
    for length in range(len(secret) - 1, _TELLING - 1, -1):
        if text.endswith(secret[:length]):
            return text[:-length] + HIDDEN
    return text
