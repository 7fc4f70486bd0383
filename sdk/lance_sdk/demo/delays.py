"""Mean arrival delay by carrier: what an application does with the records it consumed."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from lance_sdk.cli.console.exit_codes import Failure


@dataclass(slots=True)
class CarrierDelay:
    """One carrier's flights.

    Attributes:
        carrier: the two-character code.
        name: the airline's name, or "" when the data set does not know it.
        flights: number of flights, cancelled ones too.
        arrived: number of flights with a known arrival delay.
        total: sum of their delays in minutes.
    """

    carrier: str
    name: str
    flights: int = 0
    arrived: int = 0
    total: int = 0

    @property
    def mean(self) -> float | None:
        """Mean arrival delay in minutes; None when no flight arrived."""
        return self.total / self.arrived if self.arrived else None


def delays_by_carrier(records: Iterable[bytes], airlines: dict[str, str]) -> list[CarrierDelay]:
    """Return the carriers, latest first.

    Args:
        records: flights as JSON objects.
        airlines: names by carrier code.

    Raises:
        Failure: when a record is not a flight; naming its number.
    """
    carriers: dict[str, CarrierDelay] = {}
    for number, record in enumerate(records, start=1):
        try:
            flight = json.loads(record)
            code, delay = flight["carrier"], flight["arr_delay"]
        except (ValueError, LookupError, TypeError) as error:
            raise Failure(f"record {number} is not a flight: {error}") from None
        if (carrier := carriers.get(code)) is None:
            carrier = carriers[code] = CarrierDelay(code, airlines.get(code, ""))
        carrier.flights += 1
        if delay is not None:
            carrier.arrived += 1
            carrier.total += delay
    return sorted(carriers.values(), key=lambda each: (each.mean is None, -(each.mean or 0.0)))
