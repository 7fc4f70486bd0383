"""Driver of the conformance kit around a client in Python: JSON lines in, JSON lines out.

Fill in the methods of Client; an operation that your client does not have stays as it is.
Then run:  lance-conformance client --exec "python driver.py"
"""

import base64
import json
import sys
from typing import Any

Topic = dict[str, Any]
"""``id`` and ``name``: use either."""
Record = tuple[int, bytes]
"""Type and value."""
Json = dict[str, Any]


class Unsupported(Exception):
    """The client has no such operation, or no such option."""


class Failed(Exception):
    """The operation failed.

    Args:
        kind: ``retriable``, ``redirect``, ``auth``, ``fatal``, ``protocol``, ``closed`` or
            ``timeout``. The documentation of the kit says which error code is which kind.
        text: What the client says about it.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Client:
    """Your client. It may connect now, or with its first request.

    Args:
        settings: ``host``, ``port``, ``dialect``, ``timeout`` in seconds for each operation, and
            whatever else OPTIONS names.
    """

    OPTIONS = frozenset({"host", "port", "dialect", "timeout"})
    """Those that your client knows. There are also ``token``, ``tls``, ``ca`` and ``keepalive``."""

    def __init__(self, settings: Json) -> None:
        self.settings = settings

    def send(self, topic: Topic, records: list[Record]) -> None:
        """Send one batch, and return when it is acknowledged."""
        raise Unsupported

    def send_async(self, topic: Topic, records: list[Record]) -> int:
        """Send one batch without waiting; return a number that `flush` tells about."""
        raise Unsupported

    def flush(self) -> tuple[list[int], list[tuple[int, Failed]]]:
        """Return the numbers of all batches since the last flush: acknowledged, and failed."""
        raise Unsupported

    def create_topic(self, name: str, max_age_secs: int | None, max_bytes: int | None) -> Topic:
        """Create a topic, with limits if there are any."""
        raise Unsupported

    def list_topics(self) -> list[Topic]:
        """Return all topics."""
        raise Unsupported

    def get_topic(self, topic_id: int) -> Topic:
        """Return one topic."""
        raise Unsupported

    def delete_topic(self, topic_id: int) -> None:
        """Delete a topic."""
        raise Unsupported

    def set_retention(self, topic_id: int, max_age_secs: int, max_bytes: int) -> None:
        """Limit a topic."""
        raise Unsupported

    def fetch(self, topic: Topic, offset: int, max_bytes: int) -> tuple[list[Record], int]:
        """Read once; return the records and the offset after them."""
        raise Unsupported

    def subscribe(self, topic: Topic, offset: int, max_bytes: int, consumer: str) -> None:
        """Begin to read."""
        raise Unsupported

    def poll(self) -> list[Record]:
        """Return the next records of the subscription; none when none come in time."""
        raise Unsupported

    def commit(self, offset: int) -> None:
        """Commit an offset of the subscription at the server."""
        raise Unsupported

    def close(self) -> None:
        """End the client; the next operation is another connect."""


# -- the protocol of the kit, which needs no change ------------------------------------------------


def decoded(records: list[Json]) -> list[Record]:
    """Records of a request."""
    return [(each["type"], base64.b64decode(each["value"])) for each in records]


def encoded(records: list[Record]) -> list[Json]:
    """Records of an answer."""
    return [{"type": kind, "value": base64.b64encode(value).decode()} for kind, value in records]


def performed(client: Client, op: str, ask: Json) -> Json:
    """Carry out one operation of a client that is there."""
    match op:
        case "send":
            client.send(ask["topic"], decoded(ask["records"]))
        case "send_async":
            return {"ticket": client.send_async(ask["topic"], decoded(ask["records"]))}
        case "flush":
            acked, failed = client.flush()
            told = [{"ticket": each, "kind": why.kind, "text": str(why)} for each, why in failed]
            return {"acked": acked, "failed": told}
        case "create_topic":
            limits = ask.get("max_age_secs"), ask.get("max_bytes")
            return client.create_topic(ask["name"], *limits)
        case "list_topics":
            return {"topics": client.list_topics()}
        case "get_topic":
            return client.get_topic(ask["topic_id"])
        case "delete_topic":
            client.delete_topic(ask["topic_id"])
        case "set_retention":
            client.set_retention(ask["topic_id"], ask["max_age_secs"], ask["max_bytes"])
        case "fetch":
            found, after = client.fetch(ask["topic"], ask["offset"], ask["max_bytes"])
            return {"records": encoded(found), "next_offset": after}
        case "subscribe":
            client.subscribe(ask["topic"], ask["offset"], ask["max_bytes"], ask["consumer"])
        case "poll":
            return {"records": encoded(client.poll())}
        case "commit":
            client.commit(ask["offset"])
        case _:
            raise Unsupported
    return {}


class Driver:
    """Has one client at a time."""

    def __init__(self) -> None:
        self.client: Client | None = None

    def carried_out(self, op: str, ask: Json) -> Json:
        """Carry out one operation."""
        if op == "connect":
            if not ask.keys() <= Client.OPTIONS:
                raise Unsupported
            self.client = Client(ask)
            return {}
        if op == "close":
            client, self.client = self.client, None
            if client is not None:
                client.close()
            return {}
        if self.client is None:
            raise Unsupported
        return performed(self.client, op, ask)

    def answer(self, request: Json) -> Json:
        """Answer one request."""
        number, op = request.pop("id"), request.pop("op")
        try:
            return {"id": number, "ok": self.carried_out(op, request)}
        except Unsupported:
            return {"id": number, "unsupported": True}
        except Failed as why:
            return {"id": number, "error": {"kind": why.kind, "text": str(why)}}


def main() -> None:
    """Serve until the input ends."""
    driver = Driver()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(driver.answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
