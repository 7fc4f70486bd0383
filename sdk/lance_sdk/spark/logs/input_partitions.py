"""Which splits one task reads: a task costs Spark as much as reading some ten megabytes."""

from collections.abc import Sequence
from typing import Final

from lance_sdk.spark.cores import usable_cores
from lance_sdk.spark.logs.contract import InputSplit
from lance_sdk.spark.options import Options

_WORTH_A_TASK: Final = 16 << 20
"""Bytes below which nothing is cut just to give every core something to do."""


def wanted_bytes(span: int, options: Options, cores: int | None = None) -> int:
    """Return into splits of how many bytes a range is cut, about.

    Args:
        span: bytes of the range.
        options: of the query.
        cores: see `packed`.
    """
    by_cores = max(_WORTH_A_TASK, -(-span // (cores or usable_cores())))
    asked_for = -(-span // options.min_partitions)
    return max(1, min(options.max_partition_bytes, asked_for, by_cores))


def packed(
    splits: Sequence[InputSplit], options: Options, cores: int | None = None
) -> list[list[InputSplit]]:
    """Put splits together, in their order, so that tasks are few and of about the same size.

    There are as many tasks as cores, or more where ``minPartitions`` or ``maxPartitionBytes`` say
    so; never more than splits.

    Args:
        splits: what there is to read.
        options: of the query.
        cores: how many tasks run at a time, as far as the driver knows; its own by default.
    """
    sizes = [max(1, split.size) for split in splits]
    total = sum(sizes)
    least = max(options.min_partitions, cores or usable_cores())
    wanted = max(least, -(-total // options.max_partition_bytes))
    found: dict[int, list[InputSplit]] = {}
    position = 0
    for split, size in zip(splits, sizes, strict=True):
        middle = 2 * position + size
        found.setdefault(middle * wanted // (2 * total), []).append(split)
        position += size
    return list(found.values())
