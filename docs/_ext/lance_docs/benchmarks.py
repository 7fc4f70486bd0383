"""What ``python -m bench --save`` wrote down, as tables and pictures."""

import json
import statistics
import tomllib
from pathlib import Path
from typing import Any, ClassVar

from sphinx.application import Sphinx

from lance_docs._base import Generated, escape, heading, list_table, literal, prose
from lance_docs.headline import HEADER, number, rows

_BENCH = Path(__file__).parents[3] / "bench"
_BARS = _BENCH / "bars.toml"
_TIMES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


class _Results(Generated):
    """A part that is made of a file of results."""

    file = "latest.json"

    def results(self, file: str | None = None) -> dict[str, Any]:
        """Return a file's content; by default that of the results of the directive."""
        path = _BENCH / "results" / (file or self.file)
        self.env.note_dependency(str(path))
        if not path.exists():
            raise self.refuse(f"{path.name} is not there: run python -m bench --save")
        content: dict[str, Any] = json.loads(path.read_text())
        return content


class Machine(_Results):
    """A sentence about where the figures come from; the argument names another file."""

    optional_arguments: ClassVar[int] = 1

    def text(self) -> str:
        """Return the sentence."""
        document = self.results(self.arguments[0] if self.arguments else None)
        facts = document["machine"]
        packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
        return (
            f"Measured on {document['date']}: {escape(facts['cpu'])}, {facts['cores']} cores, "
            f"{facts['memory_gib']} GiB, {facts['kernel']}, {facts['python']}, {packages}. The "
            f"load average at the end was {document['load']}; measuring alone makes 1 to 2 of it."
        )


class Ratios(_Results):
    """A table for each area, with a row for each scenario; the argument names the only area."""

    optional_arguments: ClassVar[int] = 1

    def text(self) -> str:
        """Return the tables."""
        self.env.note_dependency(str(_BARS))
        bars = tomllib.loads(_BARS.read_text())["bars"]
        areas: dict[str, list[tuple[str, ...]]] = {}
        for name, outcome in self.results()["results"].items():
            row = _row(name, outcome, bars.get(name))
            areas.setdefault(name.partition("/")[0], []).append(row)
        header = ("Scenario", "Ours", "Other side", "Ratio", "Least to greatest", "Bar")
        tables = {
            area: list_table(header, rows, widths="40 14 14 9 14 9") for area, rows in areas.items()
        }
        if self.arguments:
            return tables[self.arguments[0]]
        return "".join(heading(area, "~") + "\n" + table for area, table in tables.items())


class Headline(_Results):
    """A table of few rows: what a user compares first."""

    def text(self) -> str:
        """Return the table."""
        return list_table(HEADER, rows(self.results()["results"]), widths="52 16 16 16")


class Missed(_Results):
    """A sentence about the bars that the kept results miss."""

    def text(self) -> str:
        """Return the sentence."""
        self.env.note_dependency(str(_BARS))
        bars = tomllib.loads(_BARS.read_text())["bars"]
        results = self.results()["results"]
        missed = [
            f"{literal(name)} ({results[name]['ratio']:.2f} instead of {bar:g})"
            for name, bar in bars.items()
            if name in results and results[name].get("judged", results[name]["ratio"]) < bar
        ]
        return f"Bars that are missed: {', '.join(missed) or 'none'}."


class Slopes(_Results):
    """A table of how each curve grows."""

    file = "curves.json"

    def text(self) -> str:
        """Return the table."""
        rows = [
            (
                literal(name),
                escape(f"{number(curve['points'][0])} to {number(curve['points'][-1])}"),
                f"{_times(curve['samples'])} per {escape(curve['unit'])}",
                *(_slope(curve["slopes"][figure]) for figure in ("seconds", "cpu")),
                f"{_mebibytes(curve['samples'][0])} to {_mebibytes(curve['samples'][-1])} MiB",
            )
            for name, curve in self.results()["results"].items()
        ]
        header = ("Curve", "From … to", "Time", "Slope (end)", "of processor time", "Memory")
        return list_table(header, rows, widths="22 14 26 13 13 12")


class Curves(_Results):
    """The picture of every curve."""

    file = "curves.json"

    def text(self) -> str:
        """Return the figures."""
        return "\n".join(
            f"{heading(escape(name), '~')}\n"
            f".. image:: _static/bench-{name.replace('/', '-')}.svg\n"
            f"   :alt: {curve['unit']} of {name} against {curve['axis']}\n"
            f"   :width: 100%\n"
            for name, curve in self.results()["results"].items()
        )


def _row(name: str, outcome: dict[str, Any], bar: float | None) -> tuple[str, ...]:
    ratios = [a / b for a, b in zip(outcome["ours"], outcome["theirs"], strict=True)]
    missed = bar is not None and outcome["ratio"] < bar
    return (
        f"{literal(name)}\n\n{outcome['unit']}; against {prose(outcome['other'])}",
        number(statistics.median(outcome["ours"])),
        number(statistics.median(outcome["theirs"])),
        f"**{outcome['ratio']:.2f}**",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        "none" if bar is None else f"{bar:g}, missed" if missed else f"{bar:g}",
    )


def _duration(seconds: float) -> str:
    unit, factor = next((each for each in _TIMES if seconds >= each[1]), _TIMES[-1])
    return f"{seconds / factor:.3g}\N{NO-BREAK SPACE}{unit}"


def _times(samples: list[dict[str, float]]) -> str:
    return " to ".join(_duration(each["seconds"]) for each in (samples[0], samples[-1]))


def _slope(slope: dict[str, float]) -> str:
    return f"{slope['whole']:+.2f} ({slope['end']:+.2f})"


def _mebibytes(sample: dict[str, float]) -> str:
    return f"{sample['memory'] / 2**20:.0f}"


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-bench-machine", Machine)
    app.add_directive("lance-bench-headline", Headline)
    app.add_directive("lance-bench-ratios", Ratios)
    app.add_directive("lance-bench-missed", Missed)
    app.add_directive("lance-bench-slopes", Slopes)
    app.add_directive("lance-bench-curves", Curves)
