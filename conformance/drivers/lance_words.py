"""Settings, results and errors of this SDK in words of the driver protocol, for both drivers."""

import base64
import tempfile
from typing import Any

from serving import Json

from lance_sdk.errors import (
    AccessDenied,
    AuthenticationFailed,
    AuthenticationRequired,
    DeadlineExceeded,
    DeliveryExpired,
    DeliveryFailed,
    LanceError,
    NotLeader,
    RemoteProtocolError,
    TransportError,
)

KNOWN = {"id", "op", "host", "port", "dialect", "timeout", "token", "tls", "ca", "keepalive"}
KINDS = (
    ((AccessDenied, AuthenticationFailed, AuthenticationRequired), "auth"),
    (NotLeader, "redirect"),
    (RemoteProtocolError, "protocol"),
    (TransportError, "closed"),
    ((DeadlineExceeded, DeliveryExpired), "timeout"),
)


class Settings:
    """What connect was told."""

    def __init__(self, request: Json) -> None:
        self.timeout = timeout = request["timeout"]
        scheme = "lances" if request.get("tls") else "lance"
        self.url = f"{scheme}://{request['host']}:{request['port']}"
        self.options: Json = {
            "dialect": request["dialect"], "connect_timeout": timeout, "open_timeout": timeout / 2,
            "request_timeout": timeout, "close_timeout": timeout / 4,
            "backoff_base": timeout / 20, "backoff_cap": timeout,
        }  # fmt: skip
        names = {"token": "token", "keepalive": "keepalive_interval"}
        self.options |= {to: request[name] for name, to in names.items() if name in request}
        if "ca" in request:
            self.ca = tempfile.NamedTemporaryFile("w", suffix=".pem")  # noqa: SIM115 - lives as long as this
            self.ca.write(request["ca"])
            self.ca.flush()
            self.options["tls_ca"] = self.ca.name

    def producer(self, request: Json) -> tuple[str, Json]:
        """URL and options of a producer that makes one batch of a request's records."""
        count = len(request["records"])
        more = {"batch_records": count, "batch_bytes": 1_048_576, "linger": self.timeout / 2}
        return self._of(request), {**self.options, **more, "delivery_timeout": self.timeout}

    def consumer(self, request: Json, **more: Any) -> tuple[str, Json]:
        """URL and options of a consumer."""
        more |= {"start": request["offset"], "max_fetch_bytes": request["max_bytes"]}
        return self._of(request), {**self.options, **more}

    def _of(self, request: Json) -> str:
        return f"{self.url}/{request['topic']['name']}"


def shown(batch: Any) -> list[Json]:
    """Records as they are told."""
    return [
        {"type": each.type, "value": base64.b64encode(each.raw).decode()} for each in batch or ()
    ]


def read(consumer: Any, batch: Any) -> Json:
    """What one read has brought; nothing at all is no answer, unless it is the log's end."""
    if not batch and (consumer.end is None or consumer.lag):
        raise DeadlineExceeded("no answer in time")
    return {"records": shown(batch), "next_offset": consumer.position}


def told(error: Exception) -> Json:
    """An error's kind and text; anything but an error of the SDK is a bug, and raised again."""
    if not isinstance(error, LanceError):
        raise error
    cause = error.cause if isinstance(error, DeliveryFailed) else error
    kinds = (kind for classes, kind in KINDS if isinstance(cause, classes))
    kind = next(kinds, "retriable" if cause.retryable else "fatal")
    return {"kind": kind, "text": str(error)}
