"""The cards at the top of the status page."""

from collections.abc import Mapping, Sequence
from typing import Any

from lance_server.http.number_format import count, exact, milliseconds, size


def render_cards(shown: Mapping[str, Any]) -> str:
    """Return the cards of a snapshot."""
    return _row(*_now(shown)) + _row(*_since_the_start(shown))


def _now(shown: Mapping[str, Any]) -> list[str]:
    rates, history = shown["rates"], shown["history"]
    memory, disk = shown["memory"], shown["disk"]
    reads = zip(history["bytes_out"], history["bytes_pushed"], strict=True)
    return [
        _card(
            "Ingest",
            f"{size(rates['bytes_in'])}<small>/s</small>",
            f"{count(rates['records_in'])} records/s",
            _spark(history["bytes_in"]),
        ),
        _card(
            "Reads",
            f"{size(rates['bytes_out'] + rates['bytes_pushed'])}<small>/s</small>",
            f"{count(rates['fetches'])} fetches/s",
            _spark([fetched + pushed for fetched, pushed in reads], "second"),
        ),
        _card(
            "Memory for clients",
            f"{size(memory['used'])} <small>of {size(memory['limit'])}</small>",
            f"process {size(memory['resident'])}",
            meter(memory["used"], memory["limit"], 0.8, 0.95),
        ),
        _card(
            "p99 sync",
            milliseconds(disk["sync_p99_ms"]),
            f"p50 {milliseconds(disk['sync_p50_ms'])} · {size(disk['free'])} free",
            meter(disk["total"] - disk["free"], disk["total"], 0.85, 0.95),
        ),
    ]


def _since_the_start(shown: Mapping[str, Any]) -> list[str]:
    counters = shown["counters"]
    read = counters["bytes_out"] + counters["bytes_pushed"]
    return [
        _card(
            "Records stored",
            count(counters["records_in"]),
            f"{exact(counters['batches_acked'])} batches acknowledged",
        ),
        _card("Bytes read", size(read), f"{size(counters['bytes_pushed'])} of them pushed"),
        _card(
            "Connections",
            exact(counters["connections_open"]),
            f"{exact(counters['connections_accepted'])} since the start",
        ),
        _card(
            "Waiting for the disk",
            exact(shown["queue_depth"]),
            f"{size(shown['disk']['pending_bytes'])} not durable yet",
        ),
    ]


def _row(*cards: str) -> str:
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(heading: str, value: str, note: str, figure: str = "") -> str:
    return (
        f'<div class="card"><h2>{heading}</h2><div class="value">{value}</div>'
        f'<div class="note">{note}</div>{figure}</div>'
    )


def _spark(values: Sequence[float], kind: str = "") -> str:
    """Return a small curve; a straight line where there is nothing yet."""
    points = list(values) if len(values) > 1 else [0.0, 0.0]
    top, step = max(*points, 1e-9), 240 / (len(points) - 1)
    line = " L".join(f"{n * step:.1f} {41 - 38 * v / top:.1f}" for n, v in enumerate(points))
    return (
        f'<svg class="spark {kind}" viewBox="0 0 240 44" preserveAspectRatio="none" '
        f'aria-hidden="true"><path class="area" d="M0 44 L{line} L240 44 Z"/>'
        f'<path class="line" d="M{line}"/></svg>'
    )


def meter(part: float, whole: float, warn: float = 2.0, bad: float = 2.0) -> str:
    """Return a bar.

    Args:
        part: how much of it is filled.
        whole: what would fill it.
        warn: the share from which it is amber; above 1 means never.
        bad: the share from which it is red.
    """
    share = part / whole if whole else 0.0
    tone = "bad" if share >= bad else "warn" if share >= warn else ""
    return f'<div class="meter {tone}"><i style="width:{100 * min(share, 1):.1f}%"></i></div>'
