"""Typed values in records: how they are written, and how they are read back.

::

    with Producer("lance://localhost:1992/orders", values="json") as producer:
        producer.send({"id": 7}, key="customer-1", timestamp=datetime.now(UTC))

    with Consumer("lance://localhost:1992/orders", values="json") as consumer:
        for record in consumer:
            print(record.key, record.timestamp, record.json())

A record has one type. With a key or a time it is of type KeyValue, Timestamped or
KeyTimestamped (LWP section 8.3), and what its body is stands nowhere: the reader must know.
"""

from lance_sdk.values.codecs import Avro, Json, MessagePack, Protobuf, Raw, Text, codec_for
from lance_sdk.values.contract import Codec
from lance_sdk.values.keyed import Time

__all__ = [
    "Avro",
    "Codec",
    "Json",
    "MessagePack",
    "Protobuf",
    "Raw",
    "Text",
    "Time",
    "codec_for",
]
