"""Carrying out JSON requests by the rules."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import Connection

Fields = Mapping[str, Any]
Body = dict[str, Any]


def answer(rules: Rules, connection: Connection, payload: bytes) -> bytes:
    """The answer to a request.

    Raises:
        Refused: It is refused.
    """
    request = rules.json_request(payload)
    body = _HANDLERS[request.name](rules, connection, request.fields)
    return written({request.name: body})


def written(body: Body) -> bytes:
    """JSON as bytes."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _log(rules: Rules, f: Fields) -> list[bytes]:
    log = rules.json_log(f["topic"], f["partition"])
    if log is None:
        raise rules.json_missing(f["topic"], f["partition"])
    return log


def _produce(rules: Rules, _connection: Connection, f: Fields) -> Body:
    log = _log(rules, f)
    base = len(log)
    log += f["records"]
    return {"offsets": rules.offsets(base, len(f["records"]))}


def _fetch(rules: Rules, _connection: Connection, f: Fields) -> Body:
    log = _log(rules, f)
    start = f["offset"]
    if f["group_id"] is not None:
        place = rules.json_place(f["group_id"], f["topic"], f["partition"])
        start = rules.json_start(rules.memory.commits.get(place), start)
    if start >= len(log):
        return {"records": [], "next_offset": rules.json_behind(start, len(log))}
    records = _taken(rules, log[start:], f["max_bytes"])
    following = rules.json_following(start, len(records))
    return {"records": rules.numbered(start, records), "next_offset": following}


def _taken(rules: Rules, log: list[bytes], max_bytes: int) -> list[bytes]:
    records: list[bytes] = []
    counted = 0
    for record in log:
        counted += rules.json_weight(record)
        first = not records and rules.json_first(max_bytes)
        if not first and counted > max_bytes:
            break
        records.append(record)
    return records


def _commit(rules: Rules, _connection: Connection, f: Fields) -> Body:
    if not rules.json_commits_for(f["topic"], f["partition"]):
        return {"success": False}
    place = rules.json_place(f["group_id"], f["topic"], f["partition"])
    rules.memory.commits[place] = f["offset"]
    return {"success": True}


def _committed(rules: Rules, _connection: Connection, f: Fields) -> Body:
    place = rules.json_place(f["group_id"], f["topic"], f["partition"])
    return {"offset": rules.json_told(rules.memory.commits.get(place))}


_HANDLERS: Mapping[str, Callable[[Rules, Connection, Fields], Body]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "OffsetCommit": _commit,
    "OffsetFetch": _committed,
}
