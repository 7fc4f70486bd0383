"""What the published client does with servers: operations whose answers two are to share."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

fluvio: Any = pytest.importorskip("fluvio", reason="the published client is not installed")

Answer: TypeAlias = Any
"""What an operation returned; of one that was refused its `Refused`."""
_LIMIT: Final = 30.0
"""Seconds after which an operation has no answer."""
_BEGINNING: Final = fluvio.Offset.beginning()
_KINDS: Final = ("None_", "Gzip", "Snappy", "Lz4", "Zstd")
_NAMES: Final = ("UPPER", "a_b", "a.b", "a b", "-a", "a-", "x" * 64, "", "a/b", "ä")
_MIB: Final = 1 << 20


class Refused(NamedTuple):
    """A refusal.

    Attributes:
        text: what the client says of it, without names and numbers.
    """

    text: str


class Operation(NamedTuple):
    """Something that is done to both servers.

    Attributes:
        name: what it is.
        do: does it, and returns what is compared.
        refused: what both texts of a refusal have to match; None compares them.
    """

    name: str
    do: Callable[[], Answer]
    refused: str | None = None


class Side:
    """A server, used by published clients.

    Args:
        sc: where its SC listens.
        own: begins the names of the topics that are created.
    """

    def __init__(self, sc: str, own: str) -> None:
        config = fluvio.FluvioConfig.new(sc)
        self.admin = fluvio.FluvioAdmin.connect_with_config(config)
        self.client = fluvio.Fluvio.connect_with_config(config)
        self._own = own
        self._kept: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Side {self._own!r}>"

    def create(self, end: str, spec: Any = None) -> Answer:
        """Create a topic."""
        return self.admin.create_topic(self._own + end, (spec or _spec()).build())

    def create_named(self, name: str) -> Answer:
        """Create a topic of a name, and delete it again where it was taken."""
        self.admin.create_topic(name, _spec().build())
        self.admin.delete_topic(name)

    def delete(self, end: str) -> Answer:
        """Delete a topic."""
        return self.admin.delete_topic(self._own + end)

    def listed(self, *ends: str) -> Answer:
        """Return what topics a list of names stands for."""
        found = self.admin.list_topics([self._own + end for end in ends])
        return sorted(each.name().removeprefix(self._own) for each in found)

    def all(self) -> Answer:
        """Return our topics, and the servers' own, among all."""
        names = (each.name() for each in self.admin.all_topics())
        return sorted(
            each.removeprefix(self._own)
            for each in names
            if each.startswith(self._own) or each == "consumer-offset"
        )

    def partitions(self) -> Answer:
        """Return how many partitions are listed besides those of servers' own topics."""
        return len(self.admin.list_partitions([]))

    def produce(self, end: str, *values: bytes, key: bytes = b"", config: Any = None) -> Answer:
        """Send values; return their partitions and offsets."""
        return self.send(end, [(key, value) for value in values], config)

    def send(self, end: str, records: list[tuple[bytes, bytes]], config: Any = None) -> Answer:
        """Send records; return their partitions and offsets."""
        chosen = (config or builder()).build()
        producer = self.client.topic_producer_with_config(self._own + end, chosen)
        sent = [producer.send(key, value) for key, value in records]
        producer.flush()
        return [(done.partition_id(), done.offset()) for done in (each.wait() for each in sent)]

    def many(self, count: int) -> Answer:
        """Return whether so many records get all offsets of a new topic, in order."""
        self.create("-many")
        sent = self.send("-many", [(b"", b"%d" % each) for each in range(count)])
        return sent == [(0, each) for each in range(count)]

    def large(self, mib: int) -> Answer:
        """Produce one large record to a topic that has none."""
        end = f"-large{mib}"
        self.create(end)
        return self.produce(end, b"x" * (mib * _MIB), config=builder().max_request_size(64 * _MIB))

    def send_all(self, end: str, *values: bytes) -> Answer:
        """Send values with one call."""
        producer = self.client.topic_producer(self._own + end)
        sent = producer.send_all([(b"", value) for value in values])
        producer.flush()
        return [each.wait().offset() for each in sent]

    def send_string(self, end: str, value: str) -> Answer:
        """Send text."""
        producer = self.client.topic_producer(self._own + end)
        sent = producer.send_string(value)
        producer.flush()
        return sent.wait().offset()

    def read(self, end: str, count: int, start: Any = _BEGINNING, partition: int = 0) -> Answer:
        """Return records."""
        consumer = self.client.partition_consumer(self._own + end, partition)
        return _shown(islice(consumer.stream(start), count))

    def numbers(self, end: str, count: int) -> Answer:
        """Return whether records come with all offsets, in order."""
        consumer = self.client.partition_consumer(self._own + end, 0)
        found = [each.offset() for each in islice(consumer.stream(_BEGINNING), count)]
        return found == list(range(count))

    def until_end(self, end: str) -> Answer:
        """Return what a consumer has that ends at the end."""
        config = self._managed(end, None)
        config.disable_continuous()
        return _shown(self.client.consumer_with_config(config.build()))

    def every(self, end: str, count: int) -> Answer:
        """Return the values of all partitions."""
        stream = self.client.multi_partition_consumer(self._own + end).stream(_BEGINNING)
        return sorted(bytes(each.value()) for each in islice(stream, count))

    def some(self, *places: tuple[str, int], count: int) -> Answer:
        """Return the values of some partitions."""
        named = [(self._own + end, partition) for end, partition in places]
        stream = self.client.multi_topic_partition_consumer(named).stream(_BEGINNING)
        return sorted(bytes(each.value()) for each in islice(stream, count))

    def live(self, end: str) -> Answer:
        """Return what a consumer at the end sees of what is produced later."""
        stream = self.client.partition_consumer(self._own + end, 0).stream(fluvio.Offset.end())
        self.produce(end, b"late")
        return bytes(next(stream).value())

    def keep(self, end: str) -> Answer:
        """Begin to consume a new topic."""
        self.create(end)
        self.produce(end, b"v")
        stream = self.client.partition_consumer(self._own + end, 0).stream(_BEGINNING)
        self._kept[end] = stream
        return bytes(next(stream).value())

    def go_on(self, end: str) -> Answer:
        """Go on with that."""
        return bytes(next(self._kept[end]).value())

    def _managed(self, end: str, consumer: str | None, strategy: str = "MANUAL") -> Any:
        config = fluvio.ConsumerConfigExtBuilder(self._own + end)
        config.offset_start(_BEGINNING)
        if consumer is not None:
            config.offset_consumer(consumer)
            config.offset_strategy(getattr(fluvio.OffsetManagementStrategy, strategy))
        return config

    def managed(
        self, end: str, consumer: str, count: int, strategy: str = "MANUAL", commit: bool = True
    ) -> Answer:
        """Consume by name, and commit."""
        config = self._managed(end, consumer, strategy).build()
        stream = self.client.consumer_with_config(config)
        found = [bytes(next(stream).value()) for _ in range(count)]
        if commit:
            stream.offset_commit()
            stream.offset_flush()
        return found

    def offsets(self) -> Answer:
        """Return what consumers of our topics committed."""
        return sorted(
            (each.consumer_id, each.topic.removeprefix(self._own), each.partition, each.offset)
            for each in self.client.consumer_offsets()
            if each.topic.startswith(self._own)
        )

    def forget(self, consumer: str, end: str, partition: int = 0) -> Answer:
        """Delete what a consumer committed."""
        return self.client.delete_consumer_offset(consumer, self._own + end, partition)

    def answer(self, operation: Operation) -> Answer:
        """Do an operation; return what came of it."""
        try:
            return operation.do()
        except Exception as error:  # noqa: BLE001 - the client has one class for all
            return Refused(self._plain(str(error)))

    def _plain(self, text: str) -> str:
        return re.sub(r"\s+", " ", text.replace(self._own, "")).lower()


def builder() -> Any:
    """Return a new configuration of a producer."""
    return fluvio.TopicProducerConfigBuilder()


def _spec(partitions: int = 1) -> Any:
    return fluvio.TopicSpec.create().with_partitions(partitions)


def _shown(records: Any) -> list[tuple[int, Any, bytes]]:
    return [
        (each.offset(), each.key() and bytes(each.key()), bytes(each.value())) for each in records
    ]


def _compressed(kind: str) -> Any:
    """Return a topic of one compression; the client gives the value of what it is told on."""
    value = getattr(fluvio.Compression, kind)
    return _spec().with_compression(SimpleNamespace(value=value))


def operations(side: Side) -> Iterator[Operation]:
    """Yield what is to be done, in this order: later ones use what earlier ones made."""
    yield from _creating(side)
    yield from _naming(side)
    yield from _configuring(side)
    yield from _producing(side)
    yield from _consuming(side)
    yield from _committing(side)
    yield from _deleting(side)


def _creating(side: Side) -> Iterator[Operation]:
    yield Operation("create a topic", lambda: side.create("-a"))
    yield Operation("create three partitions", lambda: side.create("-b", _spec(3)))
    yield Operation("create one that is there", lambda: side.create("-a"))
    yield Operation("list all topics", side.all)
    yield Operation("list by the beginning of names", lambda: side.listed(""))
    yield Operation("list by name", lambda: side.listed("-a"))
    yield Operation("list by two names", lambda: side.listed("-a", "-b"))
    yield Operation("list by a name that is not there", lambda: side.listed("-zzz"))
    yield Operation("list partitions", lambda: side.partitions() >= 4)
    yield Operation(
        "list partitions by a name", lambda: len(side.admin.list_partitions(["zzz"])) >= 4
    )
    yield Operation("list smart modules", lambda: side.admin.list_smartmodules([]))
    yield Operation("delete a smart module", lambda: side.admin.delete_smartmodule("zzz"), "")


def _naming(side: Side) -> Iterator[Operation]:
    for name in _NAMES:
        yield Operation(f"create {name!r}", partial(side.create_named, name))
    yield Operation("create a name of digits", lambda: side.create("-123"))


def _configuring(side: Side) -> Iterator[Operation]:
    for seconds in (1, 9, 10, 3600):
        spec = _spec().with_retention_time(seconds)
        create = partial(side.create, f"-r{seconds}", spec)
        yield Operation(f"create with {seconds} s of retention", create, r"\b10\b")
    yield Operation("create for gzip", lambda: side.create("-gzip", _compressed("Gzip")))
    yield Operation(
        "create with a size", lambda: side.create("-s", _spec().with_max_partition_size(1 << 30))
    )
    yield Operation(
        "create with a size of segments",
        lambda: side.create("-t", _spec().with_segment_size(1 << 24)),
    )
    yield Operation("create in system space", lambda: side.create("-u", _spec().as_system_topic()))


def _producing(side: Side) -> Iterator[Operation]:
    yield Operation("produce with a key", lambda: side.produce("-a", b"v", key=b"k"))
    yield Operation("produce text", lambda: side.send_string("-a", "hi"))
    yield Operation("produce nothing", lambda: side.produce("-a", b""))
    yield Operation("produce several at once", lambda: side.send_all("-a", b"1", b"2", b"3"))
    for kind in _KINDS:
        config = builder().compression(getattr(fluvio.Compression, kind))
        produce = partial(side.produce, "-a", kind.encode(), config=config)
        yield Operation(f"produce with {kind}", produce)
    yield Operation(
        "produce without waiting for a commit",
        lambda: side.produce(
            "-a", b"u", config=builder().isolation(fluvio.Isolation.ReadUncommitted)
        ),
    )
    yield Operation(
        "produce at most once",
        lambda: len(
            side.produce(
                "-a",
                b"m",
                config=builder().delivery_semantic(fluvio.DeliverySemantic.AtMostOnce),
            )
        ),
    )
    yield Operation(
        "produce without linger", lambda: side.produce("-a", b"l", config=builder().linger(0))
    )
    yield Operation("produce 10,000", lambda: side.many(10_000))
    yield Operation(
        "24 keys go where they belong",
        lambda: [at for at, _ in side.send("-b", [(b"k%d" % each, b"v") for each in range(24)])],
    )
    for mib in (1, 4, 12, 20):
        yield Operation(f"produce {mib} MiB", partial(side.large, mib))
    yield Operation("produce to a topic that is not there", lambda: side.produce("-zzz", b"v"))
    yield Operation(
        "produce lz4 to a topic of gzip",
        lambda: side.produce("-gzip", b"v", config=builder().compression(fluvio.Compression.Lz4)),
    )


def _consuming(side: Side) -> Iterator[Operation]:
    offset = fluvio.Offset
    yield Operation("consume from the beginning", lambda: side.read("-a", 12))
    yield Operation("consume from an offset", lambda: side.read("-a", 2, offset.absolute(1)))
    yield Operation(
        "consume from behind the beginning", lambda: side.read("-a", 2, offset.from_beginning(3))
    )
    yield Operation("consume from before the end", lambda: side.read("-a", 1, offset.from_end(1)))
    yield Operation(
        "consume from further back than there is", lambda: side.read("-a", 1, offset.from_end(99))
    )
    yield Operation(
        "consume from beyond the end",
        lambda: side.read("-a", 1, offset.absolute(99)),
        "^other error: ",
    )
    yield Operation(
        "consume a partition that is not there", lambda: side.read("-a", 1, _BEGINNING, 9)
    )
    yield Operation("consume a topic that is not there", lambda: side.read("-zzz", 1))
    yield Operation("consume 5,000", lambda: side.numbers("-many", 5000))
    yield Operation("consume until the end", lambda: len(side.until_end("-a")))
    yield Operation("consume what comes", lambda: side.live("-a"))
    yield Operation("consume all partitions", lambda: side.every("-b", 24))
    yield Operation("consume some partitions", lambda: side.some(("-b", 0), ("-b", 1), count=17))


def _committing(side: Side) -> Iterator[Operation]:
    yield Operation("list offsets of nobody", side.offsets)
    yield Operation("consume by name", lambda: side.managed("-a", "m", 2))
    yield Operation("list offsets", side.offsets)
    yield Operation("go on by name", lambda: side.managed("-a", "m", 1))
    yield Operation("go on without a commit", lambda: side.managed("-a", "m", 1, commit=False))
    yield Operation("go on where it was", lambda: side.managed("-a", "m", 1, commit=False))
    yield Operation("another name begins anew", lambda: side.managed("-a", "n", 1))
    yield Operation("list offsets of two", side.offsets)
    yield Operation("commit by itself", lambda: side.managed("-a", "o", 3, "AUTO"))
    yield Operation("list offsets of three", side.offsets)
    yield Operation("delete an offset", lambda: side.forget("m", "-a"))
    yield Operation("begin anew after that", lambda: side.managed("-a", "m", 1, commit=False))
    yield Operation("delete an offset of nobody", lambda: side.forget("zzz", "-a"))
    yield Operation("list what is left", side.offsets)


def _deleting(side: Side) -> Iterator[Operation]:
    yield Operation("begin to consume a new topic", lambda: side.keep("-gone"))
    yield Operation("delete it", lambda: side.delete("-gone"))
    yield Operation("go on to consume it", lambda: side.go_on("-gone"))
    yield Operation("list it", lambda: side.listed("-gone"))
    yield Operation("produce to it after that", lambda: side.produce("-gone", b"v"))
    yield Operation("delete it again", lambda: side.delete("-gone"))
    yield Operation("delete what was never there", lambda: side.delete("-zzz"))


def answers(sc: str, own: str) -> Mapping[str, tuple[Answer, str | None]]:
    """Do everything with one server, in one thread as the client wants it.

    Returns:
        The answers, and what refusals have to match; nothing more after one that took too long.
    """
    done: SimpleQueue[tuple[str, tuple[Answer, str | None]] | None] = SimpleQueue()

    def run() -> None:
        side = Side(sc, own)
        for each in operations(side):
            done.put((each.name, (side.answer(each), each.refused)))
        done.put(None)

    threading.Thread(target=run, daemon=True).start()
    with suppress(Empty):
        return dict(iter(partial(done.get, timeout=_LIMIT), None))
    return {}
