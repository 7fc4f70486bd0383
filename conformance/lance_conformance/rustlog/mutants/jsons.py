"""Servers that are wrong about JSON."""

import json
from typing import Any

from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import Refused, Request
from lance_conformance.rustlog.mutants.registry import BOTH, JSON, golden, mutant

# -- answers ---------------------------------------------------------------------------------------


@mutant(Rules.json_error, only=JSON)
def tells_codes_in_json(_server: Rules, text: str, /) -> dict[str, Any]:
    """An Error has a code and no message."""
    return {"Error": {"code": 2, "text": text}}


@mutant(Rules.json_error, only=JSON)
def calls_errors_otherwise(_server: Rules, text: str, /) -> dict[str, Any]:
    """An Error is called ErrorResponse."""
    return {"ErrorResponse": {"message": text}}


@mutant(Rules.json_missing, only=JSON)
def has_other_words_in_json(_server: Rules, topic: str, partition: int, /) -> Refused:
    """A missing partition is told in the words of the binary form."""
    text = f"Topic or partition does not exist: topic={topic}, partition={partition}"
    return Refused(10, text)


@mutant(Rules.offsets, only=BOTH)
def tells_one_offset(_server: Rules, base: int, _count: int, /) -> list[int]:
    """A Produce is told the offset of its first record only."""
    return [base]


@mutant(Rules.offsets, only=BOTH)
def tells_offsets_from_0(_server: Rules, _base: int, count: int, /) -> list[int]:
    """The offsets of a Produce are its records' places in it."""
    return list(range(count))


@mutant(Rules.offsets, only=BOTH)
def tells_the_end_of_nothing(_server: Rules, base: int, count: int, /) -> list[int]:
    """A Produce without records is told an offset all the same."""
    return list(range(base, base + max(count, 1)))


@mutant(Rules.numbered, only=BOTH)
def numbers_records_from_0(_server: Rules, _start: int, records: list[bytes], /) -> list[
    dict[str, Any]
]:  # fmt: skip
    """The offsets of fetched records are their places in the answer."""
    return [{"offset": n, "payload": list(record)} for n, record in enumerate(records)]


@mutant(Rules.numbered, only=BOTH)
def sends_records_as_text(_server: Rules, start: int, records: list[bytes], /) -> list[
    dict[str, Any]
]:  # fmt: skip
    """Records are texts instead of lists of numbers."""
    return [{"offset": n, "payload": r.decode("latin-1")} for n, r in enumerate(records, start)]


@mutant(Rules.numbered, only=BOTH)
def leaves_out_empty_records_in_json(
    server: Rules, start: int, records: list[bytes], /
) -> list[dict[str, Any]]:
    """Empty records are not sent."""
    return [each for each in golden(server).numbered(start, records) if each["payload"]]


@mutant(Rules.json_weight, only=BOTH)
def weighs_12_bytes_more_in_json(_server: Rules, record: bytes, /) -> int:
    """A record counts 12 bytes more than it has, as in the binary form."""
    return len(record) + 12


@mutant(Rules.json_weight, only=BOTH)
def weighs_nothing_in_json(_server: Rules, _record: bytes, /) -> int:
    """max_bytes is not looked at."""
    return 0


@mutant(Rules.json_first, only=BOTH)
def leaves_out_large_records_in_json(_server: Rules, _max_bytes: int, /) -> bool:
    """A record larger than max_bytes never comes."""
    return False


@mutant(Rules.json_start, only=BOTH)
def reads_at_the_commit_in_json(_server: Rules, commit: int | None, asked: int, /) -> int:
    """A group reads from its commit only, as in the binary form."""
    return asked if commit is None else commit


@mutant(Rules.json_start, only=BOTH)
def reads_where_it_asks_in_json(_server: Rules, _commit: int | None, asked: int, /) -> int:
    """The commit of a group is not looked at."""
    return asked


@mutant(Rules.json_start, only=BOTH)
def reads_from_0_without_commit_in_json(_server: Rules, commit: int | None, asked: int, /) -> int:
    """A group without a commit reads from the beginning."""
    return 0 if commit is None else max(commit, asked)


@mutant(Rules.json_behind, only=BOTH)
def tells_what_was_asked_in_json(_server: Rules, start: int, _end: int, /) -> int:
    """Beyond the end the next offset is the requested one, as in the binary form."""
    return start


@mutant(Rules.json_behind, only=BOTH)
def tells_0_at_the_end_in_json(_server: Rules, start: int, end: int, /) -> int:
    """At the end the next offset is 0."""
    return 0 if start == end else end


@mutant(Rules.json_following, only=BOTH)
def tells_the_last_offset_in_json(_server: Rules, start: int, taken: int, /) -> int:
    """The next offset is that of the last record."""
    return start + taken - 1


@mutant(Rules.json_commits_for, only=JSON)
def commits_for_missing_topics_in_json(_server: Rules, _topic: str, _partition: int, /) -> bool:
    """A commit for a missing topic succeeds, as in the binary form."""
    return True


@mutant(Rules.json_commits_for, only=BOTH)
def never_commits_in_json(_server: Rules, _topic: str, _partition: int, /) -> bool:
    """No commit succeeds."""
    return False


@mutant(Rules.json_log, only=JSON)
def creates_topics_in_json(server: Rules, topic: str, partition: int, /) -> list[bytes] | None:
    """A topic that is missing is made by whoever names it, with three partitions."""
    server.memory.topics.setdefault(topic, [[], [], []])
    return server.partition(topic, partition)


@mutant(Rules.json_log, only=BOTH)
def wraps_partitions_around_in_json(
    server: Rules, topic: str, partition: int, /
) -> list[bytes] | None:
    """A partition after the last one is an earlier one."""
    parts = server.memory.topics.get(topic)
    return parts[partition % len(parts)] if parts else None


@mutant(Rules.json_told, only=BOTH)
def tells_0_for_none_in_json(_server: Rules, commit: int | None, /) -> int:
    """What was never committed is 0."""
    return commit or 0


# -- reading ---------------------------------------------------------------------------------------


@mutant(Rules.object_of, only=JSON)
def reads_the_first_object_only(server: Rules, payload: bytes, /) -> Any:
    """What follows the first object is not looked at."""
    try:
        text = payload.decode().strip()
        return json.JSONDecoder(object_pairs_hook=server.members).raw_decode(text)[0]
    except (ValueError, RecursionError) as problem:
        raise Refused(2, f"failed to parse request: {problem}") from None


@mutant(Rules.object_of, only=JSON)
def closes_brackets_itself(server: Rules, payload: bytes, /) -> Any:
    """One brace that is missing at the end is made up."""
    try:
        return json.loads(payload + b"}", object_pairs_hook=server.members)
    except (ValueError, RecursionError):
        return golden(server).object_of(payload)


@mutant(Rules.object_of, only=JSON)
def takes_no_space(server: Rules, payload: bytes, /) -> Any:
    """Only compact JSON is read."""
    if b"\n" in payload.strip():
        raise Refused(2, "failed to parse request: white space")
    return golden(server).object_of(payload)


@mutant(Rules.object_of, only="json")
def dies_of_depth(server: Rules, payload: bytes, /) -> Any:
    """Deep JSON is more than the server can bear: from then on it reads nothing."""
    if payload.count(b"[") > 1000:
        server.memory.scars.add("dead")
    if "dead" in server.memory.scars:
        return {}
    return golden(server).object_of(payload)


@mutant(Rules.object_of, only=JSON)
def takes_depth_for_a_request(server: Rules, payload: bytes, /) -> Any:
    """Deep JSON is answered as if nobody had committed anything."""
    if payload.count(b"[") > 1000:
        payload = b'{"OffsetFetch":{"topic":"","partition":0,"group_id":""}}'
    return golden(server).object_of(payload)


@mutant(Rules.members, only=JSON)
def takes_the_last_of_two_members(_server: Rules, pairs: list[tuple[str, Any]], /) -> dict[
    str, Any
]:  # fmt: skip
    """Of a member that stands there twice the last one counts."""
    return dict(pairs)


@mutant(Rules.variant, only=JSON)
def takes_the_first_of_two_requests(
    server: Rules, members: list[tuple[str, Any]], /
) -> tuple[str, Any]:
    """Of two requests in one object the first one is carried out."""
    return golden(server).variant(members[:1])


@mutant(Rules.variant, only=JSON)
def takes_unknown_requests_for_a_lookup(
    server: Rules, members: list[tuple[str, Any]], /
) -> tuple[str, Any]:
    """A request that nobody knows is read as an OffsetFetch."""
    if members and members[0][0] == "Delete":
        return "OffsetFetch", members[0][1]
    return golden(server).variant(members)


@mutant(Rules.missing_member, only=JSON)
def takes_partition_0_when_in_doubt(server: Rules, key: str, /) -> Any:
    """A request without a partition is for partition 0."""
    return 0 if key == "partition" else golden(server).missing_member(key)


@mutant(Rules.number, only=JSON)
def takes_negative_numbers(server: Rules, value: Any, bits: int, /) -> int:
    """A negative number is taken for a very large one."""
    wraps = type(value) is int and -(2**bits) <= value < 0
    return value % 2**bits if wraps else golden(server).number(value, bits)


@mutant(Rules.number, only=JSON)
def cuts_wide_numbers(server: Rules, value: Any, bits: int, /) -> int:
    """A number that is too wide loses its highest bits."""
    wide = type(value) is int and value >= 2**bits
    return value % 2**bits if wide else golden(server).number(value, bits)


@mutant(Rules.number, only=JSON)
def takes_fractions(server: Rules, value: Any, bits: int, /) -> int:
    """A fraction is cut to a whole number."""
    return int(value) if isinstance(value, float) else golden(server).number(value, bits)


@mutant(Rules.number, only=JSON)
def takes_truth_for_numbers(server: Rules, value: Any, bits: int, /) -> int:
    """A truth value is 0 or 1."""
    return int(value) if isinstance(value, bool) else golden(server).number(value, bits)


@mutant(Rules.record, only=BOTH)
def takes_text_for_bytes(server: Rules, value: Any, /) -> bytes:
    """A record may be a text."""
    return value.encode() if isinstance(value, str) else golden(server).record(value)


@mutant(Rules.record, only=BOTH)
def cuts_bytes(server: Rules, value: Any, /) -> bytes:
    """A number above 255 loses its highest bits."""
    numbers = isinstance(value, list) and all(type(each) is int for each in value)
    return bytes(each % 256 for each in value) if numbers else golden(server).record(value)


@mutant(Rules.records, only=BOTH)
def stores_records_up_to_a_bad_one(server: Rules, value: Any, /) -> list[bytes]:
    """A bad record, and whatever follows it, is left out."""
    found = []
    for each in value if isinstance(value, list) else golden(server).records(value):
        try:
            found.append(server.record(each))
        except Refused:
            break
    return found


@mutant(Rules.group, only=BOTH)
def takes_no_group_for_an_empty_one(_server: Rules, value: Any, /) -> str:
    """A Fetch for nobody is one for the group without a name."""
    return value if isinstance(value, str) else ""


@mutant(Rules.unknown_members, only=JSON)
def refuses_unknown_members(_server: Rules, names: set[str], /) -> None:
    """A member that nobody knows makes a request unreadable."""
    if names:
        raise Refused(2, "failed to parse request: unknown members")


@mutant(Rules.json_request, only=JSON)
def reads_partition_0_in_json(server: Rules, payload: bytes, /) -> Request:
    """Whatever partition a request names, it is for the first."""
    found = golden(server).json_request(payload)
    found.fields["partition"] = 0
    return found
