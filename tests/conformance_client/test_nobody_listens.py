"""The port of cases in which no server listens."""

import socket

import pytest

from lance_conformance.client.case_context import closed_port

HOST = "127.0.0.1"


def test_whoever_connects_is_refused() -> None:
    """At once, and not by a timeout."""
    with closed_port() as port, pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port), timeout=30)


def test_nobody_else_gets_the_port() -> None:
    """Another server that begins meanwhile would answer the client under test."""
    with closed_port() as port, pytest.raises(OSError, match="in use"):
        socket.create_server((HOST, port))
