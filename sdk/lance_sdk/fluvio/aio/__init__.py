"""The client for programs with tasks, on asyncio and trio."""

from lance_sdk.fluvio.aio.client import AsyncFluvioClient
from lance_sdk.fluvio.aio.consumer import AsyncFluvioConsumer
from lance_sdk.fluvio.aio.producer import AsyncFluvioProducer

__all__ = ["AsyncFluvioClient", "AsyncFluvioConsumer", "AsyncFluvioProducer"]
