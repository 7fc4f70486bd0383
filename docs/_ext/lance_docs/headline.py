"""The few figures that README and front page lead with, from the benchmark's kept results.

``python docs/_ext/lance_docs/headline.py`` writes them into README.md; a test says when it must
be done again. It needs nothing but the standard library.
"""

import json
import statistics
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]
HEADER: Final = ("Records a second", "Ours", "Theirs", "Ratio")
BEGIN: Final = "<!-- figures: python docs/_ext/lance_docs/headline.py -->\n"
END: Final = "<!-- end of figures -->\n"
_NAMES: Final = {
    "brokers/kafka-synced-publish-1KiB": "write 1 KiB, Apache Kafka, a sync before each reply",
    "brokers/redis-publish-1KiB": "write 1 KiB, Redis Streams with a sync before each reply",
    "brokers/nats-publish-1KiB": "write 1 KiB, NATS JetStream, which does not sync",
    "clients/sync-send-100B": "write 100 B, the published LANCE client at the same server",
    "clients/poll-decode-100B": "read 100 B, the published LANCE client at the same server",
}
_STEPS: Final = (("G", 1e9), ("M", 1e6), ("k", 1e3))


def number(value: float) -> str:
    """Return a figure with three digits and a unit."""
    for unit, factor in _STEPS:
        if value >= 0.9995 * factor:  # what rounds to the unit is told in it
            return f"{value / factor:.3g}\N{NO-BREAK SPACE}{unit}"
    return f"{value:.3g}"


def rows(results: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the table's rows, without those that were not measured.

    Args:
        results: of ``python -m bench --save``, by scenario.
    """
    return [
        (
            what,
            number(statistics.median(results[name]["ours"])),
            number(statistics.median(results[name]["theirs"])),
            f"**{results[name]['ratio']:.2f}**",
        )
        for name, what in _NAMES.items()
        if name in results
    ]


def markdown() -> str:
    """Return the table as README has it."""
    content = json.loads((ROOT / "bench" / "results" / "latest.json").read_text("utf-8"))
    table = [HEADER, ("---", "---:", "---:", "---:"), *rows(content["results"])]
    lines = "".join(f"| {' | '.join(row)} |\n" for row in table)
    cores = content["machine"]["cores"]
    return f"{lines}\nMeasured on {content['date']}, in turns on one machine of {cores} cores.\n"


def with_figures(readme: str) -> str:
    """Return README with the figures as they are now."""
    before, _, rest = readme.partition(BEGIN)
    return f"{before}{BEGIN}{markdown()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(with_figures(page.read_text("utf-8")), "utf-8")
