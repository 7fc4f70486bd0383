"""Offset stores: they keep the positions of consumers, so that these go on there.

::

    from lance_sdk.offsets import Commit, TopicIdentity, open_store

    store = open_store("file:/var/lib/billing/offsets")

Stores: `MemoryStore`, `FileStore`, `SqliteStore`, `RedisStore`, `PostgresStore`, each by its
class or by a URL; `HookedStore` around any of them calls back after every commit, `in_threads`
makes one for tasks. Your own satisfies `OffsetStore` or `AsyncOffsetStore`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_sdk.offsets.consumer_ids import consumer_id
    from lance_sdk.offsets.contract import (
        AsyncOffsetStore,
        Commit,
        Fingerprint,
        OffsetStore,
        TopicIdentity,
        check_consumer_name,
    )
    from lance_sdk.offsets.errors import (
        OffsetMoved,
        OffsetStoreError,
        StaleGeneration,
        StaleTopic,
        StoreCorrupt,
        StoreLocked,
        StoreUnavailable,
    )
    from lance_sdk.offsets.files import FileStore
    from lance_sdk.offsets.hooks import AfterCommit, HookedStore
    from lance_sdk.offsets.memory import MemoryStore
    from lance_sdk.offsets.postgres import PostgresStore
    from lance_sdk.offsets.redis import RedisStore
    from lance_sdk.offsets.sqlite import SqliteStore
    from lance_sdk.offsets.threads import in_threads
    from lance_sdk.offsets.urls import open_store

__all__ = [
    "AfterCommit",
    "AsyncOffsetStore",
    "Commit",
    "FileStore",
    "Fingerprint",
    "HookedStore",
    "MemoryStore",
    "OffsetMoved",
    "OffsetStore",
    "OffsetStoreError",
    "PostgresStore",
    "RedisStore",
    "SqliteStore",
    "StaleGeneration",
    "StaleTopic",
    "StoreCorrupt",
    "StoreLocked",
    "StoreUnavailable",
    "TopicIdentity",
    "check_consumer_name",
    "consumer_id",
    "in_threads",
    "open_store",
]

_HOMES = {
    "consumer_ids": ("consumer_id",),
    "contract": (
        "AsyncOffsetStore",
        "Commit",
        "Fingerprint",
        "OffsetStore",
        "TopicIdentity",
        "check_consumer_name",
    ),
    "errors": (
        "OffsetMoved",
        "OffsetStoreError",
        "StaleGeneration",
        "StaleTopic",
        "StoreCorrupt",
        "StoreLocked",
        "StoreUnavailable",
    ),
    "files": ("FileStore",),
    "hooks": ("AfterCommit", "HookedStore"),
    "memory": ("MemoryStore",),
    "postgres": ("PostgresStore",),
    "redis": ("RedisStore",),
    "sqlite": ("SqliteStore",),
    "threads": ("in_threads",),
    "urls": ("open_store",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its home module at first use (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
