"""The ``offsets`` option as a store, for tasks."""

from typing import Any, cast

from lance_sdk import offsets as stores
from lance_sdk._api.offset_store import given_store, is_async
from lance_sdk.offsets.contract import AsyncOffsetStore


def async_store(offsets: Any) -> AsyncOffsetStore:
    """Return the store for an async API; one for threads is called in worker threads.

    Raises:
        ConfigError: the argument is not an offset store.
    """
    store = given_store(offsets)
    return cast("AsyncOffsetStore", store) if is_async(store) else stores.in_threads(store)
