"""Servers that refuse the right requests with the wrong code, or in words of their own."""

from lance_conformance.rustlog.golden.rules import Rules
from lance_conformance.rustlog.golden.state import Refused
from lance_conformance.rustlog.mutants.registry import BINARY, golden, mutant


@mutant(Rules.no_partition, only=BINARY)
def refuses_missing_with_code_3(server: Rules, name: str, topic: str, partition: int, /) -> Refused:
    """A missing partition has the code of the first broker."""
    return Refused(3, golden(server).no_partition(name, topic, partition).text)


@mutant(Rules.no_partition, only=BINARY)
def refuses_missing_fetches_with_code_4(
    server: Rules, name: str, topic: str, partition: int, /
) -> Refused:
    """A Fetch from a missing partition has the code of one that failed."""
    found = golden(server).no_partition(name, topic, partition)
    return Refused(4, found.text) if name == "Fetch" else found


@mutant(Rules.no_partition, only=BINARY)
def has_other_words_for_missing(
    _server: Rules, _name: str, topic: str, partition: int, /
) -> Refused:
    """A missing partition is told in the words of the first broker."""
    return Refused(10, f"Partition not found: topic={topic}, partition={partition}")


@mutant(Rules.exists, only=BINARY)
def refuses_topics_that_exist_with_code_409(server: Rules, topic: str, /) -> Refused:
    """A topic that exists has a code as in HTTP."""
    return Refused(409, golden(server).exists(topic).text)


@mutant(Rules.exists, only=BINARY)
def does_not_name_topics_that_exist(_server: Rules, _topic: str, /) -> Refused:
    """A topic that exists is not named."""
    return Refused(11, "Topic already exists")


@mutant(Rules.bad_count, only=BINARY)
def refuses_counts_with_code_2(server: Rules, count: int, /) -> Refused:
    """A topic without partitions has the code of a broken request."""
    return Refused(2, golden(server).bad_count(count).text)


@mutant(Rules.bad_count, only=BINARY)
def does_not_tell_bad_counts(_server: Rules, _count: int, /) -> Refused:
    """A count that no topic can have is not told."""
    return Refused(12, "Invalid partition count")


@mutant(Rules.no_topic, only=BINARY)
def refuses_descriptions_with_code_10(server: Rules, topic: str, /) -> Refused:
    """The description of a missing topic has the code of Produce and Fetch."""
    return Refused(10, golden(server).no_topic(topic).text)


@mutant(Rules.no_topic, only=BINARY)
def does_not_name_missing_topics(_server: Rules, _topic: str, /) -> Refused:
    """A topic that cannot be described is not named."""
    return Refused(13, "DescribeTopic failed: not found")


@mutant(Rules.no_description, only=BINARY)
def refuses_partitions_with_code_13(server: Rules, topic: str, partition: int, /) -> Refused:
    """The description of a missing partition has the code of a missing topic."""
    return Refused(13, golden(server).no_description(topic, partition).text)


@mutant(Rules.no_description, only=BINARY)
def tells_topics_from_partitions(server: Rules, topic: str, partition: int, /) -> Refused:
    """The description of a partition without a topic has the code of a missing topic."""
    found = golden(server).no_description(topic, partition)
    return found if topic in server.memory.topics else Refused(13, found.text)


@mutant(Rules.no_description, only=BINARY)
def does_not_name_missing_partitions(_server: Rules, topic: str, _partition: int, /) -> Refused:
    """A partition that cannot be described is not named."""
    return Refused(14, f"DescribePartition failed: not found in topic '{topic}'")
