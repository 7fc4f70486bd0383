"""The status page: one HTML document that needs nothing else."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final

from lance_server.http.number_format import duration, exact
from lance_server.http.tables import connections, consumers, nodes, topics
from lance_server.http.widgets import render_cards

_STYLE: Final = files(__package__).joinpath("style.css").read_text()
_SCRIPT: Final = files(__package__).joinpath("refresh.js").read_text()


def _hash(source: str) -> str:
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; connect-src 'self'; img-src data:; frame-ancestors 'none'; "
        f"script-src 'sha256-{_hash(_SCRIPT)}'; style-src 'unsafe-inline'"
    ),
    "referrer-policy": "no-referrer",
}
"""Only what is in the page runs; names of topics are text, whatever they are."""

_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='4' fill='%230f766e'/%3E"
    "%3Cpath d='M4 11.5h8M4 8h6M4 4.5h4' stroke='white' stroke-width='1.6'/%3E%3C/svg%3E"
)


def render_page(shown: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        shown: what the server is doing, as `take_snapshot` has it.
    """
    title = f"LANCE node {shown['node_id']}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><link rel="icon" href="{_ICON}"><style>{_STYLE}</style></head>'
        f"<body><main>{_header(shown)}{render_cards(shown)}{nodes(shown)}{topics(shown)}{consumers(shown)}"
        f"{connections(shown)}{_storage(shown)}{_footer(shown)}</main>"
        f"<script>{_SCRIPT}</script></body></html>"
    )


def _header(shown: Mapping[str, Any]) -> str:
    state, tone = _state(shown)
    reasons = _list(shown["unready"])
    at = ", ".join(f"{each['name']} {each['address']}" for each in shown["listeners"])
    return (
        f"<header><h1>LANCE <small>node {shown['node_id']}</small></h1>"
        f'<span class="pill {tone}">{state}</span>'
        f'<div class="facts">{escape(at)}<br>up {duration(shown["uptime_seconds"])}</div>'
        f"{reasons}</header>"
    )


def _state(shown: Mapping[str, Any]) -> tuple[str, str]:
    if shown["unready"]:
        return "not ready", "bad"
    if shown["pressure"]:
        return f"under pressure: {escape(shown['pressure'])}", "warn"
    return "ready", "good"


def _list(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="reasons">{items}</ul>' if items else ""


def _storage(shown: Mapping[str, Any]) -> str:
    disk, counters = shown["disk"], shown["counters"]
    circuit = disk["breaker"].replace("_", " ")
    facts = {
        "Backend": disk["backend"],
        "Data directory": disk["data_dir"],
        "Circuit to the disk": f"{circuit}, opened {disk['breaker_trips']} times",
        "Errors of the disk": exact(disk["errors"]),
        "Last start": disk["recovery"],
        "Repeated batches": exact(counters["duplicates"]),
        "Told to slow down": exact(counters["backpressure"]),
        "Refused or closed for memory": exact(counters["refused_for_memory"] + counters["shed"]),
    }
    rows = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items()
    )
    closed = _list([f"topic {key}: {why}" for key, why in disk["closed_topics"].items()])
    findings = _list(disk["findings"])
    return f'<section id="storage"><h2>Storage</h2><dl>{rows}</dl>{closed}{findings}</section>'


def _footer(shown: Mapping[str, Any]) -> str:
    return (
        f"<footer>dialect {escape(shown['dialect'])} · renewed every two seconds · "
        '<a href="/metrics">metrics</a> · <a href="/status.json">JSON</a> · '
        '<a href="/health/ready">readiness</a></footer>'
    )
