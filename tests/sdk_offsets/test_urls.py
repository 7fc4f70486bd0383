"""Stores by URL, hooks after a commit, and stores for tasks."""

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from lance_sdk.errors import ConfigError
from lance_sdk.offsets import (
    AfterCommit,
    Commit,
    FileStore,
    HookedStore,
    MemoryStore,
    OffsetStore,
    StaleGeneration,
    StoreUnavailable,
    TopicIdentity,
    in_threads,
    open_store,
)


def test_memory_url() -> None:
    """``memory:`` is a store in memory."""
    assert isinstance(open_store("memory:"), MemoryStore)


@pytest.mark.parametrize("form", ["file:{}", "file://{}"])
def test_file_url(tmp_path: Path, orders: TopicIdentity, form: str) -> None:
    """``file:`` takes an absolute path with three slashes or none."""
    store = open_store(form.format(tmp_path / "a b%20c".replace("%", "%25")))
    store.save(Commit(consumer="x", topic=orders, offset=1))
    assert (tmp_path / "a b%20c" / "x").is_dir()
    store.close()


def test_sqlite_url(tmp_path: Path, orders: TopicIdentity) -> None:
    """``sqlite:`` takes a database file."""
    store = open_store(f"sqlite:{tmp_path}/offsets.db")
    store.save(Commit(consumer="x", topic=orders, offset=1))
    store.close()
    assert (tmp_path / "offsets.db").exists()


def test_redis_url(redis_url: str, orders: TopicIdentity) -> None:
    """``redis://`` is a Redis server."""
    store = open_store(redis_url)
    assert store.claim("of-a-url", orders) is None
    store.close()


def test_postgres_url(postgres_url: str, orders: TopicIdentity) -> None:
    """``postgresql://`` is a PostgreSQL server."""
    store = open_store(postgres_url)
    assert store.claim("of-a-url", orders) is None
    store.close()


def test_store_is_returned_as_it_is() -> None:
    """What is a store already stays it."""
    store = MemoryStore()
    assert open_store(store) is store


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("etcd://host", "'etcd' is not a kind of offset store"),
        ("offsets", "'offsets' is not a kind of offset store"),
        ("", "'' is not a kind of offset store"),
        ("memory:x", "takes nothing after the colon"),
        ("file:", "expected a path"),
        ("file://host/x", "three slashes"),
        ("sqlite:x?mode=ro", "three slashes"),
        ("redis://host:port", "Redis URL cannot be read"),
        ("postgresql://host/%", "PostgreSQL connection string cannot be read"),
    ],
)
def test_impossible_url_is_refused(
    url: str, reason: str, with_driver: Callable[[str], None]
) -> None:
    """A URL that names no store says what would."""
    with_driver(url)
    with pytest.raises(ConfigError, match=reason):
        open_store(url)


@pytest.mark.parametrize(("url", "extra"), [("redis://h", "redis"), ("postgresql://h", "postgres")])
def test_missing_driver_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, url: str, extra: str
) -> None:
    """A driver that is not installed says how to install it."""
    for name in ("redis", "psycopg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf"pip install 'lance-sdk\[{extra}\]'"):
        open_store(url)


@pytest.mark.parametrize(
    "url", ["redis://user:secret@127.0.0.1:1/0", "postgresql://user:secret@127.0.0.1:1/db"]
)
def test_unreachable_server_is_named_without_its_password(
    url: str, orders: TopicIdentity, with_driver: Callable[[str], None]
) -> None:
    """A server that is not there is named, its password is not."""
    with_driver(url)
    store = open_store(url)
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1") as caught:
        store.claim("billing", orders)
    assert caught.value.retryable
    assert "secret" not in f"{caught.value} {store!r}"
    store.close()


def test_lost_postgres_connection_is_made_anew(postgres_url: str, orders: TopicIdentity) -> None:
    """A connection that the server ended is replaced at the next commit."""
    import psycopg  # noqa: PLC0415 - optional: the fixture skips without it

    store = open_store(f"{postgres_url}?application_name=doomed")
    store.save(Commit(consumer="reconnect", topic=orders, offset=1))
    with psycopg.connect(postgres_url) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'doomed'"
        )
    store.save(Commit(consumer="reconnect", topic=orders, offset=2))
    assert store.commits("reconnect")[0].offset == 2
    store.close()


def test_locked_database_is_told(tmp_path: Path, orders: TopicIdentity) -> None:
    """A SQLite database that somebody else keeps locked is told as such, within the timeout."""
    import sqlite3  # noqa: PLC0415 - only this test speaks to it directly

    from lance_sdk.offsets import SqliteStore  # noqa: PLC0415 - likewise

    store = SqliteStore(tmp_path / "offsets.db", timeout=0.05)
    blocker = sqlite3.connect(tmp_path / "offsets.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        store.save(Commit(consumer="x", topic=orders, offset=1))
    blocker.close()
    store.close()


@pytest.mark.parametrize("table", ["", "a b", "x; DROP TABLE y", "1st", "x" * 64])
def test_impossible_table_is_refused(tmp_path: Path, table: str) -> None:
    """A table's name is a plain identifier."""
    from lance_sdk.offsets import SqliteStore  # noqa: PLC0415 - only this test needs it

    with pytest.raises(ConfigError, match="table="):
        SqliteStore(tmp_path / "offsets.db", table=table)


def test_hooks_see_commits_in_order(orders: TopicIdentity) -> None:
    """After a commit each hook gets it, and the one before it."""
    seen: list[tuple[str, int, int | None]] = []

    def note(name: str) -> AfterCommit:
        return lambda new, old: seen.append((name, new.offset, old and old.offset))

    store = HookedStore(MemoryStore(), [note("a"), note("b")])
    store.save(Commit(consumer="x", topic=orders, offset=1))
    store.save(Commit(consumer="x", topic=orders, offset=2))
    assert seen == [("a", 1, None), ("b", 1, None), ("a", 2, 1), ("b", 2, 1)]


def test_refused_commit_calls_no_hook(orders: TopicIdentity) -> None:
    """What was not kept is not announced."""
    seen: list[Commit] = []
    store = HookedStore(MemoryStore(), [lambda new, _old: seen.append(new)])
    store.claim("x", orders, generation=2)
    with pytest.raises(StaleGeneration):
        store.save(Commit(consumer="x", topic=orders, offset=1, generation=1))
    assert seen == []


def test_hook_that_raises_undoes_nothing(
    orders: TopicIdentity, caplog: pytest.LogCaptureFixture
) -> None:
    """A hook that raises is logged once; the commit stands and the other hooks are called."""
    seen: list[int] = []

    def broken(_new: Commit, _old: Commit | None) -> None:
        raise RuntimeError("hook")

    store = HookedStore(MemoryStore(), [broken, lambda new, _old: seen.append(new.offset)])
    with caplog.at_level(logging.ERROR, "lance_sdk.offsets"):
        store.save(Commit(consumer="x", topic=orders, offset=1))
        store.save(Commit(consumer="x", topic=orders, offset=2))
    assert (seen, store.failures, len(caplog.records)) == ([1, 2], 2, 1)
    assert store.commits()[0].offset == 2


def test_hook_without_a_hash_may_raise_too(
    orders: TopicIdentity, caplog: pytest.LogCaptureFixture
) -> None:
    """As an object of a dataclass, or a list's method."""
    with caplog.at_level(logging.ERROR, "lance_sdk.offsets"):
        HookedStore(MemoryStore(), [_Unhashable()]).save(
            Commit(consumer="x", topic=orders, offset=1)
        )
    assert "raised after a commit" in caplog.text


class _Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, _new: Commit, _old: Commit | None) -> None:
        raise RuntimeError("hook")


def test_hooked_store_is_a_store(orders: TopicIdentity) -> None:
    """Everything else goes to the store inside."""
    inside = MemoryStore()
    store: OffsetStore = HookedStore(inside, [])
    inside.save(Commit(consumer="x", topic=orders, offset=1))
    assert store.claim("x", orders).offset == 1
    store.release("x", orders)
    assert inside.claim("x", orders).offset == 1
    assert store.forget("x", orders)
    assert store.commits() == []
    store.close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_store_for_tasks(tmp_path: Path, orders: TopicIdentity, backend: str) -> None:
    """Any store can be awaited, on asyncio and on trio."""

    async def use() -> int:
        store = in_threads(FileStore(tmp_path))
        await store.claim("x", orders)
        async with anyio.create_task_group() as group:
            for offset in (1, 2, 3):
                group.start_soon(store.save, Commit(consumer="x", topic=orders, offset=offset))
        await store.release("x", orders)
        kept = await store.commits()
        await store.forget("x", orders)
        assert await store.commits("x") == []
        await store.close()
        return len(kept)

    assert anyio.run(use, backend=backend) == 1
