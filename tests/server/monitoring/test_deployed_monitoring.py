"""What is under ``deploy/monitoring``: do its pictures and rules ask for what a server reports?"""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

MONITORING = Path(__file__).parents[3] / "deploy" / "monitoring"
METRIC = re.compile(r"\blance_\w+")
SUFFIX = re.compile(r"_(bucket|count|sum)$")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The script that writes dashboard and rules."""
    spec = importlib.util.spec_from_file_location("monitoring", MONITORING / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reported(generator: ModuleType) -> set[str]:
    """The metrics of a server that is a node of a cluster."""
    return set(generator.reported())


def dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    body: dict[str, Any] = json.loads((MONITORING / "grafana" / "lance.json").read_text())
    return body


def panels() -> list[dict[str, Any]]:
    """Return the pictures, those of the closed row too."""
    return [each for row in dashboard()["panels"] for each in (row, *row.get("panels", ()))]


def rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    [group] = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_the_files_are_what_the_script_writes(generator: ModuleType) -> None:
    """Nobody edits them by hand."""
    assert generator.DASHBOARD.read_text() == generator.dashboard()
    assert generator.ALERTS.read_text() == generator.alerts()


def test_a_dashboard_shows_what_a_server_reports(reported: set[str]) -> None:
    """Every metric has a picture, and no picture asks for one that does not exist."""
    lines = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    asked = {SUFFIX.sub("", name) for line in lines for name in METRIC.findall(line)}
    assert len(asked) > 70
    assert asked == reported


def test_panels_do_not_overlap() -> None:
    """Each place of the grid shows one picture."""
    cells = [
        (place["x"] + right, place["y"] + down)
        for place in (panel["gridPos"] for panel in panels())
        for right in range(place["w"])
        for down in range(place["h"])
    ]
    assert len(cells) == len(set(cells))


def test_rules_ask_for_what_a_server_reports(reported: set[str]) -> None:
    """An alert about a metric that does not exist would never come."""
    asked = {SUFFIX.sub("", name) for rule in rules() for name in METRIC.findall(rule["expr"])}
    assert asked <= reported


def test_rules_say_what_to_do() -> None:
    """Whoever is woken up reads what is wrong and what helps."""
    for rule in rules():
        assert {"summary", "remedy"} <= set(rule["annotations"]), rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}


def test_compose_mounts_files_that_are_there() -> None:
    """Paths are relative to the folder of the first compose file, as compose takes them."""
    body = yaml.safe_load((MONITORING / "compose.yaml").read_text())
    files = {each["file"] for each in body["configs"].values()}
    assert all((MONITORING.parent / each).is_file() for each in files)
    used = {each["source"] for service in body["services"].values() for each in service["configs"]}
    assert used == set(body["configs"])
