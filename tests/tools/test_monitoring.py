"""Prometheus' own checker on what is under ``deploy/monitoring``."""

import shutil
import subprocess
from pathlib import Path

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"


def test_alert_rules_are_valid(promtool: str) -> None:
    """Prometheus reads every rule and every expression in it."""
    command = [promtool, "check", "rules", str(MONITORING / "alerts.yml")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_the_configuration_is_valid(tmp_path: Path, promtool: str) -> None:
    """Prometheus would start with it."""
    for name in ("prometheus.yml", "alerts.yml"):
        shutil.copy(MONITORING / name, tmp_path)
    command = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
