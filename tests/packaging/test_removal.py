"""Another protocol is folders and a registration: without the folders everything of LWP works.

The tools that read every protocol are registrations: the grammar's families and `lwp explain`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "spec": "lance_spec",
    "sdk": "lance_sdk",
    "reference_server": "lance_server",
    "conformance": "lance_conformance",
}
FOLDERS = {
    "fluvio": (
        "spec/lance_spec/explain/_fluvio.py",
        "spec/lance_spec/fluvio",
        "spec/lance_spec/fluvio_apis.py",
        "spec/lance_spec/grammar/fluvio",
        "spec/lance_spec/messages/fluvio.py",
        "sdk/lance_sdk/fluvio",
        "sdk/lance_sdk/bridge/fluvio.py",
        "reference_server/lance_server/listeners/fluvio",
        "conformance/lance_conformance/fluvio",
    ),
    "rustlog": (
        "spec/lance_spec/rustlog",
        "spec/lance_spec/rustlog_json.py",
        "spec/lance_spec/grammar/rustlog.py",
        "spec/lance_spec/messages/rustlog.py",
        "sdk/lance_sdk/rustlog",
        "sdk/lance_sdk/bridge/rustlog.py",
        "reference_server/lance_server/listeners/rustlog",
        "conformance/lance_conformance/rustlog",
    ),
    "qwp": (
        "spec/lance_spec/explain/_qwp.py",
        "spec/lance_spec/qwp",
        "spec/lance_spec/grammar/qwp",
        "spec/lance_spec/messages/qwp.py",
        "sdk/lance_sdk/journal/qwp",
        "reference_server/lance_server/listeners/qwp",
    ),
    "spark": ("sdk/lance_sdk/spark",),
}
PROGRAM = """
import subprocess
import sys

import lance_spec
from lance_sdk import Client, Consumer, Producer
from lance_sdk.groups import Coordinator, GroupConsumer
from lance_server import running

assert lance_spec.__file__.startswith(sys.argv[1]), lance_spec.__file__
with running() as server:
    with Client(server.url) as client:
        client.create_topic("orders", partitions=2)
    with Producer(f"{server.url}/plain", create_topic=True) as producer:
        producer.send(b"one").result()
    with Consumer(f"{server.url}/plain") as consumer:
        assert next(iter(consumer)).value == b"one"
    target = server.url.removeprefix("lance://")
    kit = [sys.executable, "-m", "lance_conformance", "--target", target, "hdr", "fet"]
    kit += ["--timeout-scale", "10"]  # a sync may take seconds beside other tests
    done = subprocess.run(kit, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
for command in ("lance_server", "lance_sdk.cli", "lance_conformance"):
    subprocess.run([sys.executable, "-m", command, "--help"], check=True, capture_output=True)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four packages, by themselves."""
    path = tmp_path_factory.mktemp("tree")
    for root, package in PACKAGES.items():
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / root / package, path / root / package, ignore=skipped)
    (path / "vectors").mkdir()
    shutil.copy(ROOT / "vectors" / "server_case.json", path / "vectors")
    return path


@pytest.mark.parametrize("protocol", FOLDERS)
def test_lwp_works_without(protocol: str, tree: Path, tmp_path: Path) -> None:
    """Server, client and kit, once the protocol's folders have been deleted."""
    shutil.copytree(tree, tmp_path, dirs_exist_ok=True)
    for folder in FOLDERS[protocol]:
        gone = tmp_path / folder
        (shutil.rmtree if gone.is_dir() else Path.unlink)(gone)
    left = [path for path in tmp_path.rglob(f"*{protocol}*") if path.suffix in ("", ".py")]
    assert left == []
    paths = os.pathsep.join(str(tmp_path / root) for root in PACKAGES)
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=100,
    )
