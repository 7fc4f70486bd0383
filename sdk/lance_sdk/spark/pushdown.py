"""Conditions on offset and topic that the source applies itself."""

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_sdk.spark.logs.contract import InputSplit
from lance_sdk.spark.options import Options


class Range:
    """What is left of a query's range; everything at first."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._behind: int | None = None
        self._topic: str | None = None

    def __repr__(self) -> str:
        return f"<Range {self._first}..{self._behind} topic={self._topic}>"

    def only_topic(self, name: str) -> bool:
        """Keep one topic; return whether that can be done exactly."""
        if self._topic not in {None, name}:
            return False
        self._topic = name
        return True

    def between(self, first: int | None, behind: int | None) -> bool:
        """Keep records that begin in a range."""
        if first is not None:
            self._first = first if self._first is None else max(first, self._first)
        if behind is not None:
            self._behind = behind if self._behind is None else min(behind, self._behind)
        return True

    def narrowed(self, options: Options) -> Options | None:
        """Return the options of a query that looks at the wanted topic only; None without any."""
        if self._topic is None:
            return options
        if not options.wants(self._topic):
            return None
        # A pattern, and no name: a topic that is not there has no rows, and is not an error.
        return replace(options, topics=(), topics_pattern=re.escape(self._topic))

    def of(self, splits: list[InputSplit]) -> list[InputSplit]:
        """Return the splits that can hold something; they keep their known boundaries."""
        return [split for split in splits if self._touches(split)]

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that are wanted."""
        mask: Any = None
        for condition in self._conditions(batch):
            mask = condition if mask is None else pc.and_(mask, condition)
        return batch if mask is None else batch.filter(mask)

    def _conditions(self, batch: pa.RecordBatch) -> list[Any]:
        found: list[Any] = []
        if self._first is not None:
            found.append(pc.greater_equal(batch["offset"], self._first))
        if self._behind is not None:
            found.append(pc.less(batch["offset"], self._behind))
        if self._topic is not None:
            found.append(pc.equal(batch["topic"], self._topic))
        return found

    def _touches(self, split: InputSplit) -> bool:
        if self._behind is not None and split.start >= self._behind:
            return False
        return self._first is None or split.end > self._first
