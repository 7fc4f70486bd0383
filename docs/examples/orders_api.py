"""A FastAPI service: takes orders, and answers when they are durable.

::

    pip install fastapi uvicorn lance-sdk
    ORDERS_URL=lance://localhost:1992/orders uvicorn orders_api:app

An order that may or may not be stored is answered with 503 and ``maybe_stored``: whoever asked
looks before sending it again.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, PositiveInt

from lance_sdk import AsyncProducer
from lance_sdk.errors import BufferFull, DeliveryError


class Order(BaseModel):
    """What a customer orders."""

    id: int
    article: str
    count: PositiveInt = 1


@asynccontextmanager
async def lifespan(service: FastAPI) -> AsyncIterator[None]:
    """Keep one producer open as long as the service runs; leaving delivers what is on its way."""
    url = os.environ["ORDERS_URL"]
    options = {"delivery_timeout": 5, "on_full": "raise", "create_topic": True}
    async with AsyncProducer(url, values=Order, **options) as producer:
        service.state.orders = producer
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def take(order: Order) -> dict[str, int]:
    """Store an order."""
    try:
        delivery = await app.state.orders.send(order, key=order.article)
        await delivery
    except BufferFull:
        raise HTTPException(429, "too many orders at once") from None
    except DeliveryError as error:
        said = {"error": str(error), "maybe_stored": error.maybe_applied}
        raise HTTPException(503, said) from error
    return {"id": order.id}
