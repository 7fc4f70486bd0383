"""Settings of the wrong kind: named when they are made, and never taken for something else."""

from importlib import import_module
from typing import Any

import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.journal import (
    AsyncStoreAndForwardSender,
    Category,
    Durability,
    ForwardConfig,
    JournalConfig,
    OutboxLimits,
    Policy,
    SlotKind,
    StoreAndForwardSender,
)
from lance_sdk.journal.connect_string import parse_connect_string

NOWHERE = "lance://127.0.0.1:1/readings"


@pytest.mark.parametrize("level", Durability)
def test_a_durability_may_be_given_by_its_name(level: Durability) -> None:
    """As in connect strings, and not as one that nothing compares equal to."""
    by_name: Any = level.value
    assert JournalConfig(durability=by_name).durability is level


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("kind", ".sfl"),
        ("durability", "often"),
        ("durability", None),
        ("segment_bytes", "4M"),
        pytest.param("segment_bytes", 10**5000, id="segment_bytes-huge"),
        ("max_total_bytes", "1G"),
        ("max_frame_bytes", "1M"),
        ("sync_interval", "5s"),
        ("append_timeout", None),
    ],
)
def test_a_journal_names_the_option_at_fault(option: str, value: Any) -> None:
    """With what was given and what would do."""
    with pytest.raises(ConfigError, match=f"^{option}=.*: expected "):
        JournalConfig(**{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("journal", "edge-1"),
        ("limits", 3),
        ("backoff_base", "soon"),
        ("backoff_cap", float("nan")),
        ("reconnect_budget", -4),
        ("close_timeout", None),
        ("error_handler", "log"),
        ("drainer_listener", 5),
        ("error_inbox_capacity", "many"),
        ("max_drainers", "4"),
        ("dead_letter_bytes", None),
        ("limits", OutboxLimits(policies={"schema": Policy.DROP})),  # type: ignore[dict-item]
        ("limits", OutboxLimits(policies={Category.PARSE_ERROR: "drop"})),  # type: ignore[dict-item]
    ],
)
def test_a_sender_names_the_option_at_fault(option: str, value: Any) -> None:
    """With what was given and what would do."""
    at_fault = "policies" if isinstance(value, OutboxLimits) else option
    with pytest.raises(ConfigError, match=f"^{at_fault}=.*: expected "):
        ForwardConfig(**{option: value})


def test_a_timeout_is_not_taken_for_a_level() -> None:
    """``wait(10)`` would otherwise wait an hour."""
    seconds: Any = 10
    with (
        StoreAndForwardSender(NOWHERE, close_timeout=0) as sender,
        pytest.raises(ConfigError, match="a timeout is given by its name"),
    ):
        sender.wait(seconds)


@pytest.mark.anyio
async def test_a_timeout_is_not_taken_for_a_level_by_the_other_api() -> None:
    """Likewise."""
    seconds: Any = 10
    async with AsyncStoreAndForwardSender(NOWHERE, close_timeout=0) as sender:
        with pytest.raises(ConfigError, match="a timeout is given by its name"):
            await sender.wait(seconds)


def test_a_level_may_be_given_by_its_name() -> None:
    """Where nothing was stored, everything has come so far."""
    synced: Any = "synced"
    with StoreAndForwardSender(NOWHERE, close_timeout=0) as sender:
        assert sender.wait(synced, timeout=1)


@pytest.mark.parametrize(
    ("kind", "level", "text", "interval"),
    [
        (SlotKind.LWP, Durability.PERIODIC, "lance::addr=a;topic=t;sf_dir=d;", 1.0),
        (SlotKind.QWP, Durability.MEMORY, "ws::addr=a;sf_dir=d;", 5.0),
    ],
)
def test_a_slot_for_lwp_is_synced_every_second(
    kind: SlotKind, level: Durability, text: str, interval: float
) -> None:
    """A loss of power takes at most the last second; QWP has its document's default."""
    assert JournalConfig(kind=kind).durability is level
    assert JournalConfig().sync_interval == 1.0
    journal = parse_connect_string(text).forward_config().journal
    assert (journal.durability, journal.sync_interval) == (level, interval)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("lance_sdk.journal.transport", "Carrier", "Transport"),
        ("lance_sdk.journal.transport", "CarrierFactory", "TransportFactory"),
        ("lance_sdk.journal.qwp", "QwpCarrier", "QwpTransport"),
        ("lance_sdk.journal.qwp", "CarrierMaker", "QwpTransports"),
    ],
)
def test_an_old_name_works_and_warns(module: str, old: str, new: str) -> None:
    """Programs that use it get the class under its new name."""
    loaded = import_module(module)
    with pytest.warns(DeprecationWarning, match=f"use {new}$"):
        assert getattr(loaded, old) is getattr(loaded, new)
