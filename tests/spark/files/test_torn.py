"""What a crash tore belongs to a topic's range, and is no loss (AMB-29)."""

from collections.abc import Callable
from typing import Any

import pytest

from lance_sdk.spark.errors import DataDamaged
from lance_sdk.spark.files.topic_folder import load_metadata
from lance_sdk.spark.logs.contract import TopicView
from lance_sdk.spark.logs.resolve import open_log
from lance_sdk.spark.options import Options
from lance_server.embedded import EmbeddedServer

Fill = Callable[..., list[bytes]]


@pytest.fixture
def data(server: EmbeddedServer, produce: Fill) -> str:
    """The data directory of a topic that has two segments at least."""
    for first in (0, 2000):
        produce("orders", 2000, first=first)
    return str(server.data_dir)


def look(data: str, **said: str) -> TopicView:
    """Return the topic as its files show it."""
    (view,) = open_log(Options.parse({"path": data, "topic": "orders", **said})).look()
    return view


def test_a_topic_ends_where_its_metadata_says_that_offsets_go_on(disk: Any, data: str) -> None:
    """The server says so, too, before it has anything to put there."""
    end = look(data).end
    disk.change_log(disk.folder_of(data), next_offset=end + 70)
    assert look(data).end == end + 70


def test_an_earlier_place_in_the_metadata_cuts_nothing(disk: Any, data: str) -> None:
    """What was written since is there."""
    end = look(data).end
    disk.change_log(disk.folder_of(data), next_offset=70)
    assert look(data).end == end


@pytest.fixture
def without_first(disk: Any, data: str) -> tuple[str, Callable[[], None]]:
    """The directory without its first segment, and what makes the metadata not know of it."""
    first = disk.segments_of(data)[0]
    for path in first.parent.glob(f"{first.name.partition('-')[0].removesuffix('.lnc')}*"):
        path.unlink()
    found = load_metadata(str(first.parent))
    assert found is not None
    bases = {key: base for key, base in (found[1].bases or {}).items() if base}

    def forget() -> None:
        disk.change_log(first.parent, bases=bases)

    return data, forget


def test_a_topic_begins_where_its_metadata_says(
    without_first: tuple[str, Callable[[], None]],
) -> None:
    """Also before its first segment, where nothing is missing."""
    data, forget = without_first
    forget()
    assert look(data).start == 0


def test_a_topic_whose_first_segment_is_missing_begins_behind_it(
    without_first: tuple[str, Callable[[], None]],
) -> None:
    """A query that was to read it must not take it for empty."""
    data, _ = without_first
    with pytest.raises(DataDamaged):
        look(data)
    assert look(data, onDamage="skip").start > 0
