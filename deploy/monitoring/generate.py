"""Writes what Grafana and Prometheus need to watch servers: a dashboard and alert rules.

The first rows of the dashboard and the rules come from the two tables of this module; the last
row has every other metric that a server reports, with the server's own words. Run it after a change
of either; a test compares its output with the files.

    python deploy/monitoring/generate.py
"""

import json
import re
import tempfile
import urllib.request
from pathlib import Path
from typing import Any, Final, NamedTuple

from lance_server.cluster.member import ClusterMember
from lance_server.cluster.memory import MemoryLog
from lance_server.config.settings import Address, ServerConfig
from lance_server.embedded import EmbeddedServer

HERE: Final = Path(__file__).parent
DASHBOARD: Final = HERE / "grafana" / "lance.json"
ALERTS: Final = HERE / "alerts.yml"
_WIDTH: Final = 12
_HEIGHT: Final = 8
_NODE: Final = '{node_id=~"$node"}'
_NS: Final = 1_000_000_000


class Panel(NamedTuple):
    """One picture.

    Attributes:
        title: what it shows.
        unit: Grafana's name of the unit.
        help: how to read it.
        lines: PromQL for each line, by the line's label.
    """

    title: str
    unit: str
    help: str
    lines: dict[str, str]


class Alert(NamedTuple):
    """One rule.

    Attributes:
        name: of the alert.
        expression: PromQL that has a value while something is wrong.
        wait: how long it has to be wrong.
        severity: ``critical`` wakes somebody up, ``warning`` waits for the morning.
        summary: what is wrong, in one sentence.
        remedy: what to do.
    """

    name: str
    expression: str
    wait: str
    severity: str
    summary: str
    remedy: str


def _rate(metric: str) -> str:
    return f"sum by (node_id) (rate({metric}{_NODE}[$__rate_interval]))"


def _quantiles(metric: str, more: str = "") -> dict[str, str]:
    buckets = f'{metric}_bucket{{node_id=~"$node"{more}}}'
    rate = f"sum by (node_id, le) (rate({buckets}[$__rate_interval]))"
    return {
        f"p{percent} {{{{node_id}}}}": f"histogram_quantile({percent / 100}, {rate}) / {_NS}"
        for percent in (50, 99)
    }


ROWS: Final = {
    "Traffic": (
        Panel(
            "Records stored",
            "cps",
            "Records a second that were accepted for storing.",
            {"{{node_id}}": _rate("lance_records_ingested_total")},
        ),
        Panel(
            "Bytes",
            "Bps",
            "Bytes of records a second, in and out.",
            {
                "in {{node_id}}": _rate("lance_bytes_ingested_total"),
                "out {{node_id}}": _rate("lance_read_bytes_total"),
            },
        ),
        Panel(
            "Connections",
            "short",
            "Connections that are served now.",
            {"{{node_id}}": f"lance_connections_active{_NODE}"},
        ),
        Panel(
            "Refused and lost",
            "cps",
            "Errors sent, connections turned away, and requests refused for memory.",
            {
                "errors {{node_id}}": _rate("lance_errors_total"),
                "refused connections {{node_id}}": _rate("lance_connections_refused_total"),
                "memory {{node_id}}": _rate("lance_requests_refused_for_memory_total"),
                "tokens {{node_id}}": _rate("lance_auth_failures_total"),
            },
        ),
    ),
    "Latency": (
        Panel(
            "Acknowledgement",
            "s",
            "From the arrival of a batch to its acknowledgement, which waits for the disk.",
            _quantiles("lance_ingestion_latency_ns"),
        ),
        Panel(
            "Disk",
            "s",
            "One sync, for which every acknowledgement waits.",
            _quantiles("lance_io_latency_ns", ', op="sync"'),
        ),
        Panel("Fetch", "s", "From a request to its response.", _quantiles("lance_read_latency_ns")),
        Panel(
            "Waiting batches",
            "short",
            "Batches that wait to be written; a line that rises is a disk that is too slow.",
            {"{{node_id}}": 'lance_channel_depth{node_id=~"$node", channel="ingestion"}'},
        ),
    ),
    "Topics": (
        Panel(
            "Bytes appended by topic",
            "Bps",
            "The ten topics that grow most.",
            {
                "{{topic}}": "topk(10, sum by (topic) "
                f"(deriv(lance_topic_end_offset{_NODE}[$__rate_interval])))"
            },
        ),
        Panel(
            "Bytes kept by topic",
            "bytes",
            "The ten largest topics.",
            {
                "{{topic}}": "topk(10, sum by (topic) "
                f"(lance_topic_end_offset{_NODE} - lance_topic_start_offset{_NODE}))"
            },
        ),
        Panel(
            "Consumer lag",
            "bytes",
            "Bytes that consumers who commit to the server have not committed; the ten largest.",
            {"{{consumer}} {{topic}}": f"topk(10, lance_consumer_lag_bytes{_NODE})"},
        ),
        Panel(
            "Segments",
            "short",
            "Files of the ten topics that have most.",
            {"{{topic}}": f"topk(10, sum by (topic) (lance_topic_segments{_NODE}))"},
        ),
    ),
    "Resources": (
        Panel(
            "Disk space left",
            "bytes",
            "Where the data directory is.",
            {"{{node_id}}": f"lance_disk_free_bytes{_NODE}"},
        ),
        Panel(
            "Memory",
            "bytes",
            "Of the process, and what is held for clients, beside what may be held.",
            {
                "process {{node_id}}": f"lance_heap_usage_bytes{_NODE}",
                "clients {{node_id}}": f"lance_memory_used_bytes{_NODE}",
                "limit {{node_id}}": f"lance_memory_limit_bytes{_NODE}",
            },
        ),
    ),
}

RULES: Final = (
    Alert(
        "LanceDown",
        'up{job="lance"} == 0',
        "1m",
        "critical",
        "The server {{ $labels.instance }} does not answer.",
        "Look at its log and start it again; what was acknowledged is on its disk.",
    ),
    Alert(
        "LanceNotReady",
        "lance_ready == 0",
        "1m",
        "critical",
        "Node {{ $labels.node_id }} stores no batches.",
        "GET /health/ready of the node says why; a full disk is the usual cause.",
    ),
    Alert(
        "LanceTopicClosed",
        "lance_topic_closed > 0",
        "5m",
        "critical",
        "Topic {{ $labels.topic_id }} of node {{ $labels.node_id }} cannot be written to.",
        "The status page says why; the server tries again by itself once the disk allows it.",
    ),
    Alert(
        "LanceDiskErrors",
        "increase(lance_io_errors_total[10m]) > 0",
        "0m",
        "critical",
        "Node {{ $labels.node_id }} had errors of the disk.",
        "Look at the log for file and error, and at the disk's own health report.",
    ),
    Alert(
        "LanceDiskFullSoon",
        "predict_linear(lance_disk_free_bytes[6h], 86400) < 0",
        "30m",
        "warning",
        "The disk of node {{ $labels.node_id }} is full within a day at this rate.",
        "Lower the retention of large topics, or add room.",
    ),
    Alert(
        "LanceSlowDisk",
        "histogram_quantile(0.99, sum by (node_id, le) "
        '(rate(lance_io_latency_ns_bucket{op="sync"}[10m]))) > 100000000',
        "15m",
        "warning",
        "One sync in a hundred takes more than 100 ms on node {{ $labels.node_id }}.",
        "Acknowledgements wait for it; look for another program that uses the disk.",
    ),
    Alert(
        "LanceMemoryShort",
        "increase(lance_requests_refused_for_memory_total[10m]) > 0",
        "10m",
        "warning",
        "Node {{ $labels.node_id }} refuses requests because memory is short.",
        "Raise --max-memory, or find the connections that do not read what they asked for.",
    ),
    Alert(
        "LanceClockNotTrusted",
        "lance_clock_trusted == 0",
        "5m",
        "warning",
        "Node {{ $labels.node_id }} does not believe its clock, so nothing expires by age.",
        "Set the clock right, or confirm it with lance-server confirm-clock.",
    ),
    Alert(
        "LanceTokensRefused",
        "rate(lance_auth_failures_total[5m]) > 1",
        "10m",
        "warning",
        "Somebody offers node {{ $labels.node_id }} tokens that are not valid.",
        "The log names the addresses; a client with an old token, or an attempt to get in.",
    ),
)


def reported() -> dict[str, tuple[str, str]]:
    """Return type and meaning of every metric of a server that is a node of a cluster."""
    local = Address("127.0.0.1", 0)
    with tempfile.TemporaryDirectory() as folder:
        config = ServerConfig(data_dir=Path(folder), listen=local, http=local)
        server = EmbeddedServer(config, cluster=ClusterMember(MemoryLog("log")))
        try:
            url = f"{server.http_url}/metrics"
            with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 - our own server
                text = response.read().decode()
        finally:
            server.stop()
    kinds = dict(re.findall(r"^# TYPE (\S+) (.+)$", text, re.MULTILINE))
    meanings = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.MULTILINE))
    return {name: (kind, meanings[name]) for name, kind in kinds.items()}


def rest() -> tuple[Panel, ...]:
    """Return a picture for each metric that none of `ROWS` has."""
    lines = [line for row in ROWS.values() for each in row for line in each.lines.values()]
    shown = set(re.findall(r"\blance_\w+", " ".join(lines)))
    return tuple(
        _other(name, kind, meaning)
        for name, (kind, meaning) in reported().items()
        if name not in shown and f"{name}_bucket" not in shown
    )


def _other(name: str, kind: str, meaning: str) -> Panel:
    if kind == "histogram":
        rate = f"sum by (node_id, le) (rate({name}_bucket{_NODE}[$__rate_interval]))"
        lines = {f"p{each}": f"histogram_quantile({each / 100}, {rate})" for each in (50, 99)}
        return Panel(name, _unit(name), meaning, lines)
    if kind == "gauge":
        return Panel(name, _unit(name), meaning, {"__auto": f"topk(10, {name}{_NODE})"})
    rate = f"topk(10, rate({name}{_NODE}[$__rate_interval]))"
    unit = "Bps" if "_bytes" in name else "cps"
    return Panel(name, unit, f"{meaning} A second.", {"__auto": rate})


def _unit(name: str) -> str:
    units = {"bytes": "bytes", "seconds": "s", "ms": "ms", "second": "Bps"}
    return units.get(name.rpartition("_")[2], "short")


def dashboard() -> str:
    """Return the dashboard as Grafana's JSON."""
    panels: list[dict[str, Any]] = []
    top, number = 0, 0
    for title, content in {**ROWS, _REST: rest()}.items():
        place = {"x": 0, "y": top, "w": 2 * _WIDTH, "h": 1}
        number += 1
        row = {"type": "row", "id": number, "title": title, "gridPos": place}
        pictures = _pictures(content, number + 1, top + 1)
        closed = {"collapsed": True, "panels": pictures} if title == _REST else {}
        panels += [row | closed, *([] if closed else pictures)]
        number += len(content)
        top += 1 + -(-len(content) // 2) * _HEIGHT
    node = {
        "name": "node",
        "label": "Node",
        "type": "query",
        "query": {"query": "label_values(lance_ready, node_id)", "refId": "nodes"},
        "datasource": _SOURCE,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }
    source = {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}
    body = {
        "uid": "lance",
        "title": "LANCE",
        "tags": ["lance"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source, node]},
        "panels": panels,
    }
    return json.dumps(body, indent=2) + "\n"


_REST: Final = "Everything else"
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}


def _pictures(content: tuple[Panel, ...], number: int, top: int) -> list[dict[str, Any]]:
    """Return panels, two side by side."""
    places = [
        {"x": at % 2 * _WIDTH, "y": top + at // 2 * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
        for at in range(len(content))
    ]
    return [
        _panel(number + at, panel, place)
        for at, (panel, place) in enumerate(zip(content, places, strict=True))
    ]


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": label}
        for at, (label, expression) in enumerate(panel.lines.items())
    ]
    return {
        "type": "timeseries",
        "id": number,
        "title": panel.title,
        "description": panel.help,
        "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": targets,
    }


def alerts() -> str:
    """Return the rules as YAML, of which JSON strings are part."""
    lines = ["# Generated by generate.py.", "groups:", "  - name: lance", "    rules:"]
    for rule in RULES:
        lines += [
            f"      - alert: {rule.name}",
            f"        expr: {json.dumps(rule.expression)}",
            f"        for: {rule.wait}",
            "        labels:",
            f"          severity: {rule.severity}",
            "        annotations:",
            f"          summary: {json.dumps(rule.summary)}",
            f"          remedy: {json.dumps(rule.remedy)}",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both files."""
    DASHBOARD.write_text(dashboard(), encoding="utf-8")
    ALERTS.write_text(alerts(), encoding="utf-8")


if __name__ == "__main__":
    main()
