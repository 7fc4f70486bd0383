"""Settings: checked when they are made, the same for both APIs."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from lance_sdk.config import ClientConfig, ConsumerConfig, ProducerConfig
from lance_sdk.errors import ConfigError
from lance_spec.dialect import DEPLOYED, SPECIFIED


def test_durations_may_be_timedeltas() -> None:
    """They are kept as seconds."""
    assert ProducerConfig(linger=timedelta(milliseconds=5)).linger == 0.005


@pytest.mark.parametrize(
    "value", [-1, float("inf"), float("nan"), "5ms", None, True, 1e300, 10**400]
)
def test_a_duration_is_a_number_of_seconds_that_a_clock_can_count(value: Any) -> None:
    """Everything else is named."""
    with pytest.raises(ConfigError, match="linger="):
        ProducerConfig(linger=value)


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        (ClientConfig, {"connect_timeout": 0}, "connect_timeout"),
        (ClientConfig, {"idle_timeout": 5, "keepalive_interval": 6}, "at least keepalive_interval"),
        (ClientConfig, {"backoff_cap": 0.01}, "at least backoff_base"),
        (ClientConfig, {"dialect": "x"}, "'auto' or 'specified' or 'deployed'"),
        (ProducerConfig, {"delivery_timeout": 1, "linger": 2}, "at least linger"),
        (ClientConfig, {"dialect": None}, "dialect=None"),
        (ClientConfig, {"fetch_header": []}, "fetch_header=[]: expected 16 or 24"),
        (ClientConfig, {"token": b"secret"}, "token: expected text or a function, got bytes"),
        (ClientConfig, {"tls": True}, "tls=True: expected an ssl.SSLContext"),
        (ProducerConfig, {"create_topic": "false"}, "create_topic='false': expected True or False"),
        (ProducerConfig, {"batch_bytes": "64KiB"}, "batch_bytes='64KiB': expected a whole number"),
        (ProducerConfig, {"batch_records": 1.5}, "batch_records=1.5: expected a whole number"),
        (ProducerConfig, {"max_in_flight": True}, "max_in_flight=True: expected a whole number"),
        (
            ProducerConfig,
            {"buffer_bytes": 2**63},
            "buffer_bytes=9223372036854775808: expected 0 to",
        ),
        (ProducerConfig, {"on_full": ["block"]}, "on_full=['block']"),
        (ProducerConfig, {"batch_bytes": 4}, "batch_bytes=4"),
        (ProducerConfig, {"on_full": "drop"}, "'block' or 'raise'"),
        (ConsumerConfig, {"start": "now"}, "'end' (latest), a byte offset or a datetime"),
        (ConsumerConfig, {"start": 2**64 - 1}, "byte offset"),
        (ConsumerConfig, {"start": True}, "byte offset"),
        (ConsumerConfig, {"start": []}, "byte offset"),
        (ConsumerConfig, {"stop_at_end": 1}, "stop_at_end=1: expected True or False"),
        (ConsumerConfig, {"max_fetch_bytes": 0}, "max_fetch_bytes=0"),
        (ConsumerConfig, {"on_truncation": "ignore"}, "'raise' or 'reset'"),
    ],
)
def test_what_cannot_work_is_refused(kind: Any, options: dict[str, Any], complaint: str) -> None:
    """When the settings are made, not when they are used."""
    with pytest.raises(ConfigError) as caught:
        kind(**options)
    assert complaint in str(caught.value)


def test_settings_do_not_change() -> None:
    """replace() makes new ones, checked again."""
    config = ProducerConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.linger = 5
    assert config.replace(linger=0.5).linger == 0.5
    with pytest.raises(ConfigError):
        config.replace(linger=-1)


def test_auto_tries_specified_then_deployed() -> None:
    """A name or a dialect of one's own is the only one."""
    assert ClientConfig().dialects == (SPECIFIED, DEPLOYED)
    assert ClientConfig(dialect="deployed").dialects == (DEPLOYED,)
    own = dataclasses.replace(SPECIFIED, name="own")
    assert ClientConfig(dialect=own).dialects == (own,)


def test_fetch_header_overrides_the_dialects() -> None:
    """AMB-05: for servers that differ from their dialect in this."""
    assert [d.fetch_header for d in ClientConfig(fetch_header=24).dialects] == [24, 24]
