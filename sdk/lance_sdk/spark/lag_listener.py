"""Following how far the streaming queries of a session are behind, and drawing it.

::

    listener = LagListener()
    spark.streams.addListener(listener)
    ...
    listener.draw("lag.svg")
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from lance_sdk.errors import ConfigError
from lance_sdk.spark.lag import Lag, lag
from lance_sdk.spark.pipelines.plotting import COLOURS, load_figure, unit_of

__all__ = ["LagListener", "Sample"]

_MOST_LINES: Final = len(COLOURS)


@dataclass(frozen=True, slots=True)
class Sample:
    """The lag of one query in one topic, as a micro-batch of it was reported.

    Attributes:
        moment: when, by the driver's clock.
        query: the query's name; its id where it has none.
        topic: the topic's name.
        lag: how far it was behind.
    """

    moment: datetime
    query: str
    topic: str
    lag: Lag


class LagListener(StreamingQueryListener):
    """Keeps the lag of every query of a session, by topic.

    Args:
        tell: called with each sample, for example to set a gauge; in a thread of Spark's.
        keep: the latest samples that are kept.
    """

    def __init__(
        self, tell: Callable[[Sample], object] | None = None, *, keep: int = 10_000
    ) -> None:
        self._tell = tell
        self._samples: deque[Sample] = deque(maxlen=keep)
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<LagListener {len(self._samples)} samples>"

    @property
    def samples(self) -> list[Sample]:
        """What was reported, the earliest first."""
        with self._lock:
            return list(self._samples)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's
        """Do nothing: nothing was read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's
        """Keep what a micro-batch reports."""
        progress = event.progress
        moment = datetime.fromisoformat(progress.timestamp)
        query = progress.name or str(progress.id)
        for topic, behind in lag(progress).items():
            sample = Sample(moment, query, topic, behind)
            with self._lock:
                self._samples.append(sample)
            if self._tell is not None:
                self._tell(sample)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's
        """Do nothing: a query that waits is behind by nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's
        """Do nothing: its samples stay."""

    def draw(self, path: str | Path) -> None:
        """Draw the lag over time: bytes above, and seconds below, a line for each topic.

        Args:
            path: the picture; its suffix decides the kind: svg, png or pdf.

        Raises:
            ConfigError: matplotlib is missing, or there is nothing to draw.
        """
        lines = _lines(self.samples)
        if not lines:
            raise ConfigError("there is nothing to draw: no query has reported a lag yet")
        figure = load_figure()(figsize=(10, 5), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        scale, unit = unit_of(max(each.lag.bytes for line in lines.values() for each in line))
        for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
            moments = [each.moment for each in line]
            sizes = [each.lag.bytes / scale for each in line]
            upper.plot(moments, sizes, color=colour, label=name)
            lower.plot(moments, [_seconds(each) for each in line], color=colour)
        _label(figure, upper, lower, unit)
        figure.savefig(path)


def _lines(samples: list[Sample]) -> dict[str, list[Sample]]:
    """Return the samples by query and topic: of those that were furthest behind."""
    found: dict[str, list[Sample]] = {}
    queries = {each.query for each in samples}
    for each in samples:
        name = each.topic if len(queries) == 1 else f"{each.topic} ({each.query})"
        found.setdefault(name, []).append(each)
    worst = {name: max(each.lag.bytes for each in line) for name, line in found.items()}
    chosen = sorted(found, key=lambda name: (-worst[name], name))[:_MOST_LINES]
    return {name: found[name] for name in chosen}


def _seconds(sample: Sample) -> float:
    return float("nan") if sample.lag.seconds is None else sample.lag.seconds


def _label(figure: Any, upper: Any, lower: Any, unit: str) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - an extra

    figure.suptitle("How far the queries are behind")
    upper.set_ylabel(unit)
    lower.set_ylabel("seconds")
    lower.set_xlabel("time (UTC)")
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    locator = AutoDateLocator()
    lower.xaxis.set_major_locator(locator)
    lower.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    handles, labels = upper.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", title="topic")
