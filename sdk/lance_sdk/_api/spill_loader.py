"""The journal of a producer, loaded when there is one.

See `lance_sdk._protocol.produce.journal_seam`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lance_sdk._protocol.produce.journal_seam import Spill, SpilledBatch, SpillOutcome

if TYPE_CHECKING:
    from lance_sdk.config import ProducerConfig
    from lance_sdk.url import URL

__all__ = ["Spill", "SpillOutcome", "SpilledBatch", "open_spill"]


def open_spill(url: "URL", config: "ProducerConfig") -> Spill:
    """Return the journal that a producer's settings name; nothing is opened yet.

    Args:
        url: the producer's URL: where the journal's own connection goes.
        config: the producer's settings; ``config.journal`` says where and how.

    Raises:
        ConfigError: the settings cannot be used.
    """
    spill: Spill = import_module("lance_sdk.journal.spill").make_spill(url, config)
    return spill
