"""Servers that answer binary requests wrongly, or with what another protocol would say."""

from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.mutants.registry import BINARY, golden, mutant

# -- Fetch -----------------------------------------------------------------------------------------


@mutant(Rules.chosen, only=BINARY)
def reads_from_the_beginning(_server: Rules, log: list[bytes], _start: int, /) -> list[bytes]:
    """Whatever offset a Fetch names, it begins at 0."""
    return log


@mutant(Rules.chosen, only=BINARY)
def reads_behind_the_offset(_server: Rules, log: list[bytes], start: int, /) -> list[bytes]:
    """A Fetch begins after its offset, unless that is 0."""
    return log[start + 1 :] if start else log


@mutant(Rules.weight, only=BINARY)
def does_not_weigh_offsets(_server: Rules, record: bytes, /) -> int:
    """A record counts its own bytes alone."""
    return len(record)


@mutant(Rules.weight, only=BINARY)
def weighs_20_bytes_more(_server: Rules, record: bytes, /) -> int:
    """A record counts 20 bytes more than it has, as one of the protocol's documents has it."""
    return len(record) + 20


@mutant(Rules.fits, only=BINARY)
def leaves_out_what_just_fits(_server: Rules, counted: int, max_bytes: int, /) -> bool:
    """Records must stay below max_bytes."""
    return counted < max_bytes


@mutant(Rules.fits, only=BINARY)
def takes_max_bytes_for_signed(_server: Rules, counted: int, max_bytes: int, /) -> bool:
    """A max_bytes of 4 GiB is below zero."""
    return counted <= max_bytes < 2**31


@mutant(Rules.first_record, only=BINARY)
def leaves_out_records_above_max_bytes(_server: Rules, _max_bytes: int, /) -> bool:
    """A record larger than max_bytes never comes."""
    return False


@mutant(Rules.first_record, only=BINARY)
def takes_one_for_max_bytes_0(_server: Rules, _max_bytes: int, /) -> bool:
    """At least one record comes, also for max_bytes 0."""
    return True


@mutant(Rules.following, only=BINARY)
def tells_the_last_offset(_server: Rules, start: int, taken: int, /) -> int:
    """The next offset is that of the last record."""
    return start + max(taken - 1, 0)


@mutant(Rules.following, only=BINARY)
def tells_how_many_came(_server: Rules, _start: int, taken: int, /) -> int:
    """The next offset is the number of records that came."""
    return taken


@mutant(Rules.behind_the_end, only=BINARY)
def tells_the_end(_server: Rules, _start: int, end: int, /) -> int:
    """Beyond the end the next offset is the end, as the specification has it."""
    return end


@mutant(Rules.behind_the_end, only=BINARY)
def tells_offsets_of_63_bits(_server: Rules, start: int, _end: int, /) -> int:
    """The highest bit of an offset is lost."""
    return start % 2**63


@mutant(Rules.behind_the_end, only=BINARY)
def tells_one_more_at_the_end(_server: Rules, start: int, end: int, /) -> int:
    """At the end, where there is one, the next offset is one after it."""
    return start + (start == end > 0)


@mutant(Rules.behind_the_end, only=BINARY)
def tells_1_when_there_is_nothing(_server: Rules, start: int, end: int, /) -> int:
    """In an empty partition the next offset is 1."""
    return start if end else 1


# -- groups ----------------------------------------------------------------------------------------


@mutant(Rules.group_start, only=BINARY)
def reads_at_the_higher_of_both(_server: Rules, commit: int | None, asked: int, /) -> int | None:
    """A group reads from the higher of commit and request, as the specification has it."""
    return None if commit is None else max(commit, asked)


@mutant(Rules.group_start, only=BINARY)
def reads_at_the_lower_of_both(_server: Rules, commit: int | None, asked: int, /) -> int | None:
    """A group reads from the lower of commit and request."""
    return None if commit is None else min(commit, asked)


@mutant(Rules.group_start, only=BINARY)
def takes_commit_0_for_none(_server: Rules, commit: int | None, _asked: int, /) -> int | None:
    """A group that committed 0 is treated as one that never did."""
    return commit or None


@mutant(Rules.group_start, only=BINARY)
def reads_where_it_asks_without_commit(_server: Rules, commit: int | None, asked: int, /) -> int:
    """A group without a commit reads from where it asks, as the specification has it."""
    return asked if commit is None else commit


@mutant(Rules.group_start, only=BINARY)
def holds_commits_to_what_is_there(_server: Rules, commit: int | None, asked: int, /) -> int | None:
    """A commit that is far ahead of what is asked for is not believed."""
    return asked if commit is not None and commit > asked + 5 else commit


@mutant(Rules.without_commit, only=BINARY)
def tells_what_was_asked_without_commit(_server: Rules, asked: int, /) -> int:
    """A group without a commit is told the offset that it asked for."""
    return asked


@mutant(Rules.commit_answer, only=BINARY)
def tells_no_success(_server: Rules, /) -> int:
    """A commit that was kept is told 0."""
    return 0


@mutant(Rules.told_commit, only=BINARY)
def tells_0_for_none(_server: Rules, commit: int | None, /) -> int:
    """What was never committed is 0."""
    return commit or 0


@mutant(Rules.told_commit, only=BINARY)
def tells_none_for_0(_server: Rules, commit: int | None, /) -> int | None:
    """A commit of 0 is none."""
    return commit or None


# -- topics ----------------------------------------------------------------------------------------


@mutant(Rules.count_ok, only=BINARY)
def makes_topics_without_partitions(_server: Rules, _count: int, /) -> bool:
    """A topic may have no partitions."""
    return True


@mutant(Rules.create_answer, only=BINARY)
def tells_no_success_of_topics(_server: Rules, /) -> int:
    """The creation of a topic is told 0."""
    return 0


@mutant(Rules.listed, only=BINARY)
def lists_by_age(_server: Rules, topics: dict[str, int], /) -> list[tuple[str, int]]:
    """Topics are listed as they were made."""
    return list(topics.items())


@mutant(Rules.listed, only=BINARY)
def lists_every_partition(_server: Rules, topics: dict[str, int], /) -> list[tuple[str, int]]:
    """Each topic is listed once for each of its partitions."""
    return [(name, 1) for name in sorted(topics) for _ in range(topics[name])]


@mutant(Rules.listed, only=BINARY)
def lists_only_one(_server: Rules, topics: dict[str, int], /) -> list[tuple[str, int]]:
    """Only the latest topic is listed."""
    return list(topics.items())[-1:]


@mutant(Rules.description, only=BINARY)
def numbers_partitions_from_1(_server: Rules, topic: str, count: int, /) -> tuple[
    str, int, list[int]
]:  # fmt: skip
    """Partitions are described as 1 and higher."""
    return topic, count, list(range(1, count + 1))


@mutant(Rules.description, only=BINARY)
def describes_one_partition(_server: Rules, topic: str, count: int, /) -> tuple[
    str, int, list[int]
]:  # fmt: skip
    """Whatever a topic has, its description has one partition."""
    return topic, count, [0]


@mutant(Rules.description, only=BINARY)
def describes_no_name(server: Rules, topic: str, count: int, /) -> tuple[str, int, list[int]]:
    """A description does not say of what."""
    return ("", *golden(server).description(topic, count)[1:])


@mutant(Rules.partition_description, only=BINARY)
def describes_partition_0(_server: Rules, topic: str, _partition: int, /) -> tuple[str, int]:
    """The description of a partition always says 0."""
    return topic, 0


@mutant(Rules.watermark, only=BINARY)
def tells_other_ends_of_all(_server: Rules, log: list[bytes], /) -> int:
    """Where a partition ends is one more in the description of its topic."""
    return len(log) + 1


@mutant(Rules.partition_watermark, only=BINARY)
def tells_the_last_for_the_end(_server: Rules, log: list[bytes], /) -> int:
    """The high watermark is the last offset."""
    return max(len(log) - 1, 0)


@mutant(Rules.metrics, only=BINARY)
def tells_metrics_in_json(_server: Rules, /) -> bytes:
    """Metrics are JSON."""
    return b'{"messages_produced_total": 0}\n'


@mutant(Rules.metrics, only=BINARY)
def has_no_metrics(_server: Rules, /) -> bytes:
    """Metrics are empty."""
    return b""


@mutant(Rules.pong, only=BINARY)
def answers_ping_with_0x8a(_server: Rules, /) -> bytes:
    """A Ping is answered as one of the protocol's documents has it."""
    return b"\x8a"


@mutant(Rules.pong, only=BINARY)
def answers_ping_with_a_list(_server: Rules, /) -> bytes:
    """A Ping is answered with an empty list of topics."""
    return b"\6\0\0\0\0"
