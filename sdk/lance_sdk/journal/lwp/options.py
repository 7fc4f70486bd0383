# Written by sdk/options_from_config.py from ForwardConfig: change that.
"""The keyword arguments of a store-and-forward sender over LWP, for type checkers and editors.

They are fields of `ForwardConfig`, and those of `lance_sdk.config.ClientConfig`.
"""

from pathlib import Path

from lance_sdk.journal._sending.config import InitialConnect
from lance_sdk.journal._sending.error_queue import ErrorHandler
from lance_sdk.journal._sending.outbox import OutboxLimits
from lance_sdk.journal.types import DrainerListener
from lance_sdk.options import ClientOptions

__all__ = ["SenderOptions"]


class SenderOptions(ClientOptions, total=False):
    """Keywords of a sender; see `ForwardConfig`."""

    limits: OutboxLimits
    initial_connect: InitialConnect
    reconnect_budget: float | None
    error_handler: ErrorHandler | None
    error_inbox_capacity: int
    dead_letter_dir: Path | None
    dead_letter_bytes: int
    drain_orphans: bool
    max_drainers: int
    drainer_listener: DrainerListener | None
