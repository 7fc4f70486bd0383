"""Where the ends of a bridge are, and what is in them."""

from dataclasses import dataclass

from lance_sdk import Consumer, Producer
from lance_sdk.fluvio import FluvioClient
from lance_sdk.rustlog import RustlogClient


@dataclass(frozen=True)
class Urls:
    """A server in each protocol.

    Attributes:
        lwp: its URL for LWP.
        fluvio: host and port of the SC.
        rustlog: host and port of the RustLog listener.
        secure: ``s`` where all of them speak TLS.
    """

    lwp: str
    fluvio: str
    rustlog: str
    secure: str = ""

    def of(self, system: str, topic: str) -> str:
        """Return the URL of a topic in one of the systems."""
        servers = {"lance": self.lwp.partition("://")[2]}
        servers |= {"fluvio": self.fluvio, "rustlog": self.rustlog}
        return f"{system}{self.secure}://{servers[system]}/{topic}"

    def fill(self, topic: str, *values: bytes) -> None:
        """Store raw records, by LWP: every protocol sees them."""
        with Producer(f"{self.lwp}/{topic}", create_topic=True) as producer:
            producer.send_many(values)

    def read(self, topic: str) -> list[tuple[bytes | None, int | None, bytes]]:
        """Return key, time and body of the records of a topic."""
        with Consumer(f"{self.lwp}/{topic}", start="beginning", stop_at_end=True) as consumer:
            return [(each.key, each.timestamp_ns, each.body) for each in consumer]

    def bodies(self, topic: str) -> list[bytes]:
        """Return the bodies of the records of a topic."""
        return [body for _, _, body in self.read(topic)]

    def count(self, topic: str) -> int:
        """Return how many records a topic has."""
        with RustlogClient(self.rustlog) as client:
            return client.describe_partition(topic, 0)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        with FluvioClient(self.fluvio) as client:
            client.delete_topic(topic)

    def partitions(self, topic: str, count: int) -> None:
        """Create a topic with several partitions, one record in each."""
        with RustlogClient(self.rustlog) as client:
            client.create_topic(topic, partitions=count)
            for partition in range(count):
                client.produce(topic, [b"of %d" % partition], partition=partition)
