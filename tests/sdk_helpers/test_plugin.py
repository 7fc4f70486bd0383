"""The pytest plugin is loaded into every test run of everybody who has the package."""

import subprocess
import sys


def test_it_loads_nothing_that_it_does_not_need() -> None:
    """Neither sockets nor the protocol; a fixture brings them when it is used."""
    program = (
        "import sys, pytest; before = set(sys.modules); import lance_sdk.pytest_plugin; "
        "print(*sorted(name for name in set(sys.modules) - before if 'lance_' in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["lance_sdk", "lance_sdk.pytest_plugin"]
