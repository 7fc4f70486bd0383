"""Stores by URL: what ``offsets=`` of a consumer and ``--store`` of a command take.

::

    memory:                              as long as the process lives
    file:/var/lib/app/offsets            files, one consumer a name at a time
    sqlite:/var/lib/app/offsets.db       a SQLite database
    redis://host:6379/0                  Redis (rediss:// with TLS), extra redis
    postgresql://user@host/database      PostgreSQL, extra postgres
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from lance_sdk.errors import ConfigError
from lance_sdk.offsets.contract import OffsetStore
from lance_sdk.offsets.files import FileStore
from lance_sdk.offsets.memory import MemoryStore

__all__ = ["open_store"]

DURABLE_FORMS: Final = "file:FOLDER, sqlite:FILE, redis://HOST or postgresql://HOST/DATABASE"
"""The URLs of stores that outlive their process, for messages."""


def open_store(url: str | OffsetStore) -> OffsetStore:
    """Return the store that a URL names.

    Args:
        url: the URL; a store is returned as it is.

    Raises:
        ConfigError: no such kind of store, or its driver is not installed.
        StoreUnavailable: it cannot be opened.
    """
    if not isinstance(url, str):
        return url
    if not is_store(url):
        raise ConfigError(no_store(url, f"memory:, {DURABLE_FORMS}"))
    scheme, _, rest = url.partition(":")
    return _KINDS[scheme.lower()](url, rest)


def is_store(url: str) -> bool:
    """Return whether a URL names a kind of store that there is."""
    scheme, colon, _ = url.partition(":")
    return bool(colon) and scheme.lower() in _KINDS


def no_store(url: str, forms: str) -> str:
    """Return the sentence that says that a URL names no store, and what is expected."""
    kind = url.partition(":")[0]
    return f"{kind[:80]!r} is not a kind of offset store: expected {forms}"


def local_path(url: str) -> str | None:
    """Return the path of a store that is a folder or a file, None for others.

    Raises:
        ConfigError: there is none in the URL.
    """
    scheme, _, rest = url.partition(":")
    return _path(scheme, rest) if scheme.lower() in {"file", "sqlite"} else None


def _memory(_url: str, rest: str) -> OffsetStore:
    if rest:
        raise ConfigError("memory: takes nothing after the colon")
    return MemoryStore()


def _file(_url: str, rest: str) -> OffsetStore:
    return FileStore(_path("file", rest))


def _sqlite(_url: str, rest: str) -> OffsetStore:
    return _load("lance_sdk.offsets.sqlite", "SqliteStore")(_path("sqlite", rest))


def _redis(url: str, _rest: str) -> OffsetStore:
    return _load("lance_sdk.offsets.redis", "RedisStore")(url)


def _postgres(url: str, _rest: str) -> OffsetStore:
    return _load("lance_sdk.offsets.postgres", "PostgresStore")(url)


_KINDS: Final[dict[str, Callable[[str, str], OffsetStore]]] = {
    "memory": _memory,
    "file": _file,
    "sqlite": _sqlite,
    "redis": _redis,
    "rediss": _redis,
    "postgresql": _postgres,
    "postgres": _postgres,
}


def _load(module: str, name: str) -> Callable[[str], OffsetStore]:
    make: Callable[[str], OffsetStore] = getattr(import_module(module), name)
    return make


def _path(scheme: str, rest: str) -> str:
    """Return the path of ``scheme:path`` or ``scheme:///path``."""
    parts: Any = urlsplit(f"{scheme}:{rest}")
    if parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"{scheme}:{rest[:80]}: expected {scheme}:PATH with '?' and '#' written %3F and %23, "
            f"and three slashes before an absolute path or none"
        )
    if not (path := unquote(parts.path)):
        raise ConfigError(f"{scheme}: expected a path, as in {scheme}:/var/lib/app/offsets")
    return path
