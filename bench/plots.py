"""``python -m bench plot``: draw what was measured, for the documentation.

The pictures are SVG with text as text, transparent, in colours that show on light and dark pages;
the same results always give the same bytes.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import results
from bench.bars import bars
from bench.report import short

FOLDER = Path(__file__).parents[1] / "docs" / "_static"
_GREY = "#7f8790"
_OURS = "#2f7ed8"
_SECOND = "#d9822b"
_BAD = "#cc3344"
_LINE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.3}
_STYLE = {
    "svg.hashsalt": "lance",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _GREY,
    "axes.labelcolor": _GREY,
    "axes.edgecolor": _GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "grid.color": _GREY,
    "grid.alpha": 0.25,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def main(arguments: list[str]) -> int:
    """Draw all that is in ``bench/results``."""
    parser = argparse.ArgumentParser(prog="python -m bench plot", description=__doc__)
    parser.add_argument("--results", type=Path, default=results.FOLDER, help="what to draw")
    parser.add_argument("--into", type=Path, default=FOLDER, help="where to put the pictures")
    options = parser.parse_args(arguments)
    if not (made := draw(options.results, options.into)):
        parser.error(f"nothing is kept in {options.results}; measure with --save first")
    print(*made, sep="\n")
    return 0


def draw(source: Path, target: Path) -> list[str]:
    """Draw the ratios and every curve.

    Args:
        source: the folder with ``latest.json`` and ``curves.json``, or one of them.
        target: the folder for the pictures, which is there.

    Returns:
        The names of the files that were written.
    """
    import matplotlib as mpl  # noqa: PLC0415 - only the bench environment has it

    mpl.use("svg")
    with mpl.rc_context(_STYLE):
        return [_save(picture, target, name) for name, picture in _pictures(source)]


def _pictures(source: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name of each picture, and the picture."""
    if (path := source / "latest.json").exists():
        yield "ratios", _ratios(results.load(path))
    if (path := source / "curves.json").exists():
        for name, curve in results.load(path)["results"].items():
            yield name.replace("/", "-"), _curve(curve)


def _save(figure: Any, target: Path, name: str) -> str:
    import matplotlib.pyplot as plt  # noqa: PLC0415 - likewise

    path = target / f"bench-{name}.svg"
    figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return path.name


def _ratios(document: dict[str, Any]) -> Any:
    """Return a picture with a line for each scenario: the pairs, their median and the bar."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - likewise
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 - likewise

    outcomes, floors = document["results"], bars()
    figure, axes = plt.subplots(figsize=(7.2, 0.8 + 0.21 * len(outcomes)), layout="constrained")
    axes.set_xscale("log")
    for place, (name, outcome) in enumerate(outcomes.items()):
        ratios = [a / b for a, b in zip(outcome["ours"], outcome["theirs"], strict=True)]
        floor = floors.get(name)
        good = floor is None or outcome.get("judged", outcome["ratio"]) >= floor
        colour = _OURS if good else _BAD
        axes.plot([min(ratios), max(ratios)], [place, place], color=colour, alpha=0.45, lw=2)
        axes.plot(outcome["ratio"], place, "o", color=colour, ms=4.5)
        if floor is not None:
            axes.plot(floor, place, "|", color=_GREY, ms=9, mew=2)
    axes.axvline(1, color=_GREY, lw=0.8)
    axes.set_yticks(range(len(outcomes)), list(outcomes))
    axes.set_ylim(len(outcomes) - 0.4, -0.6)
    axes.set_xlabel("ours / other side: median and range; | the bar; right of 1, ours is faster")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    axes.minorticks_off()
    return figure


def _curve(curve: dict[str, Any]) -> Any:
    """Return a picture of a curve: time and processor time left, memory right."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - likewise

    figure, (times, memory) = plt.subplots(1, 2, figsize=(7.2, 2.5), layout="constrained")
    process, points = curve["process"], curve["points"]
    lines = {"seconds": ("time", _OURS), "cpu": (f"processor time, {process}", _SECOND)}
    for name, (label, colour) in lines.items():
        values = [1e6 * each[name] for each in curve["samples"]]
        slope = curve["slopes"][name]["whole"]
        times.plot(points, values, label=f"{label}, slope {slope:+.2f}", color=colour, **_LINE)
    megabytes = [each["memory"] / 2**20 for each in curve["samples"]]
    memory.plot(points, megabytes, color=_OURS, **_LINE)
    times.set_yscale("log")
    _at_least_a_decade(times)
    memory.set_ylim(0, 1.15 * max(megabytes))
    times.legend(fontsize=8)
    times.set_title(f"µs per {curve['unit']}", fontsize=9, loc="left")
    memory.set_title(f"private memory of the {process}, MiB", fontsize=9, loc="left")
    for axes in (times, memory):
        axes.set(xscale="log", xlabel=curve["axis"])
        axes.set_xticks(points, [short(point) for point in points])
        axes.minorticks_off()
    return figure


def _at_least_a_decade(axes: Any) -> None:
    """Give small differences the look of small ones, and ticks at 1, 2, 5, 10 and so on."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 - likewise

    low, high = axes.get_ylim()
    missing = max(1.0, (10 / (high / low)) ** 0.5)
    axes.set_ylim(low / missing, high * missing)
    few = high / low < 100
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
