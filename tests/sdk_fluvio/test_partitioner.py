"""Which partition a record goes to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk.errors import ConfigError
from lance_sdk.fluvio import FluvioClient
from lance_sdk.fluvio._partitioner import partitioner_of
from lance_sdk.fluvio._send_buffer import SendBuffer
from lance_sdk.fluvio._topics import Leader, Leaders
from lance_spec.codec.siphash import fluvio_partition, siphash24

KEYS = [
    "",
    "a",
    "key",
    "sensor-1",
    "sensor-2",
    "user:4711",
    "1234567",
    "12345678",
    "123456789",
    "x" * 15,
    "x" * 16,
    "x" * 17,
    "x" * 100,
    "Grüße",
    "日本語",
    "orders/1",
    "0",
    "1",
    "2",
    "3",
    "LANCE",
    "fluvio",
    "k" * 1000,
    "\0",
]
PUBLISHED = {
    2: [1, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0],
    3: [2, 1, 2, 2, 0, 0, 2, 0, 1, 2, 1, 1, 0, 0, 2, 1, 0, 1, 2, 0, 2, 1, 1, 1],
    7: [3, 2, 6, 0, 2, 5, 6, 1, 6, 3, 4, 2, 3, 5, 3, 0, 6, 0, 3, 0, 2, 6, 3, 3],
    20: [19, 7, 6, 14, 1, 12, 0, 17, 10, 1, 10, 0, 8, 4, 2, 17, 15, 14, 2, 10, 9, 4, 1, 6],
}
"""Where the published client 0.21.0 put these keys, by number of partitions, on a real cluster."""


@pytest.mark.parametrize("partitions", PUBLISHED)
def test_keys_go_where_the_published_client_puts_them(partitions: int) -> None:
    """Programs with either client keep a key together."""
    found = [fluvio_partition(key.encode(), partitions) for key in KEYS]
    assert found == PUBLISHED[partitions]


def test_the_hash_is_siphash_2_4() -> None:
    """The hash of nothing, and of 8 bytes, with a key of zeros."""
    assert siphash24(b"") == 0x1E924B9D737700D7
    assert siphash24(bytes(8)) == 0xE849E8BB6FFE2567


@given(st.binary(), st.integers(1, 1000))
def test_every_key_has_a_partition(key: bytes, partitions: int) -> None:
    """Whatever the key, the partition is one of those there are, and always the same."""
    found = fluvio_partition(key, partitions)
    assert found in range(partitions)
    assert fluvio_partition(bytes(key), partitions) == found


def leaders(*online: bool) -> Leaders:
    """Return leaders of as many partitions, some of which can be written."""
    return Leaders("t", [Leader(("host", 1), online=each) for each in online])


def chosen(known: Leaders, count: int) -> list[int]:
    """Return which partitions records without a key go to."""
    send_buffer = SendBuffer(known, fluvio_partition, 1000)
    for number in range(count):
        send_buffer.add(b"%d" % number, None, 0, None)
    where = {}
    for partition in send_buffer.partitions:
        where |= {int(each.value): partition for each in send_buffer.take(partition)}
    return [where[number] for number in range(count)]


@pytest.mark.parametrize(
    ("online", "expected"),
    [
        ((True, True, True), [0, 1, 2, 0, 1, 2]),
        ((True, False, True), [0, 2, 0, 2, 0, 2]),
        ((False, False), [0, 1, 0, 1, 0, 1]),
    ],
)
def test_records_without_a_key_take_turns(online: tuple[bool, ...], expected: list[int]) -> None:
    """Partitions that cannot be written now are passed over, unless none can."""
    assert chosen(leaders(*online), 6) == expected


@pytest.mark.parametrize("name", ["siphash", "crc32"])
def test_a_partitioner_may_be_named(name: str) -> None:
    """A name stands for a function of the key."""
    assert partitioner_of(name)(b"key", 10) in range(10)


def test_a_partitioner_may_be_given() -> None:
    """Any function of the key and the number of partitions will do."""
    send_buffer = SendBuffer(leaders(True, True), lambda key, count: len(key) % count, 1000)
    send_buffer.add(b"v", b"odd", 0, None)
    assert send_buffer.partitions == [1]


def test_an_unknown_partitioner_is_refused() -> None:
    """The names there are stand in the error."""
    with pytest.raises(ConfigError, match="expected one of siphash, crc32, or a function"):
        FluvioClient("localhost:9003", partitioner="murmur2")
