"""Rows to QuestDB, or to anything that speaks QWP over WebSocket, through a journal.

::

    import datetime
    from lance_sdk.journal.qwp import QwpSender

    with QwpSender.from_conf("ws::addr=localhost:9000;sf_dir=/var/lib/app;") as sender:
        sender.row(
            "trades",
            symbols={"symbol": "ETH-USD", "side": "sell"},
            columns={"price": 2615.54, "amount": 0.00044},
            at=datetime.datetime.now(datetime.UTC),
        )

It needs the extra ``qwp``.
"""

from lance_sdk.journal._renamed import renamed
from lance_sdk.journal.qwp._connection.transport import QwpTransport, QwpTransports
from lance_sdk.journal.qwp._connection.upgrade import Credentials
from lance_sdk.journal.qwp.aio import AsyncQwpSender
from lance_sdk.journal.qwp.config import QwpConfig, QwpSettings
from lance_sdk.journal.qwp.errors import (
    DurableAckUnavailable,
    NotWritable,
    RowError,
    SymbolsLost,
    UpgradeRefused,
    VersionUnsupported,
)
from lance_sdk.journal.qwp.sender import QwpSender
from lance_sdk.journal.qwp.values import timestamp_micros, timestamp_nanos
from lance_sdk.journal.qwp.writer import RowOptions

__all__ = [
    "AsyncQwpSender",
    "Credentials",
    "DurableAckUnavailable",
    "NotWritable",
    "QwpConfig",
    "QwpSender",
    "QwpSettings",
    "QwpTransport",
    "QwpTransports",
    "RowError",
    "RowOptions",
    "SymbolsLost",
    "UpgradeRefused",
    "VersionUnsupported",
    "timestamp_micros",
    "timestamp_nanos",
]

__getattr__ = renamed(__name__, {"QwpCarrier": "QwpTransport", "CarrierMaker": "QwpTransports"})
