"""Driver of the conformance kit around the sync API of this SDK: JSON lines in, JSON lines out.

lance-conformance client --exec "python conformance/drivers/lance_sync.py"
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from lance_words import KNOWN, Settings, read, shown, told
from serving import Json, limits, records, topic

from lance_sdk import Client, Consumer, Producer
from lance_sdk.errors import LanceError


class Driver:
    """One client at a time; its clients are opened when they are first needed."""

    def __init__(self) -> None:
        self.apis: dict[Any, Any] = {}
        self.waiting: list[Any] = []
        self.tickets = 0

    def api(self, key: Any, make: Callable[[], Any]) -> Any:
        """A client, opened once; one that cannot be opened is tried again the next time."""
        if key not in self.apis:
            self.apis[key] = make().open()
        return self.apis[key]

    def connect(self, request: Json) -> Json | None:
        if not request.keys() <= KNOWN:
            return None
        self.settings = Settings(request)
        return {}

    def client(self) -> Client:
        """The client for topics."""
        return self.api("client", lambda: Client(self.settings.url, **self.settings.options))

    def batch(self, request: Json) -> list[Any]:
        """Give records to a producer that makes one batch of them."""
        url, options = self.settings.producer(request)
        key = url, options["batch_records"]
        producer = self.api(key, lambda: Producer(url, **options))
        return producer.send_records(records(request))

    def send(self, request: Json) -> Json:
        for delivery in self.batch(request):
            delivery.result()
        return {}

    def send_async(self, request: Json) -> Json:
        self.tickets += 1
        self.waiting.append((self.tickets, self.batch(request)))
        return {"ticket": self.tickets}

    def flush(self, _request: Json) -> Json:
        acked, failed = [], []
        waiting, self.waiting = self.waiting, []
        for ticket, deliveries in waiting:
            try:
                for delivery in deliveries:
                    delivery.result()
                acked.append(ticket)
            except LanceError as error:
                failed.append({"ticket": ticket, **told(error)})
        return {"acked": acked, "failed": failed}

    def create_topic(self, request: Json) -> Json:
        client = self.client()
        return topic(client.create_topic(request["name"], **limits(request)))

    def list_topics(self, _request: Json) -> Json:
        client = self.client()
        return {"topics": [topic(each) for each in client.list_topics()]}

    def get_topic(self, request: Json) -> Json:
        client = self.client()
        return topic(client.get_topic(request["topic_id"]))

    def delete_topic(self, request: Json) -> Json:
        client = self.client()
        client.delete_topic(request["topic_id"])
        return {}

    def set_retention(self, request: Json) -> Json:
        client = self.client()
        client.set_retention(request["topic_id"], **limits(request))
        return {}

    def fetch(self, request: Json) -> Json:
        url, options = self.settings.consumer(request, mode="poll")
        consumer = Consumer(url, **options).open()
        try:
            return read(consumer, consumer.poll(self.settings.timeout))
        finally:
            consumer.close()

    def subscribe(self, request: Json) -> Json:
        store = {"consumer": request["consumer"], "offsets": "server", "auto_commit": "off"}
        url, options = self.settings.consumer(request, **store)
        self.api("consumer", lambda: Consumer(url, **options))
        return {}

    def poll(self, _request: Json) -> Json:
        return {"records": shown(self.apis["consumer"].poll(self.settings.timeout))}

    def commit(self, request: Json) -> Json:
        self.apis["consumer"].commit(request["offset"])
        return {}

    def close(self, _request: Json) -> Json:
        apis, self.apis, self.waiting = self.apis, {}, []
        for api in reversed(apis.values()):
            api.close()
        return {}


def answered(driver: Driver, request: Json) -> Json:
    """Carry out one operation."""
    operation = getattr(driver, request["op"], None)
    try:
        result = operation(request) if operation else None
    except LanceError as error:
        return {"id": request["id"], "error": told(error)}
    return {"id": request["id"], **({"unsupported": True} if result is None else {"ok": result})}


def main() -> None:
    """Serve until the input ends."""
    driver = Driver()
    for line in sys.stdin:
        answer = answered(driver, json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
