"""The tables of the status page."""

from collections.abc import Collection, Iterable, Mapping
from html import escape
from typing import Any

from lance_server.http.number_format import duration, exact, size
from lance_server.http.widgets import meter


def topics(shown: Mapping[str, Any]) -> str:
    """Return the table of topics."""
    largest = max((t["end_offset"] - t["start_offset"] for t in shown["topics"]), default=0)
    rows = (
        _row(
            ("name", _name(topic)),
            ("n soft", exact(topic["id"])),
            ("n", exact(topic["records"])),
            ("n soft", exact(topic["start_offset"])),
            ("n", exact(topic["end_offset"])),
            ("", _share_of(topic["end_offset"] - topic["start_offset"], largest)),
            ("n", f"{size(topic['bytes_per_second'])}/s"),
            ("n soft", exact(topic["segments"])),
            ("soft", _retention(topic)),
        )
        for topic in shown["topics"]
    )
    columns = "Topic | #Id | #Records | #Start | #End | Kept | #Rate | #Segments | Retention"
    empty = "There are no topics yet."
    return _table("Topics", shown["topic_count"], columns, rows, empty=empty)


def consumers(shown: Mapping[str, Any]) -> str:
    """Return the table of consumers, the largest lag first."""
    rows = (
        _row(
            ("name", escape(each["topic"])),
            ("", escape(each["name"]) if each["name"] else _number(each["consumer_id"])),
            ("n", exact(each["committed"])),
            ("n", size(each["lag"])),
            ("", meter(each["share"], 1.0)),
        )
        for each in shown["consumers"]
    )
    columns = "Topic | Consumer | #Committed | #Lag | Progress"
    empty = "No consumer has committed an offset to this server."
    return _table("Consumers", len(shown["consumers"]), columns, rows, empty=empty)


def connections(shown: Mapping[str, Any]) -> str:
    """Return the table of connections."""
    rows = (
        _row(
            ("name", escape(each["peer"])),
            ("", escape(each["client"] or "—")),
            ("soft", escape(each["dialect"] or "not known yet")),
            ("n soft", duration(each["age_seconds"])),
            ("n", size(each["bytes_in"])),
            ("n", size(each["bytes_out"])),
            ("n", exact(each["unacked"])),
            ("n", size(each["held"])),
            ("soft", ", ".join(map(str, each["subscriptions"])) or "—"),
        )
        for each in shown["connections"]
    )
    columns = "Peer | Client | Dialect | #Age | #In | #Out | #Waiting | #Held | Subscribed"
    total = shown["counters"]["connections_open"]
    return _table("Connections", total, columns, rows, empty="Nobody is connected.")


def nodes(shown: Mapping[str, Any]) -> str:
    """Return the table of a cluster's nodes; nothing for a server of its own."""
    facts = shown["cluster"]
    if not facts:
        return ""
    rows = (
        _row(
            ("n", escape(number)),
            ("name", escape(each["address"])),
            ("soft", escape(each["release"])),
            ("", "live" if each["live"] else "silent"),
            ("", "leader" if int(number) == facts["leader_id"] else ""),
            ("", _hosted(each["applied"], facts["hosts"])),
            ("n", exact(sum(each["applied"].values()))),
            ("n", exact(sum(each["durable"].values()))),
        )
        for number, each in facts["peer_states"].items()
    )
    columns = "#Node | Address | Release | State | Role | Shards | #Applied | #Durable"
    empty = "No node has told of itself yet."
    return _table("Nodes", facts["node_count"], columns, rows, empty=empty)


def _hosted(shards: Iterable[str], every: Collection[str]) -> str:
    """Return which shards a node hosts."""
    found = sorted(map(int, shards))
    return "all" if len(found) == len(every) else ", ".join(map(str, found))


def _table(heading: str, total: int, columns: str, rows: Iterable[str], *, empty: str) -> str:
    """Return a section; a column whose name begins with # holds numbers."""
    body = "".join(rows)
    names = (name.strip() for name in columns.split("|"))
    head = "".join(
        f'<th class="n">{name[1:]}</th>' if name[0] == "#" else f"<th>{name}</th>" for name in names
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    shown = f'<div class="scroll">{table}</div>' if body else f'<p class="empty">{empty}</p>'
    place = heading.lower()
    return f'<section id="{place}"><h2>{heading}<b>{exact(total)}</b></h2>{shown}</section>'


def _row(*cells: tuple[str, str]) -> str:
    shown = (f'<td class="{kind}">{value}</td>' for kind, value in cells)
    return f"<tr>{''.join(shown)}</tr>"


def _name(topic: Mapping[str, Any]) -> str:
    name = escape(topic["name"])
    return f'<span title="{name}">{name}</span>'


def _number(consumer_id: int) -> str:
    """Return a consumer without a name, with what gives it one."""
    told = "LWP carries its number alone: start the server with --consumer-names NAME,…"
    return f'<span title="{told}">{consumer_id}</span>'


def _share_of(part: int, whole: int) -> str:
    return f"{meter(part, whole)}{size(part)}"


def _retention(topic: Mapping[str, Any]) -> str:
    limits = []
    if topic["max_age_secs"]:
        limits.append(duration(topic["max_age_secs"]))
    if topic["max_bytes"]:
        limits.append(size(topic["max_bytes"]))
    return ", ".join(limits) or "everything"
