"""The memory that files are read into: shared with Arrow, and used again."""

from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Producer
from lance_sdk.spark.files.storage import ReadMemory, opened
from lance_sdk.spark.rows.columns import arrow_schema
from lance_server import running


@pytest.fixture(scope="module")
def long_segment(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[bytes]]:
    """A data directory with several MiB in one segment, and their values."""
    folder = str(tmp_path_factory.mktemp("long") / "data")
    values = [b"%06d" % number * 1500 for number in range(600)]
    with (
        running(Path(folder), segment_size=16 << 20) as server,
        Producer(f"{server.url}/orders", create_topic=True, dialect="specified") as producer,
    ):
        producer.send_many(values)
    return folder, values


def test_batches_that_are_kept_stay_as_they_are(
    reader: Any, long_segment: tuple[str, list[bytes]]
) -> None:
    """What is read later goes into other memory."""
    folder, values = long_segment
    (split,) = reader.splits(path=folder)
    kept = list(split.read(arrow_schema(["value"])))
    assert len(kept) > 4
    assert [value for batch in kept for value in batch["value"].to_pylist()] == values


def test_batches_that_are_dropped_leave_their_memory(
    reader: Any, long_segment: tuple[str, list[bytes]]
) -> None:
    """A loop needs that of two, and Spark, which keeps the first one, that of three."""
    folder, values = long_segment
    (split,) = reader.splits(path=folder)
    first, found, places = None, [], []
    for batch in split.read(arrow_schema(["value"])):
        first = first or batch
        found += batch["value"].to_pylist()
        places.append(batch["value"].buffers()[2].address)
    assert found == values
    assert first["value"].to_pylist() == values[: len(first)]
    assert len(places) > len(set(places)) == 3


def test_memory_that_is_shown_is_not_read_into(tmp_path: Path) -> None:
    """However small the part that is shown; it is used again afterwards."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    memory = ReadMemory()
    with opened(str(path)) as file:
        part = memory.read(file, 50, 0)[7:8]
        assert memory.read(file, 50, 50) == bytes(range(50, 100))
        assert part == b"\x07"
        del part
        again = memory.read(file, 20, 90)
        assert again == bytes(range(90, 100))
        assert memory.read(file, 20, 100) == memory.read(file, 20, 200) == b""
        assert again == bytes(range(90, 100))
