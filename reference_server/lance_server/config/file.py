"""Settings from a TOML file."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from lance_server.errors import ConfigError

STRUCTURED: Final = ("auth.tokens", "access")
"""What only a file can say: it is secret, or it is more than a word."""

_IMPLIED: Final = ("tls.enabled", "auth.enabled")
_LARGEST: Final = 1024 * 1024


class SettingsFile:
    """A file that was read.

    Args:
        path: the file.
        settings: its content.
    """

    def __init__(self, path: Path | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._settings = dict(settings or {})

    def __repr__(self) -> str:
        return f"<SettingsFile {self.path}>"

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """Read a file.

        Raises:
            ConfigError: it cannot be read, or is not TOML; the message has line and column.
        """
        try:
            with path.open("rb") as file:
                raw = file.read(_LARGEST + 1)
            if len(raw) > _LARGEST:
                raise ConfigError(
                    f"{path} is larger than {_LARGEST} bytes; name a configuration file"
                )
            return cls(path, tomllib.loads(raw.decode()))
        except OSError as error:
            raise ConfigError(f"cannot read '{path}': {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not TOML: {error}") from error

    def table(self, name: str) -> Mapping[str, Any]:
        """Return a table of the file; empty when it is not there.

        Raises:
            ConfigError: it is something else.
        """
        value = self._settings.get(name, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{self.path}: [{name}] must be a table, not {value!r}")
        return value

    def defaults(self, command: click.Command, context: click.Context) -> dict[str, Any]:
        """Return the values of a command's options.

        Raises:
            ConfigError: a key is unknown, or its value is not allowed.
        """
        parameters = {each.name: each for each in command.params if each.name}
        values: dict[str, Any] = {}
        for key, value in _flat(self._settings):
            name = key.replace(".", "_")
            if name not in parameters:
                raise ConfigError(f"{self.path}: there is no setting '{key}'{_hint(key, command)}")
            try:
                values[name] = parameters[name].type_cast_value(context, value)
            except click.BadParameter as error:
                raise ConfigError(f"{self.path}: {key}: {error.message}") from error
        return values


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a table and of those in it, by their dotted names."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if key in STRUCTURED or key in _IMPLIED:
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def dotted(name: str, tables: tuple[str, ...] = ("tls", "auth", "otel")) -> str:
    """Return how an option is written in the file: ``tls_cert_path`` is ``tls.cert_path``."""
    table, _, rest = name.partition("_")
    return f"{table}.{rest}" if table in tables else name


def _hint(key: str, command: click.Command) -> str:
    known = [dotted(each.name) for each in command.params if each.name] + list(STRUCTURED)
    close = difflib.get_close_matches(key, known, n=1) or difflib.get_close_matches(
        key.rpartition(".")[2], known, n=1
    )
    return f"; did you mean '{close[0]}'?" if close else "; see the list of options"
