"""Reads a topic to its end without waiting for ever."""

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Final

from lance_sdk.cli._exit import Failure
from lance_sdk.cli._settings import Settings

if TYPE_CHECKING:
    from lance_sdk import Consumer
    from lance_sdk.types import RecordBatch

_PATIENCE: Final = 30.0  # seconds


def to_the_end(consumer: "Consumer", settings: Settings) -> Iterator["RecordBatch"]:
    """Yield what a consumer with ``stop_at_end`` reads.

    Args:
        consumer: it reconnects by itself, as often as it takes.
        settings: their ``timeout`` bounds each wait.

    Raises:
        Failure: when nothing came in that time.
    """
    patience = settings.timeout or _PATIENCE
    while True:
        began = monotonic()
        batch = consumer.poll(patience)
        if batch is None and monotonic() - began >= patience:
            raise Failure(f"nothing came for {patience:g} s; the server may be down or stuck")
        if batch is None:
            return
        yield batch
