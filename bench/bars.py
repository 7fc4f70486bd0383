"""The committed bars: the least ratio by scenario."""

import tomllib
from pathlib import Path

from bench.harness import Outcome

_FILE = Path(__file__).with_name("bars.toml")


def bars() -> dict[str, float]:
    """Return the least ratio that is accepted, by scenario."""
    return dict(tomllib.loads(_FILE.read_text())["bars"])


def missed(outcomes: list[Outcome]) -> list[str]:
    """Return a sentence for each bar that is missed."""
    return [
        f"{each.scenario}: {each.ratio:.2f} instead of {each.floor:.2f}"
        f"{'' if each.is_sure else ', within the noise'}; {len(each.ratios)} "
        f"pair(s) from {min(each.ratios):.2f} to {max(each.ratios):.2f}, typically "
        f"{each.noise:.0%} from the median"
        for each in outcomes
        if not each.passed
    ]
