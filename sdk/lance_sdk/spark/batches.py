"""Planning a batch query: which ranges of which topics, in which pieces."""

from datetime import datetime

from lance_sdk.errors import ConfigError
from lance_sdk.spark.contract import Log, Piece, TopicView
from lance_sdk.spark.errors import DataLost
from lance_sdk.spark.options import Options


def plan(log: Log, options: Options) -> list[Piece]:
    """Return the pieces of a batch query.

    Raises:
        DataLost: a range begins before the topic does, and ``failOnDataLoss`` holds.
        LanceError: the log cannot be seen.
    """
    found: list[Piece] = []
    for view in log.look():
        start = resolve(log, view, options.start(view.name))
        end = min(resolve(log, view, options.end(view.name)), view.end)
        start = check_start(view, start, fail=options.fail_on_data_loss)
        if start < end:
            found += log.plan(view, start, end)
    return found


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
        ConfigError: it lies behind the end.
    """
    if start > view.end:
        raise ConfigError(
            f"topic {view.name!r} ends at {view.end}, before the offset {start} to begin with"
        )
    if start >= view.start:
        return start
    if fail:
        raise DataLost(
            f"topic {view.name!r} begins at {view.start} now, behind the offset {start} to begin "
            "with: retention has dropped it; failOnDataLoss=false begins there"
        )
    return view.start
