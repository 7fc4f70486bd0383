"""Environment variables: the lists hold what the programs read, and the rest is told."""

import re
from pathlib import Path

import click
import pytest

from lance_sdk.cli._app import lwp
from lance_server.server_command import command
from lance_spec.environment import (
    CLIENT,
    DEVELOPMENT,
    SERVER,
    made_by_kubernetes,
    meant_option,
    unknown_variables,
)

ROOT = Path(__file__).parents[2]
POD = {
    "LANCE_PORT": "tcp://10.96.0.7:1992",
    "LANCE_PORT_1992_TCP": "tcp://10.96.0.7:1992",
    "LANCE_PORT_1992_TCP_ADDR": "10.96.0.7",
    "LANCE_PORT_1992_TCP_PORT": "1992",
    "LANCE_PORT_1992_TCP_PROTO": "tcp",
    "LANCE_SERVICE_HOST": "10.96.0.7",
    "LANCE_SERVICE_PORT": "1992",
    "LANCE_SERVICE_PORT_LWP": "1992",
    "LANCE_HTTP_PORT": "tcp://10.96.0.8:9090",
}


def test_every_option_of_the_server_has_its_variable() -> None:
    """The list is that of the command."""
    options = {each.name.upper() for each in command.params if each.name}
    assert options - {"HELP", "VERSION"} == SERVER


def test_every_variable_of_the_clients_is_known() -> None:
    """Those that the help of a command names, and those that a module reads."""
    shown = set(re.findall(r"LANCE_([A-Z_]+)", lwp.get_help(click.Context(lwp))))
    read = {
        name
        for folder in ("sdk", "conformance")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'"LANCE_([A-Z_]+[A-Z])"', path.read_text())
    }
    assert shown | read <= CLIENT
    assert {"URL", "TOKEN", "TLS_CA"} <= shown


def test_what_tests_and_benchmarks_read_is_known() -> None:
    """So that a program which they start says nothing of it."""
    read = {
        name
        for folder in ("tests", "bench")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'environ[^"\n]*"LANCE_([A-Z_]+)"', path.read_text())
    }
    assert read <= DEVELOPMENT | SERVER | CLIENT


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LANCE_MAX_MEMROY", "LANCE_MAX_MEMORY"),
        ("LANCE_TLS_CERTPATH", "LANCE_TLS_CERT_PATH"),
        ("LANCE_DATADIR", "LANCE_DATA_DIR"),
        ("LANCE_PEERS", "LANCE_CLUSTER"),
        ("LANCE_HOST", "LANCE_LISTEN"),
        ("LANCE_URI", "LANCE_URL"),
    ],
)
def test_a_misspelt_variable_is_told_with_what_it_was_meant_to_be(name: str, meant: str) -> None:
    """The nearest one, or the one that the name means elsewhere."""
    told = f"the environment variable {name} is not read by anything; did you mean {meant}?"
    assert list(unknown_variables({name: "1", "HOME": "/", meant: "1"})) == [told]


@pytest.mark.parametrize(
    ("option", "known", "meant"),
    [
        ("--port", ["--listen", "--port-file"], "--listen"),
        ("--data", ["--data-dir"], "--data-dir"),
        ("--bootstrap-server", ["--url"], "--url"),
        ("--port", ["--url"], "--url"),
        ("--lisen", ["--listen"], None),
    ],
)
def test_an_option_of_other_programs_means_one_of_ours(
    option: str, known: list[str], meant: str | None
) -> None:
    """A misspelt one is left to the comparison of names."""
    assert meant_option(option, known) == meant


def test_a_port_that_somebody_wrote_is_no_port_of_kubernetes() -> None:
    """``LANCE_PORT=1992`` is a mistake; ``tcp://…`` is none."""
    (told,) = unknown_variables({"LANCE_PORT": "1992"})
    assert told.endswith("did you mean LANCE_LISTEN?")


def test_what_kubernetes_makes_of_a_service_is_told_in_one_sentence() -> None:
    """Nobody misspelt it, and one setting of the pod ends it."""
    (told,) = unknown_variables({**POD, "LANCE_DATA_DIR": "/data"})
    assert "9 environment variables such as LANCE_HTTP_PORT=tcp://10.96.0.8:9090" in told
    assert "enableServiceLinks: false" in told
    assert set(made_by_kubernetes(POD)) == set(POD)
