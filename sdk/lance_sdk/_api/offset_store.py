"""The ``offsets`` option as a store, for threads."""

import inspect
from typing import Any

from lance_sdk import offsets as stores
from lance_sdk.errors import ConfigError
from lance_sdk.offsets.contract import OffsetStore


def sync_store(offsets: Any) -> OffsetStore:
    """Return the store for a sync API.

    Raises:
        ConfigError: the argument is not an offset store, or is an async one.
    """
    store: OffsetStore = given_store(offsets)
    if is_async(store):
        raise ConfigError(f"offsets={store!r} is an async store: it needs an AsyncConsumer")
    return store


def given_store(offsets: Any) -> Any:
    """Return the store that was given or named, whichever client it is for.

    Raises:
        ConfigError: the argument is not an offset store.
    """
    store: Any = stores.open_store(offsets)
    for name in ("claim", "save", "release"):
        if not callable(getattr(store, name, None)):
            raise ConfigError(f"offsets={store!r} is not an offset store: it has no {name}()")
    return store


def is_async(store: Any) -> bool:
    """Whether a store's methods must be awaited."""
    return inspect.iscoroutinefunction(store.save)
