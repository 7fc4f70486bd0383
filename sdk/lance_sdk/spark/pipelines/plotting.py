"""Drawing a report: how many bytes each topic got, along a time axis."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, Final

from lance_sdk.errors import ConfigError
from lance_sdk.spark.pipelines.volume import Volume

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_MOST_BARS: Final = 24 * 14
"""Hours beyond which a bar is a day."""
_MOST_TOPICS: Final = 8
_OTHER: Final = "other"
COLOURS: Final = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
)
"""Okabe and Ito's, which people who see colours differently can tell apart."""
_GREY: Final = "#999999"
_UNITS: Final = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "bytes"))
Sums = Mapping[str, Mapping[int | None, int]]
"""Bytes by topic and beginning of a bar, in seconds since the Unix epoch; None is unknown."""


def draw(volumes: Sequence[Volume], path: str | Path) -> None:
    """Draw volumes as stacked bars on a time axis; those of an unknown time stand apart.

    Args:
        volumes: what to draw.
        path: the picture; its suffix decides the kind: svg, png or pdf.

    Raises:
        ConfigError: matplotlib is missing, or there is nothing to draw.
    """
    _figure(volumes).savefig(path)


def drawing(volumes: Sequence[Volume]) -> str:
    """Return what `draw` draws as an SVG element, to stand in a page.

    Args:
        volumes: what to draw.

    Raises:
        ConfigError: as for `draw`.
    """
    drawn = StringIO()
    _figure(volumes).savefig(drawn, format="svg", metadata={"Date": None})
    text = drawn.getvalue()
    return text[text.index("<svg") :]  # without the heading of a file of its own


def _figure(volumes: Sequence[Volume]) -> Any:
    if not volumes:
        raise ConfigError("there is nothing to draw: the log is empty")
    width = bar_seconds(volumes)
    sums = grouped(volumes, width)
    figure = load_figure()(figsize=(10, 4.5), layout="constrained")
    _fill(figure, sums, width)
    return figure


def load_figure() -> Any:
    """Return the class of a picture.

    Raises:
        ConfigError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra, and only for pictures
    except ModuleNotFoundError:
        raise ConfigError(
            "matplotlib is not installed; install it with: pip install 'lance-sdk[spark]'"
        ) from None
    return Figure


def bar_seconds(volumes: Sequence[Volume]) -> int:
    """Return how long a bar is: an hour, or a day where there would be too many hours."""
    hours = [volume.hour for volume in volumes if volume.hour >= 0]
    span = max(hours) - min(hours) if hours else 0
    return _HOUR if span <= _MOST_BARS * _HOUR else _DAY


def grouped(volumes: Sequence[Volume], width: int) -> Sums:
    """Return the bytes of the largest topics, and of all others together, by bar."""
    totals: dict[str, int] = {}
    for volume in volumes:
        totals[volume.topic] = totals.get(volume.topic, 0) + volume.bytes
    ordered = sorted(totals, key=lambda topic: (-totals[topic], topic))
    shown = ordered if len(ordered) <= _MOST_TOPICS else ordered[: _MOST_TOPICS - 1]
    others = len(ordered) - len(shown)
    rest = f"{_OTHER} ({others} topics)"
    found: dict[str, dict[int | None, int]] = {topic: {} for topic in shown}
    if others:
        found[rest] = {}
    for volume in volumes:
        bars = found[volume.topic if volume.topic in found else rest]
        begin = None if volume.hour < 0 else volume.hour // width * width
        bars[begin] = bars.get(begin, 0) + volume.bytes
    return found


def unit_of(largest: int) -> tuple[int, str]:
    """Return the unit in which a number of bytes is written, and how many bytes it is."""
    return next(unit for unit in _UNITS if largest >= unit[0] or unit[0] == 1)


def _fill(figure: Any, sums: Sums, width: int) -> None:
    begins = sorted({begin for bars in sums.values() for begin in bars if begin is not None})
    has_unknown = any(None in bars for bars in sums.values())
    ratios = [9, 1] if begins and has_unknown else [1]
    panels = figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)[0]
    if begins:
        _draw_times(panels[0], sums, begins, width)
    if has_unknown:  # on a scale of its own: it may be much more than what a bar holds
        _draw_unknown(panels[-1], sums)
    figure.suptitle(f"Records by topic: {_span(begins, width)}")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", title="topic")


def _draw_times(axes: Any, sums: Sums, begins: list[int], width: int) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - as above

    largest = max(sum(bars.get(begin, 0) for bars in sums.values()) for begin in begins)
    scale, unit = unit_of(largest)
    bottom = dict.fromkeys(begins, 0.0)
    moments = [datetime.fromtimestamp(begin, UTC) for begin in begins]
    for (topic, bars), colour in zip(sums.items(), _colours(sums), strict=True):
        heights = [bars.get(begin, 0) / scale for begin in begins]
        axes.bar(
            moments,
            heights,
            width=width / _DAY,
            bottom=[bottom[begin] for begin in begins],
            align="edge",
            color=colour,
            label=topic,
        )
        for begin, height in zip(begins, heights, strict=True):
            bottom[begin] += height
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_xlabel("time (UTC)")
    axes.set_ylabel(f"{unit} per {'day' if width == _DAY else 'hour'}")


def _draw_unknown(axes: Any, sums: Sums) -> None:
    scale, unit = unit_of(sum(bars.get(None, 0) for bars in sums.values()))
    bottom = 0.0
    for (topic, bars), colour in zip(sums.items(), _colours(sums), strict=True):
        height = bars.get(None, 0) / scale
        axes.bar([0], [height], bottom=[bottom], color=colour, label=topic)
        bottom += height
    axes.set_xticks([0], ["time\nunknown"])
    axes.set_ylabel(unit)
    axes.set_xlim(-1, 1)


def _colours(sums: Sums) -> list[str]:
    return [
        _GREY if topic.startswith(f"{_OTHER} (") and index == _MOST_TOPICS - 1 else colour
        for index, (topic, colour) in enumerate(zip(sums, COLOURS, strict=False))
    ]


def _span(begins: list[int], width: int) -> str:
    if not begins:
        return "times unknown"
    first, last = (datetime.fromtimestamp(at, UTC) for at in (begins[0], begins[-1] + width - 1))
    if first.date() == last.date():
        return f"{first:%Y-%m-%d}"
    return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
