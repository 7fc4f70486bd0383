"""Store and forward: what an application sends waits on disk until a server has it.

::

    from lance_sdk.journal import StoreAndForwardSender

    url = "lance://localhost:1992/readings"
    with StoreAndForwardSender(url, "/var/lib/app/edge-1") as sender:
        sender.send(b"21.5")  # stored when this returns; sent when a server is there

Below the senders is the ring, for transports of one's own::

    with Journal.open("/var/lib/app/slot") as journal:
        journal.append(b"a frame")
        for fsn, payload in journal.read_from(journal.acked_fsn + 1):
            ...  # send it; when the server has it:
            journal.ack(fsn)

The senders load when they are first used; the ring alone costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lance_sdk.journal._ring.journal import Journal
from lance_sdk.journal.config import Durability, JournalConfig, SlotKind
from lance_sdk.journal.errors import (
    AckOutOfRange,
    FrameDamaged,
    FrameTooLarge,
    JournalError,
    JournalFailed,
    JournalFull,
    NotRetained,
    NotYetDurable,
    SegmentsOverlap,
    SlotHasGap,
    SlotLocked,
    SlotUnreadable,
    SlotUnusable,
)
from lance_sdk.journal.orphans import adopt, inspect, orphans
from lance_sdk.journal.types import DrainerEvent, JournalStats, Problem, SlotReport

if TYPE_CHECKING:
    from lance_sdk.journal._sending.config import ForwardConfig
    from lance_sdk.journal._sending.outbox import OutboxLimits
    from lance_sdk.journal._sending.sender import Level
    from lance_sdk.journal.dead_letters import DeadLetter, read_dead_letters
    from lance_sdk.journal.lwp.aio import AsyncStoreAndForwardSender
    from lance_sdk.journal.lwp.sender import StoreAndForwardSender
    from lance_sdk.journal.rejections import Category, Policy, Rejection, SenderHalted
    from lance_sdk.journal.sender_stats import FramesLost, SenderReport, SenderStats

_HOMES = {
    "dead_letters": ("DeadLetter", "read_dead_letters"),
    "lwp.aio": ("AsyncStoreAndForwardSender",),
    "lwp.sender": ("StoreAndForwardSender",),
    "_sending.outbox": ("OutboxLimits",),
    "rejections": ("Category", "Policy", "Rejection", "SenderHalted"),
    "_sending.sender": ("Level",),
    "_sending.config": ("ForwardConfig",),
    "sender_stats": ("FramesLost", "SenderReport", "SenderStats"),
}
_HOME_OF = {name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "AckOutOfRange",
    "AsyncStoreAndForwardSender",
    "Category",
    "DeadLetter",
    "DrainerEvent",
    "Durability",
    "ForwardConfig",
    "FrameDamaged",
    "FrameTooLarge",
    "FramesLost",
    "Journal",
    "JournalConfig",
    "JournalError",
    "JournalFailed",
    "JournalFull",
    "JournalStats",
    "Level",
    "NotRetained",
    "NotYetDurable",
    "OutboxLimits",
    "Policy",
    "Problem",
    "Rejection",
    "SegmentsOverlap",
    "SenderHalted",
    "SenderReport",
    "SenderStats",
    "SlotHasGap",
    "SlotKind",
    "SlotLocked",
    "SlotReport",
    "SlotUnreadable",
    "SlotUnusable",
    "StoreAndForwardSender",
    "adopt",
    "inspect",
    "orphans",
    "read_dead_letters",
]


def __getattr__(name: str) -> Any:
    """Load a sender's name from its home module at first use (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
