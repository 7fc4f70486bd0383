"""The row about a full disk, on a disk that is full: a small tmpfs in a namespace of its own."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sdk.mistakes.test_mistakes import ROWS

from lance_sdk import Producer
from lance_sdk.errors import DeliveryExpired

NAMESPACE = ("unshare", "--map-root-user", "--mount")
"""A process in it may mount, and nobody else sees what."""
MOUNT = 'mount -t tmpfs -o size=40m tmpfs "$1"'
SERVE = f'{MOUNT} && exec "$0" -m lance_server --data-dir "$1" --listen 127.0.0.1:0'


def in_namespace(script: str, folder: Path) -> list[str]:
    """Return the command that runs a script whose ``$1`` is a folder."""
    return [*NAMESPACE, "sh", "-c", script, sys.executable, str(folder)]


@pytest.fixture
def small_disk_url(tmp_path: Path) -> Iterator[str]:
    """Return the URL of a server whose data directory is a disk of 40 MiB."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, to mount a small disk")
    tried = subprocess.run(in_namespace(MOUNT, tmp_path), capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"nothing can be mounted here: {tried.stderr.decode().strip()}")
    with (
        (tmp_path / "server.log").open("wb") as log,
        subprocess.Popen(
            in_namespace(SERVE, tmp_path), stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdout is not None
        ready = server.stdout.readline()
        yield f"lance://{ready.split(' on ')[1].split(' ')[0]}"
        server.kill()


def fill(producer: Producer[bytes]) -> None:
    """Send more than the disk holds."""
    for _ in range(100):
        producer.send(bytes(1 << 20)).result()


def test_a_disk_that_is_full_is_told_as_the_table_says(small_disk_url: str) -> None:
    """The table's own program has a disk that says so, without being full."""
    (row,) = (row for row in ROWS if row["id"] == "disk-full")
    url = f"{small_disk_url}/orders"
    with (
        Producer(url, create_topic=True, delivery_timeout=3.0, close_timeout=0) as producer,
        pytest.raises(DeliveryExpired) as caught,
    ):
        fill(producer)
    text = " ".join(str(caught.value).split())
    assert row["says"] in text
    assert row["remedy"] in text
    assert not caught.value.maybe_applied
