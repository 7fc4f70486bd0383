"""Tests of the program at the edge, with the fixtures that come with ``lance-sdk``."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from edge_sensor import forward

from lance_sdk.journal import StoreAndForwardSender

READINGS = 2
"""Number of the topic, which is made after the fixture's own one."""


def say(monkeypatch: pytest.MonkeyPatch, readings: bytes) -> None:
    """Have the program read this from stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(readings)))


def test_readings_are_confirmed_and_delivered(
    lance_fake_server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In their order."""
    say(monkeypatch, b"21.5\n21.6\n")
    forward(lance_fake_server.url("readings"), str(tmp_path / "slot"))
    assert capsys.readouterr().out == "stored 21.5\nstored 21.6\n"
    assert lance_fake_server.records(READINGS) == [b"21.5", b"21.6"]


def test_what_an_earlier_run_could_not_deliver_is_sent(
    lance_fake_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there is nothing new."""
    slot, nowhere = tmp_path / "slot", "lance://127.0.0.1:1/readings"
    with StoreAndForwardSender(nowhere, slot, close_timeout=0) as sender:
        sender.send(b"21.4")
    say(monkeypatch, b"")
    forward(lance_fake_server.url("readings"), str(slot))
    assert lance_fake_server.records(READINGS) == [b"21.4"]
