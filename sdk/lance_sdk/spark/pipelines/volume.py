"""How much of one type a topic got in one hour."""

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, order=True)
class Volume:
    """What one topic got of one type in one hour.

    Attributes:
        topic: the topic's name.
        hour: beginning of the hour in seconds since the Unix epoch; -1 where no time is known.
        type: of the records.
        records: how many.
        bytes: of their values.
    """

    topic: str
    hour: int
    type: int
    records: int
    bytes: int

    @property
    def hour_text(self) -> str:
        """The hour in UTC, or ``-``."""
        if self.hour < 0:
            return "-"
        return datetime.fromtimestamp(self.hour, UTC).strftime("%Y-%m-%d %H:00")
