"""The tables of ``lwp top``: servers, topics, consumers, connections."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_sdk.cli.console import number_format
from lance_sdk.cli.top.figures import why

_Cells = Callable[[Mapping[str, Any]], list[str]]
_NAMELESS: Final = "a number is a consumer without a known name: --consumer-names NAME,…"
_SILENT: Final = 8
"""Cells of a server that a server without an answer leaves empty."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings.

    Attributes:
        title: what the rows are.
        columns: the headings.
        align: ``>`` aligns a column right, ``<`` left.
        rows: cells of the rows that are shown.
        left_out: how many more there are.
        hint: how to have more told of them, or nothing.
    """

    title: str
    columns: Sequence[str]
    align: str
    rows: Sequence[Sequence[str]]
    left_out: int
    hint: str = ""

    @property
    def heading(self) -> str:
        """What stands above the rows."""
        if not self.rows:
            return f"{self.title}: none"
        told = [f"{self.left_out:,} more"] if self.left_out else []
        told += [self.hint] if self.hint else []
        return f"{self.title} ({'; '.join(told)})" if told else self.title


def tables(figures: Mapping[str, Any], rows: int) -> Iterator[Table]:
    """Yield the tables of one moment.

    Args:
        figures: as `gather` has them.
        rows: how many a table shows at most; every server is shown.
    """
    servers = figures["servers"]
    yield _table("Servers", _SERVERS, servers, _server, len(servers))
    for title, columns, cells in _LISTS:
        found = figures[title.lower()]
        if len(servers) > 1:
            yield _table(title, {"server": "<", **columns}, found, _with_server(cells), rows)
        else:
            yield _table(title, columns, found, cells, rows)


def _table(
    title: str,
    columns: Mapping[str, str],
    found: Sequence[Mapping[str, Any]],
    cells: _Cells,
    most: int,
) -> Table:
    shown = [cells(each) for each in found[:most]]
    align = "".join(columns.values())
    nameless = any(each.get("name", "") is None for each in found[:most])
    hint = _NAMELESS if nameless else ""
    return Table(title, tuple(columns), align, shown, max(0, len(found) - most), hint)


def _with_server(cells: _Cells) -> _Cells:
    return lambda each: [each["server"], *cells(each)]


def _server(each: Mapping[str, Any]) -> list[str]:
    if each["error"] is not None:
        return [each["http"], why(each), *[""] * _SILENT]
    return [
        each["http"],
        why(each),
        f"{each['records_in_per_second']:,.0f}",
        _rate(each["bytes_in_per_second"]),
        _rate(each["bytes_out_per_second"]),
        f"{each['connections']:,}",
        _milliseconds(each["sync_p50_ms"]),
        _milliseconds(each["sync_p99_ms"]),
        number_format.size(each["pending_bytes"]),
        f"{each['behind_records']:,}",
    ]


def _topic(each: Mapping[str, Any]) -> list[str]:
    lag = each["lag"]
    return [
        each["topic"],
        _rate(each["bytes_in_per_second"]),
        f"{each['records']:,}",
        number_format.size(each["bytes"]),
        f"{each['consumers']:,}",
        "" if lag is None else number_format.size(lag),
    ]


def _consumer(each: Mapping[str, Any]) -> list[str]:
    return [
        each["topic"],
        each["name"] or str(each["consumer_id"]),
        f"{each['committed']:,}",
        number_format.size(each["lag"]),
    ]


def _connection(each: Mapping[str, Any]) -> list[str]:
    return [
        each["peer"],
        each["dialect"] or "",
        number_format.seconds(each["age_seconds"]),
        number_format.size(each["bytes_in"]),
        number_format.size(each["bytes_out"]),
        f"{each['unacked']:,}",
    ]


def _rate(number: float) -> str:
    return f"{number_format.size(number)}/s"


def _milliseconds(number: float) -> str:
    return number_format.seconds(number / 1000)


_SERVERS: Final = {
    "server": "<",
    "state": "<",
    "records/s": ">",
    "in": ">",
    "out": ">",
    "connections": ">",
    "sync p50": ">",
    "sync p99": ">",
    "not durable": ">",
    "records to apply": ">",
}
_TOPICS: Final = {
    "topic": "<",
    "in": ">",
    "records": ">",
    "kept": ">",
    "consumers": ">",
    "largest lag": ">",
}
_CONSUMERS: Final = {"topic": "<", "consumer": "<", "committed": ">", "lag": ">"}
_CONNECTIONS: Final = {
    "peer": "<",
    "dialect": "<",
    "age": ">",
    "in": ">",
    "out": ">",
    "not acked": ">",
}
_LISTS: Final = (
    ("Topics", _TOPICS, _topic),
    ("Consumers", _CONSUMERS, _consumer),
    ("Connections", _CONNECTIONS, _connection),
)
