"""Peers of the other listeners: requests and responses behind their lengths, in order."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from tests.simulation.model import ViolationError
from tests.simulation.server.network import Link
from tests.simulation.server.peers import Peer
from tests.simulation.server.qwp import QwpPeer
from tests.simulation.server.written import Row, Written

from lance_spec.fluvio.batches import Compression, FluvioRecord, pack_batches
from lance_spec.messages import fluvio, rustlog

if TYPE_CHECKING:
    from tests.simulation.server.clients import GoodPeers

_LENGTH: Final = 4
_PRODUCE: Final = 0
_PRODUCE_VERSION: Final = 24
_API_VERSIONS: Final = 18
_CREATE: Final = 1001
_OBJECTS: Final = 19
"""Version of requests about topics."""
_Judge: TypeAlias = Callable[[bytes], None]
"""Judges the payload of a response."""


class _Owed(NamedTuple):
    """A response that a peer waits for: since when, and what judges it."""

    what: str
    since: float
    judge: _Judge


class FramedPeer(Peer):
    """A client that pipelines small requests and judges each response.

    Args:
        run: what it lives in.
        number: which it is.

    Attributes:
        owed: what it waits for, by number of the request.
    """

    def __init__(self, run: "GoodPeers", number: int) -> None:
        super().__init__(run, number)
        self.owed: dict[int, _Owed] = {}
        self._received = bytearray()
        self._number = 0

    def connect(self, link: Link) -> None:
        """Begin to use a connection."""
        self._received.clear()
        super().connect(link)

    def lose(self) -> None:
        """Note that the connection is gone."""
        super().lose()
        self.owed.clear()

    def waits_since(self) -> tuple[float, str] | None:
        """Return since when the oldest request waits, and which it is."""
        oldest = next(iter(self.owed.values()), None)
        return None if oldest is None else (oldest.since, oldest.what)

    def request(self, index: int) -> tuple[bytes, _Judge]:
        """Return a request, and what judges its response."""
        raise NotImplementedError

    def answered(self, payload: bytes) -> int:
        """Return the number of the request that a response answers: the oldest."""
        del payload
        return next(iter(self.owed), 0)

    def ask(self, count: int) -> None:
        """Pipeline requests."""
        for _ in range(count):
            self._number += 1
            payload, judge = self.request(self._number)
            what = f"{self.name}: request {self._number}"
            self.owed[self._number] = _Owed(what, self.run.world.now, judge)
            self.send(len(payload).to_bytes(_LENGTH, "big"), payload)

    def receive(self, data: bytes) -> None:
        """Take bytes, and judge the responses in them."""
        received = self._received
        received += data
        while len(received) >= _LENGTH:
            end = _LENGTH + int.from_bytes(received[:_LENGTH], "big")
            if len(received) < end:
                return
            self._judge(bytes(received[_LENGTH:end]))
            del received[:end]

    def _judge(self, payload: bytes) -> None:
        owed = self.owed.pop(self.answered(payload), None)
        if owed is None:
            raise ViolationError(f"{self.name}: {payload[:24]!r} answers nothing")
        owed.judge(payload)
        self.run.result.answers += 1


class RustlogPeer(FramedPeer):
    """A client of RustLog that writes rows to a topic of its own.

    Args:
        run: what it lives in.
        number: which it is.

    Attributes:
        topic: where it writes.
    """

    def __init__(self, run: "GoodPeers", number: int) -> None:
        super().__init__(run, number)
        self.topic = run.written.setdefault(f"rustlog-{number}", Written(f"rustlog-{number}"))

    def request(self, index: int) -> tuple[bytes, _Judge]:
        """Return a creation first, then records, a ping now and then, or a question for topics."""
        if index == 1:
            created = rustlog.CreateTopicRequest(topic=self.topic.name, partitions=1)
            return created.encode(), self._created
        if index % 5 == 0:
            return rustlog.ListTopicsRequest().encode(), _typed(rustlog.ListTopicsRequest.TYPE)
        if index % 3 == 0:
            return rustlog.Ping().encode(), _typed(rustlog.Ping.TYPE)
        row = self.topic.following(self.number)
        produce = rustlog.ProduceRequest(topic=self.topic.name, partition=0, records=[row.encode()])
        return produce.encode(), lambda payload: self._produced(row, payload)

    def _created(self, payload: bytes) -> None:
        if payload[0] != rustlog.ErrorResponse.TYPE:
            self.topic.created |= rustlog.CreateTopicResponse.decode(payload).success

    def _produced(self, row: Row, payload: bytes) -> None:
        if payload[0] == rustlog.ErrorResponse.TYPE:
            return  # whether it is stored may be unknown
        answer = rustlog.ProduceResponse.decode(payload)
        if answer.record_count != 1:
            raise ViolationError(f"{self.name}: {row} is answered with {answer}")
        self.topic.acked[row] = answer.base_offset
        self.run.result.acknowledged += 1


class FluvioPeer(FramedPeer):
    """A client of Fluvio; responses come in any order and repeat the request's number."""

    def answered(self, payload: bytes) -> int:
        """Return the number of the request that a response answers."""
        return fluvio.Response.decode(payload).correlation_id

    def ask_for(self, key: int, version: int, index: int, body: bytes) -> bytes:
        """Return a request."""
        asked = fluvio.Request(
            api_key=key,
            api_version=version,
            correlation_id=index,
            client_id="simulated",
            body=body,
        )
        return asked.encode()

    def versions(self, index: int) -> tuple[bytes, _Judge]:
        """Return a question for the versions."""
        asked = fluvio.ApiVersionsRequest(
            client_version="0.21.0", client_os="linux", client_arch="x86_64"
        )
        return self.ask_for(_API_VERSIONS, 0, index, asked.encode()), _any


class ControllerPeer(FluvioPeer):
    """One that creates a topic, which others write to."""

    def request(self, index: int) -> tuple[bytes, _Judge]:
        """Return the creation first, then questions."""
        if index > 1:
            return self.versions(index)
        topic = Written(f"fluvio-{self.number}")
        self.run.written[topic.name] = topic
        spec = fluvio.TopicSpec(
            form=fluvio.ReplicaForm.COMPUTED,
            replicas=fluvio.ComputedReplicas(partitions=1, replication=1, ignore_rack=False),
            cleanup_policy=None,
            storage=None,
            compression=fluvio.TopicCompression.ANY,
            deduplication=None,
            system=False,
        )
        creation = fluvio.TopicCreation(name=topic.name, dry_run=False, timeout=None, spec=spec)
        body = fluvio.CreateTopicRequest(creation=creation).encode(_OBJECTS)

        def judge(payload: bytes) -> None:
            status = fluvio.Status.decode(_body(payload))
            if status.outcome.code == fluvio.ErrorCode.NONE:
                topic.created = True
                self.run.streams.append(topic)

        return self.ask_for(_CREATE, _OBJECTS, index, body), judge


class ProducerPeer(FluvioPeer):
    """One that writes to the topic that was created last, once there is one."""

    def request(self, index: int) -> tuple[bytes, _Judge]:
        """Return a record, or a question."""
        if not self.run.streams or index % 4 == 0:
            return self.versions(index)
        topic = self.run.streams[-1]
        row = topic.following(self.number)
        batch = next(pack_batches([FluvioRecord(row.encode(), None, 1000)], 0, Compression.NONE))
        entry = fluvio.ProducePartition(partition=0, records=fluvio.RecordSet(batches=[batch]))
        produce = fluvio.ProduceRequest(
            transactional_id=None,
            isolation=1,
            timeout_ms=10_000,
            topics=[fluvio.ProduceTopic(name=topic.name, partitions=[entry])],
        )

        def judge(payload: bytes) -> None:
            answer = fluvio.ProduceResponse.decode(_body(payload), _PRODUCE_VERSION)
            told = answer.topics[0].partitions[0]
            if told.outcome.code == fluvio.ErrorCode.NONE:
                topic.acked[row] = told.base_offset
                self.run.result.acknowledged += 1

        body = produce.encode(_PRODUCE_VERSION)
        return self.ask_for(_PRODUCE, _PRODUCE_VERSION, index, body), judge


def _typed(kind: int) -> _Judge:
    """Return a judge of responses of a type of RustLog."""

    def judge(payload: bytes) -> None:
        if payload[0] != kind:
            raise ViolationError(f"type {kind} is answered with {payload[:24]!r}")

    return judge


def _any(payload: bytes) -> None:
    """Take a response as it is."""


def _body(payload: bytes) -> bytes:
    return bytes(fluvio.Response.decode(payload).body)


KINDS: Final[dict[str, Callable[["GoodPeers", int], FramedPeer | QwpPeer]]] = {
    "qwp": QwpPeer,
    "rustlog": RustlogPeer,
    "fluvio-sc": ControllerPeer,
    "fluvio-spu": ProducerPeer,
}
"""Peers by the name of the listener that they connect to."""
