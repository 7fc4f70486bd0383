"""Where the pipeline is tested: logs in files, servers on free ports, one Spark session."""

import importlib.util
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lance_sdk import Client, Producer
from lance_sdk.journal import StoreAndForwardSender
from lance_server import running
from lance_server.embedded import EmbeddedServer
from lance_server.storage.pwritev import PwritevStorage
from lance_server.storage.wrapper import WrapperStorage
from lance_spec.checksum import CRC32C

NEEDED = ("pyarrow", "numpy")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
WANTED = "LANCE_SPARK"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A Java that lives for minutes loses more by compiling for hours than it gains."""


class _Left(pytest.Module):
    """A module that is left out, with the reason."""

    def collect(self) -> Iterable[pytest.Item]:
        pytest.skip(
            f"{MISSING[0]} is not installed: tox run -e spark, or pip install 'lance-sdk[spark]'",
            allow_module_level=True,
        )


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Any:
    """Leave out what cannot even be imported without the extra."""
    return _Left.from_parent(parent, path=module_path) if MISSING else None


@pytest.fixture(scope="session")
def sessions() -> None:
    """Leave out what starts Spark, unless that is wanted."""
    if not os.environ.get(WANTED):
        pytest.skip(f"{WANTED} is not set: tests in a Spark session run with tox run -e spark")
    pytest.importorskip("pyspark", reason="pip install 'lance-sdk[spark]'")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_TOOL_OPTIONS"] = BRIEF
    os.environ.pop("PYTHONDEVMODE", None)  # Spark starts many a Python, and each would be slow


@pytest.fixture(scope="session")
def fault(sessions: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that says what dies at which step of a sink, see ``faults/sitecustomize.py``."""
    del sessions  # before the Java side starts, whose environment all Pythons of Spark have
    found = tmp_path_factory.mktemp("fault") / "step"
    os.environ["LWP_FAULT"] = str(found)
    folders = [str(Path(__file__).parent / "faults"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    return found


@pytest.fixture(scope="session")
def spark(fault: Path) -> Iterator[Any]:
    """One Spark session for the run, with two tasks at a time and three tries for each."""
    del fault  # what it has set, Java sees
    from lance_sdk.spark.pipelines.session import local_session  # noqa: PLC0415 - an extra

    with local_session(cores=2) as session:
        yield session


class Removals(WrapperStorage):
    """A disk that tells when the server has removed a segment."""

    def __init__(self) -> None:
        super().__init__(PwritevStorage())
        self._came = threading.Event()

    def remove(self, path: Path) -> None:
        """Remove a file, and tell."""
        super().remove(path)
        if path.suffix == ".lnc":
            self._came.set()

    def drop(self, server: EmbeddedServer, topic: str, max_bytes: int = 64 << 10) -> int:
        """Have retention drop the beginning of a topic; return where it begins then."""
        with Client(server.url, dialect="specified") as client:
            client.set_retention(topic, max_bytes=max_bytes)
            assert self._came.wait(60)
            return client.get_topic(topic).start_offset or 0


@pytest.fixture
def removals() -> Removals:
    """The disk of the server, where a test asks for it."""
    return Removals()


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """A server with small segments."""
    disk = request.getfixturevalue("removals") if "removals" in request.fixturenames else None
    options: dict[str, Any] = {"segment_size": 64 << 10, "compaction": False, "storage": disk}
    with running(tmp_path / "data", **options) as running_server:
        yield running_server


@pytest.fixture
def produce(server: EmbeddedServer) -> Callable[..., list[bytes]]:
    """Fill a topic with numbered records; returns their values."""

    def fill(topic: str, count: int, *, first: int = 0, size: int = 40) -> list[bytes]:
        values = [
            f"{number:08d}".encode().ljust(size, b".") for number in range(first, first + count)
        ]
        url = f"{server.url}/{topic}"
        with Producer(url, create_topic=True, batch_bytes=2048, dialect="specified") as producer:
            producer.send_many(values)
        return values

    return fill


@pytest.fixture
def at(server: EmbeddedServer) -> Mapping[str, str]:
    """The options that lead to the server."""
    return {"servers": "{}:{}".format(*server.address), "dialect": "specified"}


class Reader:
    """Reads logs as Spark's tasks would, without Spark."""

    def splits(self, **said: str) -> list[Any]:
        """Return the splits of a batch query."""
        from lance_sdk.spark.logs.batches import plan  # noqa: PLC0415 - an extra
        from lance_sdk.spark.logs.resolve import open_log  # noqa: PLC0415 - likewise
        from lance_sdk.spark.options import Options  # noqa: PLC0415 - likewise

        options = Options.parse(said)
        return plan(open_log(options), options)

    def rows(self, splits: Iterable[Any], *names: str) -> list[dict[str, Any]]:
        """Return what tasks read of splits that travelled to them."""
        from lance_sdk.spark.rows.column_names import DEFAULT_COLUMNS  # noqa: PLC0415 - likewise
        from lance_sdk.spark.rows.columns import arrow_schema  # noqa: PLC0415 - likewise

        schema = arrow_schema(names or DEFAULT_COLUMNS)
        travelled = pickle.loads(pickle.dumps(list(splits)))
        return [row for split in travelled for b in split.read(schema) for row in b.to_pylist()]

    def values(self, **said: str) -> list[bytes]:
        """Return the values of a batch query."""
        return [row["value"] for row in self.rows(self.splits(**said), "value")]


@pytest.fixture
def reader() -> Reader:
    """Reads logs without Spark."""
    return Reader()


class Disk:
    """What a test does to files."""

    def folder_of(self, data: str, topic: str = "orders") -> Path:
        """Return a topic's folder in a data directory."""
        for metadata in Path(data, "segments").glob("*/metadata.json"):
            if json.loads(metadata.read_text())["name"] == topic:
                return metadata.parent
        raise LookupError(topic)

    def segments_of(self, data: str) -> list[Path]:
        """Return the segment files of the topic ``orders`` in order."""
        found = self.folder_of(data).glob("*.lnc")
        return sorted(found, key=lambda path: int(path.name.partition("_")[0]))

    def spoil(self, path: Path, place: int) -> None:
        """Change one byte of a file."""
        raw = bytearray(path.read_bytes())
        raw[place] ^= 0xFF
        path.write_bytes(raw)

    def change_log(self, folder: Path, **fields: Any) -> None:
        """Change what a topic's metadata says of its log, in both copies."""
        path = folder / "metadata.json"
        body = json.loads(path.read_text())
        del body["checksum"]
        body["log"] |= fields
        plain = json.dumps(body, sort_keys=True, ensure_ascii=False, indent=2)
        body["checksum"] = f"crc32c:{CRC32C(plain.encode()):08x}"
        for copy in (path, path.with_name("metadata.json.bak")):
            copy.write_text(json.dumps(body))

    def fill_slot(self, root: Path) -> Path:
        """Store 200 records for the topic ``readings`` while no server is there."""
        slot = root / "edge-1"
        url = "lance://127.0.0.1:9/readings"
        with StoreAndForwardSender(url, slot, close_timeout=0) as sender:
            for number in range(200):
                sender.send(b"%04d" % number)
        return slot


@pytest.fixture
def disk() -> Disk:
    """Changes files."""
    return Disk()
