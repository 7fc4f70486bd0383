"""Driver of the conformance kit around the published Python client, ``lnc-client`` 0.2.9.

pip install lnc-client==0.2.9
lance-conformance client --exec "python conformance/drivers/lnc_client_py.py" --dialect deployed
"""

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import lnc_client as lnc
from lnc_client import errors as e
from lnc_client.tlv import TlvRecord
from serving import Json, limits, records, serve, topic

KNOWN = {"id", "op", "host", "port", "dialect", "timeout", "tls", "ca", "keepalive"}
KINDS = (
    (e.AccessDeniedError, "auth"),
    (e.NotLeaderError, "redirect"),
    ((e.ProtocolError, e.InvalidFrameError), "protocol"),
    ((e.ConnectionError, OSError), "closed"),
    ((e.TimeoutError, TimeoutError, asyncio.TimeoutError), "timeout"),
)


class Driver:
    """One client at a time."""

    def __init__(self) -> None:
        self.open: dict[str, Any] = {}
        self.tickets: list[int] = []

    async def connect(self, request: Json) -> Json | None:
        if not request.keys() <= KNOWN:
            return None
        self.place = {"host": request["host"], "port": request["port"]}
        self.address = f"{request['host']}:{request['port']}"
        self.timeout = request["timeout"]
        self.common: Json = {"connect_timeout_s": self.timeout}
        if "keepalive" in request:
            self.common["keepalive_interval_s"] = request["keepalive"]
        if "ca" in request:
            self.common["ssl_context"] = ssl.create_default_context(cadata=request["ca"])
        return {}

    async def api(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """A client of the client, opened once."""
        if name not in self.open:
            self.open[name] = await make()
        return self.open[name]

    async def client(self) -> lnc.LanceClient:
        client = lnc.LanceClient(lnc.ClientConfig(**self.place, **self.common))
        return await self.api("client", client.connect)

    async def producer(self) -> lnc.Producer:
        config = lnc.ProducerConfig(**self.common)
        return await self.api("producer", lambda: lnc.Producer.connect(self.address, config))

    async def send(self, request: Json) -> Json:
        producer = await self.producer()
        batch = [TlvRecord(kind, value) for value, kind in records(request)]
        await producer.send_batch(request["topic"]["id"], batch)
        return {}

    async def send_async(self, request: Json) -> Json:
        producer = await self.producer()
        ((value, kind),) = records(request)
        await producer.send_async(request["topic"]["id"], value, record_type=kind)
        self.tickets.append(len(self.tickets) + 1)
        return {"ticket": self.tickets[-1]}

    async def flush(self, _request: Json) -> Json:
        await (await self.producer()).flush(self.timeout)
        return {"acked": self.tickets, "failed": []}

    async def create_topic(self, request: Json) -> Json:
        client = await self.client()
        if "max_bytes" in request:
            return topic(
                await client.create_topic_with_retention(request["name"], **limits(request))
            )
        return topic(await client.create_topic_once(request["name"]))

    async def list_topics(self, _request: Json) -> Json:
        return {"topics": [topic(each) for each in await (await self.client()).list_topics()]}

    async def get_topic(self, request: Json) -> Json:
        return topic(await (await self.client()).get_topic(request["topic_id"]))

    async def delete_topic(self, request: Json) -> Json:
        await (await self.client()).delete_topic(request["topic_id"])
        return {}

    async def set_retention(self, request: Json) -> Json:
        await (await self.client()).set_retention(request["topic_id"], **limits(request))
        return {}

    async def consumer(self, request: Json) -> lnc.StandaloneConsumer:
        """The client that reads."""
        config = lnc.StandaloneConfig.new_with_id(
            request.get("consumer", "kit"), request["topic"]["name"], request["topic"]["id"],
            start_offset=request["offset"], max_fetch_bytes=request["max_bytes"],
            poll_timeout_s=self.timeout, **self.common,
        )  # fmt: skip
        return await lnc.StandaloneConsumer.connect(self.address, config)

    async def fetch(self, request: Json) -> Json:
        consumer = await self.consumer(request)
        try:
            result = await consumer.poll()
            return {"records": shown(result), "next_offset": consumer.current_offset}
        finally:
            await consumer.close()

    async def subscribe(self, request: Json) -> Json:
        self.open["consumer"] = await self.consumer(request)
        return {}

    async def poll(self, _request: Json) -> Json:
        return {"records": shown(await self.open["consumer"].poll())}

    async def commit(self, request: Json) -> Json:
        consumer = self.open["consumer"]
        consumer.seek(request["offset"])
        await consumer.commit()
        return {}

    async def close(self, _request: Json) -> Json:
        apis, self.open, self.tickets = self.open, {}, []
        for api in apis.values():
            await api.close()
        return {}


def shown(result: Any) -> list[Json]:
    """Records as they are told."""
    return [
        {"type": int(each.record_type), "value": base64.b64encode(each.value).decode()}
        for each in (result.records if result else ())
    ]


def told(error: Exception) -> Json:
    """An error's kind and text."""
    kinds = (kind for classes, kind in KINDS if isinstance(error, classes))
    retriable = isinstance(error, e.LanceError) and error.is_retryable()
    kind = next(kinds, "retriable" if retriable else "fatal")
    return {"kind": kind, "text": f"{error!r}"[:2000]}


if __name__ == "__main__":
    asyncio.run(serve(Driver(), told))
