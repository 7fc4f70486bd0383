"""Every store under the same tests; Redis and PostgreSQL as private servers on loopback."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import pytest

from lance_sdk.offsets import (
    FileStore,
    MemoryStore,
    OffsetStore,
    PostgresStore,
    RedisStore,
    SqliteStore,
    TopicIdentity,
)
from lance_server.testing import free_port

_REQUIRED = "LANCE_STORES_REQUIRED"
_STARTING = 60.0


def _missing(reason: str) -> NoReturn:
    """Skip; where the environment promises the real servers, fail."""
    if os.environ.get(_REQUIRED):
        pytest.fail(f"{reason}, and {_REQUIRED} is set")
    pytest.skip(reason)


def _require_driver(module: str) -> None:
    try:
        import_module(module)
    except ModuleNotFoundError:
        _missing(f"{module} is not installed")


@pytest.fixture
def with_driver() -> Callable[[str], None]:
    """Return what skips a test whose URL needs a driver that is not installed."""

    def require(url: str) -> None:
        modules = {"redis": "redis", "postgresql": "psycopg"}
        if (module := modules.get(url.partition(":")[0])) is not None:
            _require_driver(module)

    return require


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Return the URL of a Redis server of our own."""
    binary = shutil.which("redis-server")
    if binary is None:
        _missing("redis-server is not installed")
    _require_driver("redis")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
        command += ["--save", "", "--appendonly", "no"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            if not any("Ready to accept connections" in line for line in server.stdout):
                _missing("redis-server does not start")
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()
            server.communicate()


def _postgres_binary(name: str) -> Path | None:
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return versions[-1] if versions else None


def _unprivileged() -> dict[str, Any]:
    """Return who may run PostgreSQL, which refuses root."""
    if os.getuid():
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Return the URL of a PostgreSQL server of our own."""
    initdb, pg_ctl = _postgres_binary("initdb"), _postgres_binary("pg_ctl")
    if initdb is None or pg_ctl is None:
        _missing("PostgreSQL is not installed")
    _require_driver("psycopg")
    who, port = _unprivileged(), free_port()
    folder = Path(tempfile.mkdtemp(prefix="lance-pg-"))
    if who:
        os.chown(folder, who["user"], who["group"])
    data = folder / "data"

    def run(*command: str | Path) -> None:
        subprocess.run(
            [str(part) for part in command],
            check=True,
            cwd=folder,
            timeout=_STARTING,
            stdout=subprocess.DEVNULL,
            **who,
        )

    settings = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off"
    try:
        run(initdb, "-D", data, "-U", "lance", "-A", "trust", "-E", "UTF8", "-N", "--locale=C")
        run(pg_ctl, "-D", data, "-w", "-l", folder / "log", "-o", settings, "start")
        yield f"postgresql://lance@127.0.0.1:{port}/postgres"
    finally:
        pid_file = data / "postmaster.pid"
        if pid_file.exists():
            os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Place:
    """One place to keep offsets, which any number of stores can be opened on.

    Attributes:
        kind: which store.
        open: opens another one on the same place.
        locks: whether a claim keeps others out.
    """

    kind: str
    open: Callable[[], OffsetStore]
    locks: bool = False


KINDS = ("memory", "file", "sqlite", "redis", "postgres")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return each kind of place in turn, empty."""
    return _make_place(request, tmp_path)


@pytest.fixture(params=KINDS[1:])
def lasting_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return each kind of place that outlives its store."""
    return _make_place(request, tmp_path)


def _make_place(request: pytest.FixtureRequest, folder: Path) -> Place:
    kind = request.param
    if kind == "memory":
        only = MemoryStore()
        return Place(kind, lambda: only, locks=True)
    if kind == "file":
        return Place(kind, lambda: FileStore(folder / "offsets"), locks=True)
    if kind == "sqlite":
        return Place(kind, lambda: SqliteStore(folder / "offsets.db"))
    if kind == "redis":
        url, prefix = request.getfixturevalue("redis_url"), f"{uuid4()}:[*]:"
        return Place(kind, lambda: RedisStore(url, prefix=prefix))
    url, table = request.getfixturevalue("postgres_url"), f"offsets_{uuid4().hex}"
    return Place(kind, lambda: PostgresStore(url, table=table))


@pytest.fixture
def store(place: Place) -> Iterator[OffsetStore]:
    """Return an empty store of each kind."""
    store = place.open()
    yield store
    store.close()


@pytest.fixture
def orders() -> TopicIdentity:
    """Return a topic."""
    return TopicIdentity(id=7, name="orders", created_at=1_700_000_000, epoch=2)
