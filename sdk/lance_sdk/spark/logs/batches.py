"""Planning a batch query: which ranges of which topics, in which splits."""

import logging
from datetime import datetime

from lance_sdk.errors import ConfigError
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.logs.contract import InputSplit, Log, TopicView
from lance_sdk.spark.options import Options

_log = logging.getLogger(__name__)


def plan(log: Log, options: Options) -> list[InputSplit]:
    """Return the splits of a batch query.

    Raises:
        DataLost: a range begins before the topic does, and ``failOnDataLoss`` holds.
        ConfigError: it ends before it begins.
        LanceError: the log cannot be seen.
    """
    found: list[InputSplit] = []
    views = log.look()
    if options.topics_pattern is not None and not views:
        warn_of_no_match(options)
    for view in views:
        start = resolve(log, view, options.start(view.name))
        end = min(resolve(log, view, options.end(view.name)), view.end)
        _check_order(view, options, start, end)
        start = check_start(view, start, fail=options.fail_on_data_loss)
        if start < end:
            found += log.plan(view, start, end)
    return found


def _check_order(view: TopicView, options: Options, start: int, end: int) -> None:
    """Refuse a range whose two ends were mixed up, which would have no rows.

    Raises:
        ConfigError: both ends were said, and the range ends before it begins.
    """
    said = (options.start(view.name), options.end(view.name))
    if end < start <= view.end and not any(isinstance(each, str) for each in said):
        raise ConfigError(
            f"topic {view.name!r}: the range ends at offset {end}, before its beginning {start}; "
            "were the two mixed up?"
        )


def warn_of_no_match(options: Options) -> None:
    """Warn of a pattern that is the name of no topic: the query has no rows."""
    _log.warning(
        "topicsPattern=%r matches no topic at %s; a pattern has to match whole names",
        options.topics_pattern,
        options.servers or ", ".join(options.path),
    )


def resolve(log: Log, view: TopicView, where: int | str | datetime) -> int:
    """Return the offset that a place in a topic is."""
    if isinstance(where, datetime):
        return log.at(view, where)
    if isinstance(where, int):
        return where
    return view.start if where == "earliest" else view.end


def check_start(view: TopicView, start: int, *, fail: bool) -> int:
    """Return where reading can begin.

    Raises:
        DataLost: not where it was asked for.
        ConfigError: it lies after the end.
    """
    if start > view.end:
        raise ConfigError(
            f"topic {view.name!r} ends at {view.end}, before the offset {start} to begin with"
        )
    if start >= view.start:
        return start
    if fail:
        raise DataLost(
            f"topic {view.name!r} begins at {view.start} now, after the offset {start} to begin "
            "with: retention has dropped it; failOnDataLoss=false begins there"
        )
    return view.start
