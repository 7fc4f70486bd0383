"""The script that builds a Python for musl says in a sentence why it cannot."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "musl.sh"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows: it has no sh")


def programs(folder: Path, **answers: str) -> Path:
    """Return a folder of programs: ``mkdir``, and those that only print what is given."""
    found = shutil.which("mkdir")
    assert found is not None
    (folder / "mkdir").symlink_to(found)
    for name, answer in answers.items():
        (folder / name).write_text(f'#!/bin/sh\necho "{answer}"\n')
        (folder / name).chmod(0o755)
    return folder


def refusal(path: Path, folder: Path) -> str:
    """Return what the script says where it finds only the programs of one folder."""
    run = subprocess.run(
        ["/bin/sh", SCRIPT, folder],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    return run.stderr


def test_on_another_system_it_says_so(tmp_path: Path) -> None:
    """It builds nothing there."""
    path = programs(tmp_path, uname="Darwin arm64")
    said = refusal(path, tmp_path / "python")
    assert said == "no Python for musl: this machine is not Debian on x86-64.\n"
    assert not (tmp_path / "python").exists()


@pytest.mark.skipif(not KEYS.exists(), reason="this machine is not Debian")
def test_who_is_not_root_is_told_what_to_install(tmp_path: Path) -> None:
    """The packages, by the names that apt knows."""
    path = programs(tmp_path, uname="Linux x86_64", id="1000")
    said = refusal(path, tmp_path / "python")
    assert said.startswith("no Python for musl: install musl-tools gcc make tcl xz-utils bzip2")
    assert said.endswith(", or run this script as root.\n")
