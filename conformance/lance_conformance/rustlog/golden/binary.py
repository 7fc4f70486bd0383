"""Carrying out binary requests by the rules."""

from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.rustlog.golden import codec
from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import Connection, Fetched

Fields = Mapping[str, Any]
Handler = Callable[[Rules, Connection, Fields], bytes]


def answer(rules: Rules, connection: Connection, payload: bytes) -> bytes:
    """The answer to a request.

    Raises:
        Refused: It is refused.
    """
    request = rules.decode(payload)
    return _HANDLERS[request.name](rules, connection, request.fields)


def _produce(rules: Rules, connection: Connection, f: Fields) -> bytes:
    log = rules.written(f["topic"], f["partition"])
    if log is None and rules.missing_matters(f["records"]):
        raise rules.no_partition("Produce", f["topic"], f["partition"])
    if log is None or not f["records"]:
        return codec.produced(*rules.nothing_stored(len(log or ())))
    base = rules.base(connection, len(log))
    log[:] = rules.stored(log, f["records"])
    connection.stored += len(f["records"])
    return codec.produced(base, rules.counted(f["records"]))


def _fetch(rules: Rules, connection: Connection, f: Fields) -> bytes:
    place = (f["group_id"], f["topic"], f["partition"])
    start: int = f["offset"]
    if f["group_id"]:
        commit = rules.memory.commits.get(rules.commit_key(connection, place))
        granted = rules.group_start(commit, start)
        if granted is None:
            return codec.fetched([], rules.without_commit(start))
        start = granted
    log = rules.read(f["topic"], f["partition"])
    if log is None:
        raise rules.no_partition("Fetch", f["topic"], f["partition"])
    found = taken(rules, log, start, f["max_bytes"])
    rules.after_read(place, found.following)
    return codec.fetched(found.records, found.following)


def taken(rules: Rules, log: list[bytes], start: int, max_bytes: int) -> Fetched:
    """The records that a Fetch returns."""
    if start >= len(log):
        return Fetched(start, [], rules.behind_the_end(start, len(log)))
    records: list[bytes] = []
    counted = 0
    for record in rules.chosen(log, start):
        counted += rules.weight(record)
        first = not records and rules.first_record(max_bytes)
        if not first and not rules.fits(counted, max_bytes):
            break
        records.append(record)
    return Fetched(start, records, rules.following(start, len(records)))


def _commit(rules: Rules, connection: Connection, f: Fields) -> bytes:
    if not rules.commits_for(f["topic"], f["partition"]):
        return codec.success(3, 0)
    key = rules.commit_key(connection, (f["group"], f["topic"], f["partition"]))
    commits = rules.memory.commits
    commits[key] = rules.kept_commit(commits.get(key), f["offset"])
    return codec.success(3, rules.commit_answer())


def _committed(rules: Rules, connection: Connection, f: Fields) -> bytes:
    key = rules.commit_key(connection, (f["group"], f["topic"], f["partition"]))
    return codec.offset(rules.told_commit(rules.memory.commits.get(key)))


def _create(rules: Rules, _connection: Connection, f: Fields) -> bytes:
    if f["topic"] in rules.memory.topics:
        rules.made_again(f["topic"], f["partitions"])
        raise rules.exists(f["topic"])
    if not rules.count_ok(f["partitions"]):
        raise rules.bad_count(f["partitions"])
    rules.made(f["topic"], f["partitions"])
    return codec.success(5, rules.create_answer())


def _list(rules: Rules, _connection: Connection, _f: Fields) -> bytes:
    counts = {name: len(parts) for name, parts in rules.memory.topics.items()}
    return codec.topics(rules.listed(counts))


def _describe(rules: Rules, _connection: Connection, f: Fields) -> bytes:
    parts = rules.memory.topics.get(f["topic"])
    if parts is None:
        raise rules.no_topic(f["topic"])
    name, count, numbers = rules.description(f["topic"], len(parts))
    ends = [(number, rules.watermark(parts[number % len(parts)])) for number in numbers]
    return codec.topic(name, count, ends)


def _describe_partition(rules: Rules, _connection: Connection, f: Fields) -> bytes:
    log = rules.partition(f["topic"], f["partition"])
    if log is None:
        raise rules.no_description(f["topic"], f["partition"])
    name, number = rules.partition_description(f["topic"], f["partition"])
    return codec.partition(name, number, rules.partition_watermark(log))


_HANDLERS: Mapping[str, Handler] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "OffsetCommit": _commit,
    "OffsetFetch": _committed,
    "CreateTopic": _create,
    "ListTopics": _list,
    "DescribeTopic": _describe,
    "DescribePartition": _describe_partition,
    "MetricsFetch": lambda rules, *_: codec.metrics(rules.metrics()),
    "Ping": lambda rules, *_: rules.pong(),
}
