"""Typed values in records: how they are written, and how they are read back.

::

    with Producer("lance://localhost:1992/orders", values="json") as producer:
        producer.send({"id": 7}, key="customer-1", timestamp=datetime.now(UTC))

    with Consumer("lance://localhost:1992/orders", values="json") as consumer:
        for record in consumer:
            print(record.key, record.timestamp, record.json())

``values=Order`` writes and reads objects of a class: a dataclass, or one of pydantic, msgspec,
attrs or Protocol Buffers.

A record has one type. With a key or a time it is of type KeyValue, Timestamped or
KeyTimestamped (LWP section 8.3), and what its body is stands nowhere: the reader must know.
"""

from typing import TYPE_CHECKING, Any

from lance_sdk.values.codecs import Avro, Json, MessagePack, Protobuf, Raw, Text, codec_for
from lance_sdk.values.contract import Codec
from lance_sdk.values.keyed import Time

if TYPE_CHECKING:
    from lance_sdk.values.models import Model

__all__ = [
    "Avro",
    "Codec",
    "Json",
    "MessagePack",
    "Model",
    "Protobuf",
    "Raw",
    "Text",
    "Time",
    "codec_for",
]


def __getattr__(name: str) -> Any:
    """Load `Model` at its first use: few programs need it."""
    if name != "Model":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lance_sdk.values.models import Model  # noqa: PLC0415 - see above

    return Model
