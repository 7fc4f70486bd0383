"""Servers that take requests which nobody can have meant."""

from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import Refused, Request
from lance_conformance.rustlog.mutants.registry import BINARY, golden, mutant


@mutant(Rules.type_name, only=BINARY)
def takes_type_0_for_ping(server: Rules, number: int, /) -> str | None:
    """Type 0 is answered as a Ping."""
    return "Ping" if number == 0 else golden(server).type_name(number)


@mutant(Rules.type_name, only=BINARY)
def takes_type_11_for_ping(server: Rules, number: int, /) -> str | None:
    """Type 11 is answered as a Ping."""
    return "Ping" if number == 11 else golden(server).type_name(number)


@mutant(Rules.type_name, only=BINARY)
def takes_errors_for_ping(server: Rules, number: int, /) -> str | None:
    """An error that a client sends is answered as a Ping."""
    return "Ping" if number == 254 else golden(server).type_name(number)


@mutant(Rules.type_name, only="binary")
def takes_a_brace_for_ping(server: Rules, number: int, /) -> str | None:
    """A brace is answered as a Ping."""
    return "Ping" if number == 0x7B else golden(server).type_name(number)


@mutant(Rules.unknown_type, only=BINARY)
def refuses_types_with_code_3(server: Rules, number: int, /) -> Refused:
    """An unknown type has a code of its own."""
    return Refused(3, golden(server).unknown_type(number).text)


@mutant(Rules.unknown_type, only=BINARY)
def names_types_in_hex(_server: Rules, number: int, /) -> Refused:
    """An unknown type is named in hexadecimal."""
    return Refused(2, f"Decode error: unknown request type: {number:#x}")


def _lenient(server: Rules, request: str, name: str, words: str, size: int) -> int:
    return 0 if name == request else golden(server).short(name, words, size)


@mutant(Rules.short, only=BINARY)
def fetches_all_without_max_bytes(server: Rules, name: str, words: str, size: int, /) -> int:
    """A Fetch without its last field reads as much as there is."""
    if name == "Fetch" and words == "missing max_bytes":
        return 2**32 - 1
    return golden(server).short(name, words, size)


@mutant(Rules.short, only=BINARY)
def commits_what_is_missing(server: Rules, name: str, words: str, size: int, /) -> int:
    """Fields that a commit lacks are 0."""
    return _lenient(server, "OffsetCommit", name, words, size)


@mutant(Rules.short, only=BINARY)
def looks_up_what_is_missing(server: Rules, name: str, words: str, size: int, /) -> int:
    """Fields that an OffsetFetch lacks are 0."""
    return _lenient(server, "OffsetFetch", name, words, size)


@mutant(Rules.short, only=BINARY)
def describes_what_is_missing(server: Rules, name: str, words: str, size: int, /) -> int:
    """Fields that a DescribePartition lacks are 0."""
    return _lenient(server, "DescribePartition", name, words, size)


@mutant(Rules.short, only=BINARY)
def creates_one_partition_when_in_doubt(server: Rules, name: str, words: str, size: int, /) -> int:
    """A CreateTopic that does not say how many partitions makes one."""
    return 1 if name == "CreateTopic" else golden(server).short(name, words, size)


@mutant(Rules.short, only=BINARY)
def refuses_short_requests_with_code_4(_server: Rules, name: str, words: str, _size: int, /) -> int:
    """A Fetch that is cut short has the code of one that failed."""
    raise Refused(4 if name == "Fetch" else 2, f"Decode error: decode error: {words}")


@mutant(Rules.short, only=BINARY)
def does_not_name_what_is_missing(_server: Rules, _name: str, _words: str, _size: int, /) -> int:
    """A request that is cut short is told no more."""
    raise Refused(2, "Decode error: decode error: unexpected end")


@mutant(Rules.short, only=BINARY)
def calls_the_group_otherwise(server: Rules, name: str, words: str, size: int, /) -> int:
    """The group of a Fetch is called as that of a commit."""
    return golden(server).short(name, words.replace("group_id", "group"), size)


@mutant(Rules.cut_name, only=BINARY)
def takes_what_is_there_of_a_name(server: Rules, name: str, key: str, rest: bytes, /) -> bytes:
    """The name of a topic to describe may be longer than its payload."""
    return rest if name == "DescribeTopic" else golden(server).cut_name(name, key, rest)


@mutant(Rules.cut_name, only=BINARY)
def refuses_cut_names_as_missing_topics(
    server: Rules, name: str, key: str, rest: bytes, /
) -> bytes:
    """A Produce whose topic is cut short is told that there is no such topic."""
    if name == "Produce":
        raise Refused(10, "Topic or partition does not exist")
    return golden(server).cut_name(name, key, rest)


@mutant(Rules.cut_name, only=BINARY)
def calls_cut_names_missing(_server: Rules, _name: str, key: str, _rest: bytes, /) -> bytes:
    """A name that is there in part is said to be missing."""
    raise Refused(2, f"Decode error: decode error: missing {key}")


@mutant(Rules.no_count, only=BINARY)
def counts_nothing_when_in_doubt(_server: Rules, /) -> list[bytes]:
    """A Produce without a count has no records."""
    return []


@mutant(Rules.too_few, only=BINARY)
def stores_what_is_there(_server: Rules, records: list[bytes], /) -> list[bytes]:
    """A Produce with fewer records than it says is stored as far as it goes."""
    return records


@mutant(Rules.too_few, only=BINARY)
def refuses_only_what_has_no_record(server: Rules, records: list[bytes], /) -> list[bytes]:
    """A Produce that lacks some of its records is stored, one without any is refused."""
    return records or golden(server).too_few(records)


@mutant(Rules.too_few, only=BINARY)
def believes_counts_of_nothing(server: Rules, records: list[bytes], /) -> list[bytes]:
    """A Produce that has none of the records it says is taken for one without records."""
    return golden(server).too_few(records) if records else []


@mutant(Rules.cut_record, only=BINARY)
def stores_what_is_there_of_a_record(_server: Rules, rest: bytes, /) -> bytes:
    """A record that its payload ends in the middle of is stored as far as it goes."""
    return rest


@mutant(Rules.cut_record, only=BINARY)
def dies_of_long_records(_server: Rules, rest: bytes, /) -> bytes:
    """A record that is longer than its payload is refused as an error of the server."""
    raise Refused(500, f"Internal server error: {len(rest)}")


@mutant(Rules.not_utf8, only=BINARY)
def makes_topics_readable(server: Rules, name: str, key: str, raw: bytes, why: str, /) -> str:
    """What is not UTF-8 in the name of a topic is replaced."""
    if key != "topic":
        return golden(server).not_utf8(name, key, raw, why)
    return raw.decode(errors="replace")


@mutant(Rules.not_utf8, only=BINARY)
def makes_groups_readable(server: Rules, name: str, key: str, raw: bytes, why: str, /) -> str:
    """What is not UTF-8 in the name of a group is replaced."""
    if key == "topic":
        return golden(server).not_utf8(name, key, raw, why)
    return raw.decode(errors="replace")


@mutant(Rules.not_utf8, only=BINARY)
def does_not_name_what_is_no_utf8(
    _server: Rules, _name: str, _key: str, _raw: bytes, why: str, /
) -> str:
    """What is not UTF-8 is refused without saying which field it is."""
    raise Refused(2, f"Decode error: decode error: {why}")


@mutant(Rules.behind, only=BINARY)
def refuses_bytes_behind(_server: Rules, _name: str, rest: bytes, /) -> None:
    """A request must end with its last field."""
    if rest:
        raise Refused(2, "Decode error: decode error: trailing bytes")


@mutant(Rules.behind, only=BINARY)
def refuses_bytes_behind_ping(_server: Rules, name: str, rest: bytes, /) -> None:
    """A Ping must be one byte."""
    if rest and name == "Ping":
        raise Refused(2, "Decode error: decode error: trailing bytes")


@mutant(Rules.decode, only=BINARY)
def reads_topics_before_groups(server: Rules, payload: bytes, /) -> Request:
    """A commit is read in the order of the specification: the topic first, and then the group."""
    found = golden(server).decode(payload)
    if found.name == "OffsetCommit":
        fields = found.fields
        fields["group"], fields["topic"] = fields["topic"], fields["group"]
    return found
