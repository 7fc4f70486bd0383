"""Say how much memory server, producer and consumer have, and whether they grow."""

import argparse
import json
import sys
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from bench import machine
from bench.soak.bed import WINDOW_ENTRIES
from bench.soak.growth import BAR, SETTLED, STEP
from bench.soak.run import Soak, soak


def main() -> int:
    """Run a soak; 0 when nothing grew over the bar."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long; 10 by default")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    machine.confine()
    found = soak(options.minutes * 60)
    if options.json:
        print(json.dumps(_as_json(found), indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(_table(found))
        print(_notes(found))
    return int(any(each.grew for each in found.processes.values()))


def _as_json(found: Soak) -> dict[str, object]:
    grown = {name: {"growth": each.growth} for name, each in found.processes.items()}
    return asdict(found) | {"growths": grown, "bar": BAR}


def _table(found: Soak) -> Table:
    settled, end = found.seconds * SETTLED / 60, found.seconds / 60
    table = Table(
        *("process", "resident at full rate", "private", "highest"),
        *(f"at rest, minute {settled:g}", f"at rest, minute {end:g}", "growth", "bar"),
        box=box.SIMPLE,
    )
    for name, each in found.processes.items():
        table.add_row(
            *(name, _mib(each.load.total), _mib(each.load.private), _mib(each.highest)),
            *(_mib(each.settled), _mib(each.end), f"{each.growth:+.2%}"),
            f"{BAR:.0%} MISSED" if each.grew else f"{BAR:.0%}",
        )
    return table


def _notes(found: Soak) -> str:
    """Say what the figures are."""
    return (
        f"{found.sent / 1e6:,.0f} million records of 100 bytes were sent and made durable, "
        f"{found.read / 1e6:,.0f} million read; at most {_mib(found.disk)} were on the disk.\n"
        "Resident is private memory (RssAnon + RssShmem) and mapped files (RssFile: programs and "
        "libraries, pages that the system can take back); median of all seconds. At full rate it "
        "moves with what is in flight, so growth is that of private memory at rest, when all is "
        "acknowledged and read and free memory was given back: the least of several rests at "
        f"either end. One arena of Python's allocator ({_mib(STEP)}) is not growth. The C library "
        "has one heap for all threads here, since it gives back the free end of no other one. The "
        "consumer keeps the answer that it took last, of 1 MiB at most.\n"
        f"The duplicate window is {WINDOW_ENTRIES:,} batches, so that it is full when counting "
        "begins; it takes 24 bytes a batch, 24 MB with the 1,000,000 of the default."
    )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"


if __name__ == "__main__":
    raise SystemExit(main())
