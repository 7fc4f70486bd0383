"""Which splits one task reads."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.spark.logs.input_partitions import packed, wanted_bytes
from lance_sdk.spark.options import Options

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Sized:
    """A split of which only the size matters."""

    number: int
    size: int


def sizes(splits: list[Any], cores: int = 2, **said: str) -> list[list[int]]:
    """Return the sizes that each task reads."""
    return [[each.size for each in group] for group in packed(splits, Options.parse(said), cores)]


def equal(count: int, size: int = MEGABYTE) -> list[Any]:
    """Return splits of one size."""
    return [Sized(number, size) for number in range(count)]


@pytest.mark.parametrize(("cores", "tasks"), [(1, 1), (2, 2), (4, 4), (64, 8)])
def test_there_are_as_many_tasks_as_cores(cores: int, tasks: int) -> None:
    """But no more than splits."""
    assert len(sizes(equal(8), cores)) == tasks


def test_tasks_are_about_equal() -> None:
    """In bytes, not in splits."""
    splits = [Sized(number, size) for number, size in enumerate((8, 1, 1, 1, 1, 1, 1, 1, 1))]
    assert sizes(splits) == [[8], [1] * 8]


def test_a_task_reads_no_more_than_was_said() -> None:
    """Where splits allow it."""
    assert sizes(equal(8), maxPartitionBytes="2MiB") == [[MEGABYTE] * 2] * 4


def test_there_are_as_many_tasks_as_were_asked_for() -> None:
    """Where there are so many splits."""
    assert len(sizes(equal(16), minPartitions="5")) == 5
    assert len(sizes(equal(3), minPartitions="5")) == 3


@pytest.mark.parametrize(
    ("span", "said", "size"),
    [
        (100, {}, 50),
        (32, {}, 16),
        (20, {}, 16),
        (1000, {}, 128),
        (1000, {"maxPartitionBytes": "64MiB"}, 64),
        (32, {"minPartitions": "8"}, 4),
        (0, {}, 0),
    ],
)
def test_a_range_is_cut_for_the_cores_there_are(span: int, said: dict[str, str], size: int) -> None:
    """But not into crumbs, unless that is asked for; in megabytes, for two cores."""
    found = wanted_bytes(span * MEGABYTE, Options.parse(said), 2)
    assert found == max(1, size * MEGABYTE)


def test_nothing_needs_no_task() -> None:
    """A query may find nothing."""
    assert sizes([]) == []


@given(
    st.lists(st.integers(0, 10**12), max_size=50),
    st.integers(1, 100),
    st.integers(1, 100),
)
def test_every_split_is_read_once_in_its_order(found: list[int], cores: int, least: int) -> None:
    """However they are put together, and none without a split."""
    splits: Any = [Sized(number, size) for number, size in enumerate(found)]
    groups = packed(splits, Options(min_partitions=least), cores)
    assert [split for group in groups for split in group] == splits
    assert all(groups)


def test_cores_that_this_process_may_not_use_do_not_count() -> None:
    """A container that is kept to one core of many gets one task."""
    told = (
        "import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1]); "
        "from lance_sdk.spark.cores import usable_cores; print(usable_cores())"
    )
    assert subprocess.check_output([sys.executable, "-c", told], text=True) == "1\n"
