"""Rules for clients and topics, as the file has them (LWP section 7.2)."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lance_server.config.file import SettingsFile
from lance_server.errors import ConfigError
from lance_server.security.access import AccessConfig, ClientAccess, TopicAccess

_TOPIC_KEYS: Final = ("mtls_enabled", "client_ca_path", "allowed_cns")
_CLIENT_KEYS: Final = ("allowed_topics", "read", "write", "admin")


def read_access(file: SettingsFile) -> AccessConfig | None:
    """Return the rules of a file, or None without any.

    Raises:
        ConfigError: a rule is not understood; the message names file and key.
    """
    table = _Table(file.path, "access", file.table("access"), ("topics", "clients"))
    topics = {
        name: _topic(_Table(file.path, f"access.topics.{name}", rule, _TOPIC_KEYS))
        for name, rule in table.tables("topics").items()
    }
    clients = {
        name: _client(_Table(file.path, f"access.clients.{name}", rule, _CLIENT_KEYS))
        for name, rule in table.tables("clients").items()
    }
    return AccessConfig(topics=topics, clients=clients) if topics or clients else None


class _Table:
    """A table whose keys are known."""

    def __init__(self, path: Path | None, name: str, values: Any, known: tuple[str, ...]) -> None:
        self._place = f"{path}: [{name}]"
        if not isinstance(values, dict):
            raise ConfigError(f"{self._place} must be a table, not {values!r}")
        for key in values:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}"
                raise ConfigError(f"{self._place} has no setting '{key}'; {hint}")
        self._values = values

    def tables(self, key: str) -> Mapping[str, Any]:
        """Return a table of tables."""
        value = self._values.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong(key, "a table", value)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false", value)
        return value

    def path(self, key: str) -> Path | None:
        """Return a file's name, or None."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, "a file name", value)
        return None if value is None else Path(value)

    def words(self, key: str, *kinds: type) -> frozenset[Any]:
        """Return a list of values of some types."""
        value = self._values.get(key, [])
        allowed = isinstance(value, list) and all(type(each) in kinds for each in value)
        if not allowed:
            names = " or ".join(_NAMES[kind] for kind in kinds)
            raise self._wrong(key, f"a list of {names}", value)
        return frozenset(value)

    def _wrong(self, key: str, wanted: str, value: object) -> ConfigError:
        return ConfigError(f"{self._place} {key} must be {wanted}, not {value!r}")


_NAMES: Final = {str: "strings", int: "numbers"}


def _topic(table: _Table) -> TopicAccess:
    return TopicAccess(
        mtls_enabled=table.flag("mtls_enabled", default=True),
        client_ca_path=table.path("client_ca_path"),
        allowed_cns=table.words("allowed_cns", str),
    )


def _client(table: _Table) -> ClientAccess:
    return ClientAccess(
        allowed_topics=table.words("allowed_topics", str, int),
        read=table.flag("read", default=True),
        write=table.flag("write", default=True),
        admin=table.flag("admin", default=False),
    )


def read_tokens(file: SettingsFile) -> tuple[str, ...]:
    """Return the tokens that stand in the file itself.

    Raises:
        ConfigError: they are not a list of strings; the message does not show them.
    """
    tokens = file.table("auth").get("tokens", [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ConfigError(f"{file.path}: auth.tokens must be a list of strings")
    return tuple(tokens)
