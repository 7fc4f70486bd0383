"""The demo's results, for people and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lance_sdk.cli.console import number_format
from lance_sdk.cli.console.output import print_table
from lance_sdk.cli.console.progress import Meter
from lance_sdk.demo.compare import Comparison
from lance_sdk.demo.conformance import KitVerdict
from lance_sdk.demo.delays import CarrierDelay


@dataclass(frozen=True, slots=True)
class Transfer:
    """How much went one way, and how fast.

    Attributes:
        records: how many.
        bytes: of their values.
        seconds: what it took, to the last acknowledgement or the last record.
    """

    records: int
    bytes: int
    seconds: float

    @classmethod
    def measured(cls, meter: Meter) -> "Transfer":
        """Return what a meter counted until now."""
        return cls(meter.records, meter.bytes, meter.elapsed)

    @property
    def rates(self) -> str:
        """Records and bytes a second, in words."""
        return number_format.rates(self.records, self.bytes, self.seconds)

    def __str__(self) -> str:
        records = number_format.count(self.records, "record")
        return f"{records} in {number_format.seconds(self.seconds)}"

    def to_json(self) -> dict[str, float]:
        """Return the figures and the rates as a JSON object."""
        rates = {
            "records_per_second": self.records / self.seconds,
            "megabytes_per_second": self.bytes / self.seconds / 1e6,
        }
        return {**asdict(self), **rates}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo found.

    Attributes:
        topic: URL of the topic.
        produced: the way in.
        consumed: the way out.
        comparison: whether the same came back.
        carriers: mean delays, made from what came back; empty when it was not the same.
        verdict: what the conformance kit says of the server.
    """

    topic: str
    produced: Transfer
    consumed: Transfer
    comparison: Comparison
    carriers: Sequence[CarrierDelay]
    verdict: KitVerdict

    @property
    def ok(self) -> bool:
        """Whether everything came back and the server passed."""
        return self.comparison.equal and self.verdict.passed

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        return {
            "ok": self.ok,
            "topic": self.topic,
            "produced": self.produced.to_json(),
            "consumed": self.consumed.to_json(),
            "comparison": self.comparison.to_json(),
            "carriers": [
                {**asdict(each), "mean_arrival_delay_minutes": each.mean} for each in self.carriers
            ],
            "conformance": self.verdict.to_json(),
        }


def print_delays(carriers: Sequence[CarrierDelay]) -> None:
    """Print the carriers with their mean arrival delay."""
    rows = [
        [
            each.carrier,
            each.name,
            f"{each.flights:,}",
            "-" if each.mean is None else f"{each.mean:+.1f} min",
        ]
        for each in carriers
    ]
    print_table(["carrier", "airline", "flights", "mean arrival delay"], rows, right="<<>>")
