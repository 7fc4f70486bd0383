"""The golden rules of the JSON form, where they are others than those of the binary one."""

import json
from typing import Any

from lance_conformance.rustlog.golden.log import Log
from lance_conformance.rustlog.golden.state import Refused, Request

MEMBERS = {
    "Produce": ("topic", "partition", "records"),
    "Fetch": ("topic", "partition", "offset", "max_bytes"),
    "OffsetCommit": ("topic", "partition", "group_id", "offset"),
    "OffsetFetch": ("topic", "partition", "group_id"),
}
WIDTHS = {"partition": 32, "offset": 64, "max_bytes": 64}


class JsonForm(Log):
    """Rules about JSON requests and their answers."""

    # -- reading -----------------------------------------------------------------------------------

    def json_request(self, payload: bytes, /) -> Request:
        """A request from its payload."""
        body = self.object_of(payload)
        if not isinstance(body, dict):
            raise Refused(2, "failed to parse request: no object")
        name, members = self.variant(list(body.items()))
        if not isinstance(members, dict):
            raise Refused(2, f"failed to parse request: {name} is not an object")
        fields = {key: self._member(key, members) for key in MEMBERS[name]}
        if name == "Fetch":
            fields["group_id"] = self.group(members.get("group_id"))
        self.unknown_members(set(members) - {*MEMBERS[name], "group_id"})
        return Request(name, fields)

    def object_of(self, payload: bytes, /) -> Any:
        """The JSON of a payload, which has nothing else in it."""
        try:
            return json.loads(payload.decode(), object_pairs_hook=self.members)
        except (ValueError, RecursionError) as problem:
            raise Refused(2, f"failed to parse request: {problem}") from None

    def members(self, pairs: list[tuple[str, Any]], /) -> dict[str, Any]:
        """The members of an object, each of which stands there once."""
        if len(dict(pairs)) < len(pairs):
            raise Refused(2, "failed to parse request: a member stands there twice")
        return dict(pairs)

    def variant(self, members: list[tuple[str, Any]], /) -> tuple[str, Any]:
        """The one member of a request, whose name is known."""
        if len(members) != 1 or members[0][0] not in MEMBERS:
            raise Refused(2, f"failed to parse request: one of {', '.join(MEMBERS)} is expected")
        return members[0]

    def _member(self, key: str, members: dict[str, Any]) -> Any:
        if key not in members:
            return self.missing_member(key)
        value = members[key]
        if key in WIDTHS:
            return self.number(value, WIDTHS[key])
        if key == "records":
            return self.records(value)
        if not isinstance(value, str):
            raise Refused(2, f"failed to parse request: {key} is not text")
        return value

    def missing_member(self, key: str, /) -> Any:
        """A member that must be there."""
        raise Refused(2, f"failed to parse request: {key} is not there")

    def number(self, value: Any, bits: int, /) -> int:
        """A whole number of so many bits."""
        if type(value) is not int or not 0 <= value < 2**bits:
            raise Refused(2, f"failed to parse request: {value!r} is not a number of {bits} bits")
        return value

    def records(self, value: Any, /) -> list[bytes]:
        """A list of lists of bytes."""
        if not isinstance(value, list):
            raise Refused(2, "failed to parse request: records is not a list")
        return [self.record(each) for each in value]

    def record(self, value: Any, /) -> bytes:
        """A list of bytes."""
        try:
            if isinstance(value, list) and all(type(each) is int for each in value):
                return bytes(value)
        except ValueError:
            pass
        raise Refused(2, "failed to parse request: a record is not a list of bytes")

    def group(self, value: Any, /) -> str | None:
        """The group of a Fetch; null is none."""
        if value is not None and not isinstance(value, str):
            raise Refused(2, "failed to parse request: group_id is not text")
        return value

    def unknown_members(self, _names: set[str], /) -> None:
        """Members that nobody knows are ignored."""

    def stays_after_bad_json(self, /) -> bool:
        """A request that cannot be read does not end the connection."""
        return True

    # -- answering ---------------------------------------------------------------------------------

    def json_error(self, text: str, /) -> dict[str, Any]:
        """A refusal."""
        return {"Error": {"message": text}}

    def json_missing(self, topic: str, partition: int, /) -> Refused:
        """What is said about a partition that is not there."""
        return Refused(10, f"partition not found: topic={topic}, partition={partition}")

    def offsets(self, base: int, count: int, /) -> list[int]:
        """The offset of each record of a Produce."""
        return list(range(base, base + count))

    def numbered(self, start: int, records: list[bytes], /) -> list[dict[str, Any]]:
        """Records with their offsets."""
        return [{"offset": n, "payload": list(each)} for n, each in enumerate(records, start)]

    def json_weight(self, record: bytes, /) -> int:
        """What a record counts against max_bytes."""
        return len(record)

    def json_first(self, _max_bytes: int, /) -> bool:
        """Whether the first record comes, however large it is."""
        return True

    def json_start(self, commit: int | None, asked: int, /) -> int:
        """Where a group reads: at the higher of both."""
        return max(commit or 0, asked)

    def json_behind(self, _start: int, end: int, /) -> int:
        """Where to go on when there is nothing."""
        return end

    def json_following(self, start: int, taken: int, /) -> int:
        """Where to go on."""
        return start + taken

    def json_commits_for(self, topic: str, partition: int, /) -> bool:
        """Whether commits for a partition are kept: if it is there."""
        return self.partition(topic, partition) is not None

    def json_told(self, commit: int | None, /) -> int | None:
        """What is told of a commit."""
        return commit

    def json_place(self, group: str, topic: str, partition: int, /) -> tuple[str, str, int]:
        """What a commit is kept under: the same as in the binary form."""
        return group, topic, partition

    def json_log(self, topic: str, partition: int, /) -> list[bytes] | None:
        """Where JSON requests read and write: the same as binary ones."""
        return self.partition(topic, partition)
