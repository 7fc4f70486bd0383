"""The figures that ``lwp top`` shows, from the ``/status.json`` of each server."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lance_sdk.cli.admin.consumer_names import known_name
from lance_sdk.cli.admin.http_port import ask
from lance_sdk.cli.console.exit_codes import Failure, printable

_HINT = "as in: lwp top 127.0.0.1:9090"


@dataclass(frozen=True, slots=True)
class Look:
    """One server at one moment.

    Attributes:
        address: of its HTTP port.
        status: what it told; empty where it did not answer.
        failure: why it did not answer, or None.
    """

    address: str
    status: Mapping[str, Any]
    failure: Failure | None = None


def look_at(addresses: Sequence[str], token: str | None, timeout: float) -> list[Look]:
    """Ask every server at the same time, so that one that does not answer delays no other.

    Args:
        addresses: ``HOST:PORT`` of each server's HTTP port.
        token: to show to them, or None.
        timeout: seconds to wait for an answer.
    """

    def look(address: str) -> Look:
        try:
            told = ask(address, "/status.json", token=token, timeout=timeout, hint=_HINT)
        except Failure as failure:
            return Look(address, {}, failure)
        return Look(address, told)

    with ThreadPoolExecutor(len(addresses)) as pool:
        return list(pool.map(look, addresses))


def gather(looks: Sequence[Look]) -> dict[str, Any]:
    """Return the figures of all servers, as ``--json`` prints them.

    Nodes of a cluster hold the same topics: each topic, and each consumer, is told once, as
    the node tells it that is furthest. Servers on their own are told apart.
    """
    told = [each for each in looks if each.failure is None]
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "servers": [_server(each) for each in looks],
        "topics": _topics(told),
        "consumers": _consumers(told),
        "connections": [
            _connection(each, one) for each in told for one in each.status["connections"]
        ],
    }


def _server(look: Look) -> dict[str, Any]:
    if look.failure is not None:
        return {"http": look.address, "error": str(look.failure)}
    status = look.status
    rates, disk, cluster = status["rates"], status["disk"], status["cluster"]
    return {
        "http": look.address,
        "error": None,
        "address": status["address"],
        "node_id": status["node_id"],
        "role": "alone" if not cluster else "leader" if cluster["is_leader"] else "follower",
        "unready": status["unready"],
        "uptime_seconds": status["uptime_seconds"],
        "records_in_per_second": rates["records_in"],
        "bytes_in_per_second": rates["bytes_in"],
        "bytes_out_per_second": rates["bytes_out"] + rates["bytes_pushed"],
        "fetches_per_second": rates["fetches"],
        "connections": status["counters"]["connections_open"],
        "sync_p50_ms": disk["sync_p50_ms"],
        "sync_p99_ms": disk["sync_p99_ms"],
        "pending_bytes": disk["pending_bytes"],
        "free_bytes": disk["free"],
        "damaged_segments": list(disk["damaged"]),
        "scrubbed_bytes": disk["scrubbed_bytes"],
        "scrub_passes": disk["scrub_passes"],
        "memory_used": status["memory"]["used"],
        "memory_limit": status["memory"]["limit"],
        "behind_records": cluster.get("behind", 0),
    }


def _group(look: Look) -> str:
    """Return the same word for nodes of one cluster, by which each knows its peers."""
    peers = look.status["cluster"].get("peer_states", {})
    return " ".join(sorted(each["address"] for each in peers.values())) or look.address


def _topics(looks: Iterable[Look]) -> list[dict[str, Any]]:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for look in looks:
        for each in look.status["topics"]:
            key = (_group(look), each["id"])
            topic = {
                "server": look.address,
                "topic": each["name"],
                "records": each["records"],
                "bytes": each["end_offset"] - each["start_offset"],
                "end_offset": each["end_offset"],
                "bytes_in_per_second": each["bytes_per_second"],
                "consumers": sum(_is_of(one, each) for one in look.status["consumers"]),
                "lag": max(
                    (o["lag"] for o in look.status["consumers"] if _is_of(o, each)), default=None
                ),
            }
            if key not in found or topic["end_offset"] > found[key]["end_offset"]:
                found[key] = topic
    return sorted(found.values(), key=lambda each: (-each["bytes_in_per_second"], each["topic"]))


def _is_of(consumer: Mapping[str, Any], topic: Mapping[str, Any]) -> bool:
    return bool(consumer["topic_id"] == topic["id"])


def _consumers(looks: Iterable[Look]) -> list[dict[str, Any]]:
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for look in looks:
        for each in look.status["consumers"]:
            key = (_group(look), each["topic_id"], each["consumer_id"])
            names = ("topic", "consumer_id", "committed", "lag")
            consumer = {"server": look.address} | {name: each[name] for name in names}
            consumer["name"] = known_name(each)
            if key not in found or consumer["committed"] > found[key]["committed"]:
                found[key] = consumer
    return sorted(found.values(), key=lambda each: -each["lag"])


def _connection(look: Look, told: Mapping[str, Any]) -> dict[str, Any]:
    names = ("peer", "dialect", "age_seconds", "bytes_in", "bytes_out", "unacked", "subscriptions")
    return {"server": look.address} | {name: told[name] for name in names}


def why(server: Mapping[str, Any]) -> str:
    """Return in what state a server is: its role, or why it stores nothing, and any damage."""
    if server["error"] is not None:
        return printable(server["error"])
    state = "; ".join(server["unready"]) or str(server["role"])
    damaged = server["damaged_segments"]
    if not damaged:
        return state
    others = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
    return f"{state}; damaged: {printable(damaged[0])}{others}"
