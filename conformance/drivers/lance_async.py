"""Driver of the conformance kit around the async API of this SDK: JSON lines in, JSON lines out.

lance-conformance client --exec "python conformance/drivers/lance_async.py"
"""

import asyncio
from collections.abc import Callable
from typing import Any

from lance_words import KNOWN, Settings, read, shown, told
from serving import Json, limits, records, serve, topic

from lance_sdk import AsyncClient, AsyncConsumer, AsyncProducer
from lance_sdk.errors import LanceError


class Driver:
    """One client at a time; its clients are opened when they are first needed."""

    def __init__(self) -> None:
        self.apis: dict[Any, Any] = {}
        self.waiting: list[Any] = []
        self.tickets = 0

    async def api(self, key: Any, make: Callable[[], Any]) -> Any:
        """A client, opened once; one that cannot be opened is tried again the next time."""
        if key not in self.apis:
            self.apis[key] = await make().open()
        return self.apis[key]

    async def connect(self, request: Json) -> Json | None:
        if not request.keys() <= KNOWN:
            return None
        self.settings = Settings(request)
        return {}

    async def client(self) -> AsyncClient:
        """The client for topics."""
        return await self.api(
            "client", lambda: AsyncClient(self.settings.url, **self.settings.options)
        )

    async def batch(self, request: Json) -> list[Any]:
        """Give records to a producer that makes one batch of them."""
        url, options = self.settings.producer(request)
        key = url, options["batch_records"]
        producer = await self.api(key, lambda: AsyncProducer(url, **options))
        return await producer.send_records(records(request))

    async def send(self, request: Json) -> Json:
        for delivery in await self.batch(request):
            await delivery
        return {}

    async def send_async(self, request: Json) -> Json:
        self.tickets += 1
        self.waiting.append((self.tickets, await self.batch(request)))
        return {"ticket": self.tickets}

    async def flush(self, _request: Json) -> Json:
        acked, failed = [], []
        waiting, self.waiting = self.waiting, []
        for ticket, deliveries in waiting:
            try:
                for delivery in deliveries:
                    await delivery
                acked.append(ticket)
            except LanceError as error:
                failed.append({"ticket": ticket, **told(error)})
        return {"acked": acked, "failed": failed}

    async def create_topic(self, request: Json) -> Json:
        client = await self.client()
        return topic(await client.create_topic(request["name"], **limits(request)))

    async def list_topics(self, _request: Json) -> Json:
        client = await self.client()
        return {"topics": [topic(each) for each in await client.list_topics()]}

    async def get_topic(self, request: Json) -> Json:
        client = await self.client()
        return topic(await client.get_topic(request["topic_id"]))

    async def delete_topic(self, request: Json) -> Json:
        client = await self.client()
        await client.delete_topic(request["topic_id"])
        return {}

    async def set_retention(self, request: Json) -> Json:
        client = await self.client()
        await client.set_retention(request["topic_id"], **limits(request))
        return {}

    async def fetch(self, request: Json) -> Json:
        url, options = self.settings.consumer(request, mode="poll")
        consumer = await AsyncConsumer(url, **options).open()
        try:
            return read(consumer, await consumer.poll(self.settings.timeout))
        finally:
            await consumer.close()

    async def subscribe(self, request: Json) -> Json:
        store = {"consumer": request["consumer"], "offsets": "server", "auto_commit": "off"}
        url, options = self.settings.consumer(request, **store)
        await self.api("consumer", lambda: AsyncConsumer(url, **options))
        return {}

    async def poll(self, _request: Json) -> Json:
        return {"records": shown(await self.apis["consumer"].poll(self.settings.timeout))}

    async def commit(self, request: Json) -> Json:
        await self.apis["consumer"].commit(request["offset"])
        return {}

    async def close(self, _request: Json) -> Json:
        apis, self.apis, self.waiting = self.apis, {}, []
        for api in reversed(apis.values()):
            await api.close()
        return {}


if __name__ == "__main__":
    asyncio.run(serve(Driver(), told))
