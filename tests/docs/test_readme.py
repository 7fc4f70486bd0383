"""What the README must be: short, and right about how to check the project."""

import configparser
import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest

from lance_conformance.engine.suites import suite_named
from lance_sdk.demo.flights import ROWS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SET_UP = "python3 -m venv .venv && .venv/bin/pip install tox && "


def test_it_fits_on_two_screens() -> None:
    """At most 110 lines."""
    assert len(README.splitlines()) <= 110


@pytest.mark.parametrize("command", [".venv/bin/tox run -e demo", ".venv/bin/tox run-parallel"])
def test_it_gives_the_two_commands(command: str) -> None:
    """Demo and tests are one command each, on a line of their own, ready to copy."""
    assert f"    {SET_UP}{command}\n" in README


def test_it_names_what_tox_run_parallel_covers() -> None:
    """Every environment of tox.ini's env_list is named."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    named = set(re.findall(r"`(\w+)`", README))
    assert set(re.split(r"[\s,]+", settings["tox"]["env_list"].strip())) <= named


def test_continuous_integration_runs_the_same_command() -> None:
    """`.ci/run` does what the README says, step by step."""
    steps = [step.strip() for step in f"{SET_UP}.venv/bin/tox run-parallel".split("&&")]
    script = (ROOT / ".ci" / "run").read_text()
    lines = [shlex.split(line, comments=True) for line in script.splitlines()]
    ran = [
        " ".join(word for word in line if word not in {"exec", "--quiet", "--parallel-no-spinner"})
        for line in lines
    ]
    assert [line for line in ran if line in steps] == steps


def test_it_has_the_figures_that_were_measured_last() -> None:
    """`python docs/_ext/lance_docs/headline.py` brings them up to date."""
    module = ROOT / "docs" / "_ext" / "lance_docs" / "headline.py"
    assert runpy.run_path(str(module))["with_figures"](README) == README


def test_it_says_of_status_and_limits_what_the_front_page_says() -> None:
    """What Kafka is better for, how stable it is, and which systems it is made for."""
    page = " ".join((ROOT / "docs" / "index.rst").read_text().split())
    own = " ".join(README.split())
    for sentence in (
        "Take Kafka where you need its ecosystem: connectors, stream processors, clients",
        "Alpha: names may change until 1.0, and",
        "Client and kit are made for Linux, macOS and Windows, the server for Linux and macOS;",
    ):
        assert sentence in page
        assert sentence in own


def test_its_picture_is_there() -> None:
    """The picture is a committed file and says in words what it shows."""
    (words, target), *_ = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", README)
    assert (ROOT / target).read_text().startswith("<svg")
    assert len(words) > 40


def test_its_links_lead_somewhere() -> None:
    """Every relative link names a file of the project."""
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [target for target in targets if "://" not in target and not (ROOT / target).exists()]
    assert missing == []


def test_it_counts_the_cases_of_the_kit() -> None:
    """The numbers are those of the catalogue, in the introduction and in the table."""
    lwp, client, fluvio, rustlog = (
        len(suite_named(name).cases) for name in ("lwp", "lwp-client", "fluvio", "rustlog")
    )
    assert (
        f"HOST:PORT` has {lwp} cases, `lance-conformance client --exec DRIVER` {client}." in README
    )
    counted = re.search(r"\| Kit \| (\d+) .+?, (\d+) for clients, (\d+) for Fluvio", README)
    assert counted is not None
    assert [int(each) for each in counted.groups()] == [lwp, client, fluvio + rustlog]


def test_it_counts_the_flights() -> None:
    """The number of records that the demo takes is the one of the data set."""
    told = {found.replace(",", "") for found in re.findall(r"([\d,]+) real flight", README)}
    assert told == {str(ROWS)}


def test_it_names_the_oldest_python() -> None:
    """The version is the one that `pyproject.toml` asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    told = re.findall(r"C?Python (\d\.\d+)(?: or| and) later", README)
    assert told
    assert set(told) == {oldest}
