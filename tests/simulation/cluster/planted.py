"""Faults that are put into the product, one at a time: the simulation has to find each."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from typing import Any, Final
from unittest.mock import patch

from lance_server.cluster import housekeeping, linear_reads, node
from lance_server.cluster.applying import mark, replica, restore, shard, topic, window
from lance_server.cluster.applying.catalog import Catalog
from lance_server.cluster.applying.results import Result, Status
from lance_server.cluster.applying.settings import Settings
from lance_server.cluster.copies import clone
from lance_server.cluster.hosting.leaving import ShardLeaver
from lance_server.cluster.peers import Peers
from lance_server.cluster.replicated_log import AppendError
from lance_server.log.segments.segment_files import SegmentWriter
from lance_server.runtime.completion import Completion
from lance_server.storage.contract import read_at

Plant = Callable[[], AbstractContextManager[Any]]
_ticks: Final = count()


def _on(target: Any, name: str, wrong: Any) -> Plant:
    return lambda: patch.object(target, name, wrong)


def _ack_when_delivered(self: Any, counter: int, end: Any) -> None:
    pending = self._pending.get(counter)
    if pending is not None and not isinstance(end, AppendError):
        pending.delivered = True
        pending.result = pending.result or Result(Status.STORED)
    self._post(lambda: self._told(counter, end))


def _mark_without_sync(self: Any, number: int) -> None:
    one = self.shards[number]
    with patch.object(one, "sync", lambda: None):
        _mark(self, number)


def _mark_before_sync(self: Any, number: int) -> None:
    one = self.shards[number]
    if one.state.settings is not None:
        mark.save_mark(self._storage, self._data_dir, number, mark.Mark.of(one, self.identity))
    _mark(self, number)


_mark = replica.Replica.mark
_apply = replica.Replica.apply


def _remove_at_once(self: Any, number: int, entries: Sequence[Any]) -> Any:
    applied = _apply(self, number, entries)
    removals = self.shards[number].pending_removals()
    mark.remove(self._storage, self._folder, removals)
    self.shards[number].removed(removals)
    return applied


def _forgetful(**lost: Any) -> Callable[..., Any]:
    """Return a reading of a topic's mark that loses some of it."""
    read = mark.TopicMark.from_body.__func__  # type: ignore[attr-defined]

    def wrong(topic_id: int, body: Any) -> Any:
        found = read(mark.TopicMark, topic_id, body)
        return replace(found, state=replace(found.state, **lost))

    return wrong


def _commit_any_version(self: Any, consumer: int, _version: int, offset: int, time: int) -> Any:
    known = self.state.commits.get(consumer)
    return _commit(self, consumer, known.version if known else 0, offset, time)


_commit = topic.ReplicatedTopic.commit


def _begin_again(self: Any, body: Any, _entry: Any, _record: Any) -> Result:
    if body.topic_id not in self.topics:
        self._begin(body.topic_id, body)
    return Result(Status.DONE, body.topic_id)


def _skip_some(self: Any) -> Any:
    self._reader = self._reader or self.replica.open_reader(self._log)
    applied = []
    for each in self._reader.read(1 << 22, 0):
        if next(_ticks) % 17:
            applied += self.replica.apply(each.shard, [each])
        else:
            self.replica.shards[each.shard].state.position = each.position + 1
    return applied


def _match_by_counter(self: Any, step: Any) -> None:
    renamed = [each._replace(process=self.options.process) for each in step.applied]
    _take(self, step._replace(applied=renamed))


_take = node.ClusterNode._take


def _local_size(_genesis: Any) -> Settings:
    found = _settings(Settings, _genesis)
    return replace(found, segment_size=400 + next(_ticks) % 3 * 100)


_settings: Callable[..., Settings] = Settings.of.__func__  # type: ignore[attr-defined]


def _close_at_start(self: Any) -> Any:
    extents, writer = _open_segments(self)
    if writer is not None and writer.batches:
        writer.close(sync=True)
        extents[-1].segment.live = None
        writer = None
    return extents, writer


_open_segments = restore._TopicFiles.open_segments


def _trim_own(one: Any, number: int) -> int:
    return int(one.durable(number))


def _trim_applied(one: Any, number: int) -> int:
    told = one.shards[number].state.nodes.values()
    places: list[int] = [each.applied for info in told for each in info.status.positions]
    return min(places) if len(places) > 1 else 0


def _droppable_by_chance(self: Any, offset: int, now_ns: int) -> Any:
    found = _droppable(self, offset, now_ns)
    return found[: len(found) - next(_ticks) % 2] if found else found


_droppable = topic.ReplicatedTopic.droppable


def _delete_keeps(self: Any, topic_id: int) -> Result:
    entry = self.topics.get(topic_id)
    result = _delete(self, topic_id)
    if entry is not None and result.status is Status.DONE:
        self._add(topic_id, entry)
    return result


_delete = Catalog.delete
_sync = SegmentWriter.make_durable


def _sync_data_only(self: Any) -> None:
    self._storage.sync(self._data)


def _late_mark(self: Any) -> dict[str, Any]:
    body = _to_body(self)
    return {**body, "position": body["position"] + 1}


_to_body = mark.Mark.to_body


def _time_of_a_clock(_self: Any, one: Any, accepted_ns: int, _entry: Any) -> int:
    last: int = one.state.last_ns
    return max(last, accepted_ns) + next(_ticks)


def _join_any_barrier(self: Any) -> Completion[None]:
    under_way: Completion[None] | None = self._under_way
    return self._begin(Completion()) if under_way is None else under_way


def _wait_for_no_barrier(_self: Any) -> Completion[None]:
    known: Completion[None] = Completion()
    known.settle(None)
    return known


def _missing_without_order(replicated: Any, led: Any) -> list[tuple[int, Any]]:
    catalog = replicated.shards[0].state.catalog
    with patch.object(catalog, "next_id", 1 << 32):
        return _missing(replicated, led)


_missing = housekeeping._missing


def _barrier_in_shard_0(self: Any, outcome: Completion[None]) -> Completion[None]:
    shards = self._node.replica.shards
    with patch.object(self._node.replica, "shards", {0: shards[0]}):
        return _begin_barrier(self, outcome)


_begin_barrier = linear_reads.ReadBarriers._begin


def _choose_again(self: Any, body: Any, created_ns: int, most: int, shards: int) -> Result:
    return _create(self, replace(body, shard=next(_ticks)), created_ns, most, shards)


_create = Catalog.create


def _trim_as_shard_0(one: Any, number: int) -> int:
    return trim_position(one, 0 if number else number)


trim_position = housekeeping.trim_position


def _mark_shard_0(self: Any) -> None:
    self.replica.mark(0)
    for number in self.replica.shards:
        self.replica._durable[number] = self.replica.shards[number].state.position
    self._marking.bytes, self._marking.last = 0, self._now()


def _keep_what_is_there(self: Any, fd: int, name: str, start: int, size: int) -> None:
    if len(read_at(self._storage, fd, size, start)) < size:
        _make_piece(self, fd, name, start, size)


_make_piece = clone._Clone._make_piece


PLANTED: Final[dict[str, Plant]] = {
    "an ack does not wait for the application": _on(
        node.ClusterNode, "_report", _ack_when_delivered
    ),
    "a mark without a sync": _on(replica.Replica, "mark", _mark_without_sync),
    "a mark before the sync": _on(replica.Replica, "mark", _mark_before_sync),
    "a sync of the data and not of the sidecar": _on(
        SegmentWriter, "make_durable", _sync_data_only
    ),
    "a mark one position late": _on(mark.Mark, "to_body", _late_mark),
    "duplicates are not looked for": _on(window.ExactWindow, "find", lambda *_: None),
    "the window is not built again": _on(
        restore, "_rebuild_window", lambda _s, _f, settings, *_: window.ExactWindow(settings.window)
    ),
    "the window remembers nothing": _on(window.ExactWindow, "add", lambda *_: None),
    "times come from the sender": _on(shard.Shard, "_time", lambda _s, _t, ns, _e: ns),
    "times come from a clock": _on(shard.Shard, "_time", _time_of_a_clock),
    "the segment size is a local setting": _on(Settings, "of", staticmethod(_local_size)),
    "a start closes segments": _on(restore._TopicFiles, "open_segments", _close_at_start),
    "a start does not remove later segments": _on(
        restore._TopicFiles, "remove_later", lambda _: None
    ),
    "a start does not remove later topics": _on(replica, "remove_unknown_topics", lambda *_: None),
    "files go before a mark": _on(replica.Replica, "apply", _remove_at_once),
    "retention is decided by chance": _on(topic.ReplicatedTopic, "droppable", _droppable_by_chance),
    "a mark forgets commits": _on(mark.TopicMark, "from_body", _forgetful(commits={})),
    "a mark forgets the retention's version": _on(
        mark.TopicMark, "from_body", _forgetful(retention_version=1)
    ),
    "a mark forgets the last time": _on(mark.TopicMark, "from_body", _forgetful(last_ns=0)),
    "a mark forgets when a segment was begun": _on(
        mark.TopicMark, "from_body", _forgetful(last_start_ns=0)
    ),
    "a mark forgets window files": _on(mark.TopicMark, "from_body", _forgetful(windows=[])),
    "a mark forgets how many batches were lasting": _on(
        mark.TopicMark, "from_body", _forgetful(lasting=0)
    ),
    "a mark forgets commit versions": _on(
        mark.TopicMark, "from_body", _forgetful(commit_version=0)
    ),
    "a commit replaces any other": _on(topic.ReplicatedTopic, "commit", _commit_any_version),
    "an end is not final": _on(shard.Shard, "_topic_begins", _begin_again),
    "a deleted topic stays in the catalog": _on(Catalog, "delete", _delete_keeps),
    "records are skipped": _on(node.ClusterNode, "_apply_more", _skip_some),
    "results are matched by number alone": _on(node.ClusterNode, "_take", _match_by_counter),
    "the log is trimmed to what one node has": _on(housekeeping, "trim_position", _trim_own),
    "the log is trimmed to what is applied": _on(housekeeping, "trim_position", _trim_applied),
    "a log that was out of reach is never read again": _on(
        node.ClusterNode, "_step_again", lambda _: None
    ),
    "nobody carries creations on": _on(housekeeping, "_missing", lambda *_: []),
    "a linear read joins a barrier that is under way": _on(
        linear_reads.ReadBarriers, "wait", _join_any_barrier
    ),
    "a node starts on a clone that is not whole": _on(replica, "UNFINISHED", "nothing"),
    "a clone keeps whatever is there": _on(clone._Clone, "_make_piece", _keep_what_is_there),
    "a clone leaves what the copy does not have": _on(
        clone._Clone, "_remove_others", lambda *_: None
    ),
    "topics end that shard 0 has not created yet": _on(
        housekeeping, "_missing", _missing_without_order
    ),
    "a barrier goes into one shard": _on(linear_reads.ReadBarriers, "_begin", _barrier_in_shard_0),
    "the shard of a topic is chosen anew at each node": _on(Catalog, "create", _choose_again),
    "all shards are trimmed to what is durable of one": _on(
        housekeeping, "trim_position", _trim_as_shard_0
    ),
    "one shard is marked": _on(node.ClusterNode, "_mark_all", _mark_shard_0),
    "a node leaves a shard that others have not got": _on(
        ShardLeaver, "_may_leave", lambda *_: True
    ),
    "every node counts as a host of every shard": _on(Peers, "hosts", lambda self, _: self.live()),
    "a linear read waits for nothing": _on(linear_reads.ReadBarriers, "wait", _wait_for_no_barrier),
}
"""What is wrong, and what makes it so."""
