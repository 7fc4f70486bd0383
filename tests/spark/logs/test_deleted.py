"""A topic that is deleted between a streaming query's look at it and its reading."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lance_sdk import Client
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.server_log import ServerLog
from lance_sdk.spark.options import Options
from lance_sdk.spark.streaming.streams import StreamOffsets
from lance_server.embedded import EmbeddedServer

Fill = Callable[..., list[bytes]]


class Deleting(ServerLog):
    """A log whose topic goes before it is read on."""

    def advance(self, *args: Any) -> Any:
        """Delete the topic, then go on."""
        with Client(self._options.url(), dialect="specified") as client:
            client.delete_topic("orders")
        return super().advance(*args)


def begun(at: Mapping[str, str], **said: str) -> tuple[StreamOffsets, dict[str, Any]]:
    """Return a query that has looked at the topic, and where it is."""
    where = {**at, "topicsPattern": "orders", "startingOffsets": "earliest", "pollInterval": "0s"}
    options = Options.parse({**where, **said})
    progress = StreamOffsets(Deleting(options), options)
    return progress, progress.initial()


def test_a_topic_that_goes_is_told(server: EmbeddedServer, produce: Fill, at: Any) -> None:
    """By its name, as what was to be read is lost."""
    del server
    produce("orders", 10)
    progress, place = begun(at)
    with pytest.raises(DataLost, match="the query reads topic 'orders', which is gone"):
        progress.advance(place, 1000)


def test_a_query_goes_on_without_it(server: EmbeddedServer, produce: Fill, at: Any) -> None:
    """Where that is allowed; the next micro-batch has nothing of it."""
    del server
    produce("orders", 10)
    progress, place = begun(at, failOnDataLoss="false")
    assert progress.advance(place, 1000) == place
