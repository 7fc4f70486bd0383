"""Store and forward: frames that wait on disk until a server has them.

::

    from lance_sdk.journal import Journal

    with Journal.open("/var/lib/app/slot") as journal:
        journal.append(b"a frame")
        for fsn, payload in journal.read_from(journal.acked_fsn + 1):
            ...  # send it; when the server has it:
            journal.ack(fsn)

The journal keeps bytes and numbers. What a frame means, how it travels and when it counts as
delivered is the business of the transport that uses it.
"""

from lance_sdk.journal._journal import Journal
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
    SlotLocked,
    SlotUnreadable,
)
from lance_sdk.journal.orphans import adopt, inspect, orphans
from lance_sdk.journal.types import JournalStats, Problem, SlotReport

__all__ = [
    "AckOutOfRange",
    "Durability",
    "FrameDamaged",
    "FrameTooLarge",
    "Journal",
    "JournalConfig",
    "JournalError",
    "JournalFailed",
    "JournalFull",
    "JournalStats",
    "NotRetained",
    "NotYetDurable",
    "Problem",
    "SlotKind",
    "SlotLocked",
    "SlotReport",
    "SlotUnreadable",
    "adopt",
    "inspect",
    "orphans",
]
