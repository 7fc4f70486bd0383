"""Code that drivers in Python share: arguments, results, and serving in asyncio."""

import asyncio
import base64
import json
import sys
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def records(request: Json) -> list[tuple[bytes, int]]:
    """Values and types of a request's records."""
    return [(base64.b64decode(each["value"]), each["type"]) for each in request["records"]]


def limits(request: Json) -> dict[str, int]:
    """The limits of a request, where it has some."""
    return {name: request[name] for name in ("max_age_secs", "max_bytes") if name in request}


def topic(info: Any) -> Json:
    """What is told of a topic."""
    return {"id": info.id, "name": info.name}


async def answered(driver: object, request: Json, told: Callable[[Exception], Json]) -> Json:
    """Carry out one operation; whatever a client raises is an error of some kind."""
    operation = getattr(driver, request["op"], None)
    try:
        result = await operation(request) if operation else None
    except Exception as error:  # noqa: BLE001 - see above; `told` raises again what is none
        return {"id": request["id"], "error": told(error)}
    return {"id": request["id"], **({"unsupported": True} if result is None else {"ok": result})}


async def serve(driver: object, told: Callable[[Exception], Json]) -> None:
    """Serve until the input ends.

    Args:
        driver: Its methods are the operations; they return None for what is not supported.
        told: An error's kind and text.
    """
    while line := await asyncio.to_thread(sys.stdin.readline):
        answer = await answered(driver, json.loads(line), told)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
