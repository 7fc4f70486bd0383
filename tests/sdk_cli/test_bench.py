"""``lwp bench``: what it measures, and what it leaves behind."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk import Client, Consumer
from lance_sdk.cli.bench.latencies import Latencies

Call = Callable[..., Result]


def measured(result: Result) -> Any:
    """The figures."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_both_ends_are_measured(server: Any, lwp: Call) -> None:
    """Every record is acknowledged and comes back."""
    found = measured(lwp("bench", "--records", "2000", "--json"))
    assert found["produced_per_s"] > 0
    assert found["consumed_per_s"] > 0
    for kind in ("acknowledged_s", "end_to_end_s"):
        assert list(found[kind]) == ["p50", "p90", "p99", "p99.9", "max"]
        assert 0 < found[kind]["p50"] <= found[kind]["max"]
    with Client(server.url) as client:
        assert client.list_topics() == []


def test_a_topic_that_is_named_is_used_and_stays(server: Any, lwp: Call) -> None:
    """With records of the size that was asked for."""
    url = f"{server.url}/t"
    with Client(server.url) as client:
        client.create_topic("t")
    measured(lwp("bench", url, "--records", "10", "--size", "64", "--json"))
    with Consumer(url, stop_at_end=True) as consumer:
        assert [len(record.value) for record in consumer] == [64] * 10


@pytest.mark.usefixtures("server")
def test_a_rate_is_kept(lwp: Call) -> None:
    """A hundred records at 1000 a second take a tenth of a second."""
    found = measured(lwp("bench", "--records", "100", "--rate", "1000", "--json"))
    assert found["produced_s"] >= 0.099


@pytest.mark.usefixtures("server")
def test_only_producing_can_be_measured(lwp: Call) -> None:
    """Then there is no consumer at all."""
    found = measured(lwp("bench", "--records", "100", "--no-consume", "--json"))
    assert "end_to_end_s" not in found


@pytest.mark.usefixtures("server")
def test_people_get_a_table(lwp: Call) -> None:
    """Rates, and a line for each latency."""
    lines = lwp("bench", "--records", "100").stdout.splitlines()
    assert lines[0] == "100 records of 100 B, sent as fast as they go"
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "produced",
        "consumed",
        "latency     ".rstrip(),
        "acknowledged",
        "end to end",
    ]


@pytest.mark.parametrize("size", ["7", "17MB"])
def test_a_size_that_no_record_has_is_wrong_usage(lwp: Call, size: str) -> None:
    """A record holds at least its time."""
    result = lwp("bench", "lance://h/t", "--size", size)
    assert result.exit_code == 2
    assert "--size must be 8 to 16777216 bytes" in result.stderr


@given(st.lists(st.integers(0, 2**50), min_size=1, max_size=200))
def test_percentiles_are_right_to_one_part_in_64(durations: list[int]) -> None:
    """However the durations lie; the maximum is exact."""
    latencies = Latencies()
    latencies.add_all(durations)
    found = latencies.seconds()
    assert found["max"] == max(durations) / 1e9
    ordered = sorted(durations)
    exact = ordered[max(0, -(-len(ordered) * 50 // 100) - 1)] / 1e9
    assert exact * 63 / 64 <= found["p50"] <= exact


def test_memory_does_not_grow_with_the_number_of_durations() -> None:
    """A day of measuring costs what a minute does."""
    latencies = Latencies()
    latencies.add_all(range(0, 2_000_000, 7))
    assert len(latencies._buckets) < 1500
    assert latencies.count == 285_715


def test_nothing_measured_has_no_percentiles() -> None:
    """Rather than zeros."""
    assert Latencies().seconds() == {}


def test_a_run_that_fails_leaves_no_topic(server: Any, lwp: Call) -> None:
    """And tells the first error, here that a compressed batch would be stored as it is."""
    result = lwp("bench", "--records", "10", "--compression", "lz4", "--dialect", "deployed")
    assert result.exit_code == 1
    assert "compress" in result.stderr
    with Client(server.url) as client:
        assert client.list_topics() == []
