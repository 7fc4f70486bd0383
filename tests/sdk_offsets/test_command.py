"""``lwp offsets``: what a person sees and changes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lance_sdk import Client, Producer
from lance_sdk.cli._app import run
from lance_sdk.offsets import Commit, FileStore, SqliteStore, TopicIdentity
from lance_server import running

MOMENT = 1_700_000_000_000_000_000


@pytest.fixture
def store(tmp_path: Path, orders: TopicIdentity) -> Iterator[str]:
    """Return the URL of a store with two commits."""
    kept = FileStore(tmp_path / "offsets")
    for consumer, offset in (("audit", 10), ("billing", 12345)):
        kept.save(Commit(consumer=consumer, topic=orders, offset=offset, committed_at_ns=MOMENT))
    yield f"file:{tmp_path}/offsets"
    kept.close()


def offset_of(store: str, consumer: str = "billing") -> int | None:
    """Return what a consumer has committed."""
    found = FileStore(store.removeprefix("file:")).commits(consumer)
    return found[0].offset if found else None


def test_show(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Commits are a table, of one consumer or of all."""
    assert run(["offsets", "show", "--store", store]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == [
        "consumer",
        "topic",
        "id",
        "offset",
        "committed",
        "(UTC)",
        "generation",
    ]
    assert shown[2].split() == ["billing", "orders", "7", "12,345", "2023-11-14", "22:13:20", "-"]
    assert run(["offsets", "show", "audit", "--store", store]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_show_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing is committed, that is said."""
    assert run(["offsets", "show", "--store", f"file:{tmp_path}"]) == 0
    assert capsys.readouterr().err == "nothing is committed there\n"


@pytest.mark.parametrize("kind", ["file", "sqlite"])
@pytest.mark.parametrize("command", [["show"], ["export"], ["reset", "billing"]], ids=" ".join)
def test_a_store_that_is_not_there_is_an_error(
    kind: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not made by looking at it."""
    path = tmp_path / "none"
    assert run(["offsets", *command, "--store", f"{kind}:{path}"]) == 1
    assert capsys.readouterr().err.startswith(f"error: there is no offset store {path}; ")
    assert not path.exists()


def test_show_as_json(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json everything that is kept is there."""
    assert run(["offsets", "show", "billing", "--store", store, "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["offset"], found["topic"]["epoch"]) == (12345, 2)


def test_store_from_the_environment(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANCE_OFFSETS names the store once for all commands."""
    monkeypatch.setenv("LANCE_OFFSETS", store)
    assert run(["offsets", "show"]) == 0
    assert "billing" in capsys.readouterr().out


def test_set_an_offset(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An offset can be set where the topic is known from the last commit."""
    assert run(["offsets", "set", "billing", "orders", "500", "--store", store]) == 0
    assert capsys.readouterr().out == "billing goes on at 500 in orders\n"
    assert offset_of(store) == 500


def test_set_for_a_group_that_has_generations(store: str, orders: TopicIdentity) -> None:
    """What belongs to a group can be set, too, under its last generation."""
    kept = FileStore(store.removeprefix("file:"))
    kept.save(Commit(consumer="billing", topic=orders, offset=1, generation=9))
    assert run(["offsets", "set", "billing", "orders", "500", "--store", store, "-q"]) == 0
    assert kept.commits("billing")[0].generation == 9


def test_set_by_the_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a server the beginning and the end can be named, and the topic's identity is kept."""
    store = f"sqlite:{tmp_path}/offsets.db"
    with running() as server:
        with Producer(f"{server.url}/orders", create_topic=True) as producer:
            producer.send(b"12345")
        with Client(server.url) as client:
            identity = TopicIdentity.of(client.get_topic("orders"))
        for where, offset in (("end", 10), ("beginning", 0)):
            arguments = ["offsets", "set", "new", "orders", where]
            assert run([*arguments, "--store", store, "--url", server.url]) == 0
            opened = SqliteStore(tmp_path / "offsets.db")
            assert [(c.offset, c.topic) for c in opened.commits("new")] == [(offset, identity)]
            opened.close()
    assert "new goes on at 10 in orders" in capsys.readouterr().out


def test_set_needs_a_server_for_what_is_unknown(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that was never committed is looked up, so a server has to be named."""
    monkeypatch.delenv("LANCE_URL", raising=False)
    assert run(["offsets", "set", "billing", "other", "5", "--store", store]) == 2
    assert "no server given" in capsys.readouterr().err


def test_running_consumer_is_not_moved(
    store: str, orders: TopicIdentity, capsys: pytest.CaptureFixture[str]
) -> None:
    """While a consumer holds its offset, it cannot be set; its process is named."""
    holder = FileStore(store.removeprefix("file:"))
    holder.claim("billing", orders)
    assert run(["offsets", "set", "billing", "orders", "5", "--store", store]) == 1
    assert "in use by process" in capsys.readouterr().err
    holder.close()


def test_reset(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a consumer committed can be removed; another one's stays."""
    assert run(["offsets", "reset", "billing", "--store", store, "--yes"]) == 0
    assert capsys.readouterr().out == "removed what billing committed in orders\n"
    assert (offset_of(store), offset_of(store, "audit")) == (None, 10)


def test_reset_nothing(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A consumer that committed nothing is an error, so that a typing mistake is noticed."""
    assert run(["offsets", "reset", "biling", "--store", store, "--yes"]) == 1
    assert "biling has committed nothing there" in capsys.readouterr().err


def test_export_lines(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An export is one line of JSON for each commit."""
    assert run(["offsets", "export", "--store", store]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["consumer"] for line in lines] == ["audit", "billing"]


def test_export_to_another_store(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commits can be copied into a store of another kind, and back, unchanged."""
    other, back = f"sqlite:{tmp_path}/copy.db", f"file:{tmp_path}/back"
    assert run(["offsets", "export", "--store", store, "--to", other]) == 0
    assert run(["offsets", "export", "--store", other, "--to", back]) == 0
    assert capsys.readouterr().err == "copied 2 commits to sqlite\ncopied 2 commits to file\n"
    folders = [FileStore(url.removeprefix("file:")).commits() for url in (store, back)]
    assert folders[0] == folders[1]


def test_impossible_store(capsys: pytest.CaptureFixture[str]) -> None:
    """A store that cannot be is wrong usage."""
    assert run(["offsets", "show", "--store", "etcd://x"]) == 2
    assert "'etcd' is not a kind of offset store" in capsys.readouterr().err


def test_set_to_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The server tells where the records of the time begin."""
    store = ["--store", f"file:{tmp_path}"]
    with running() as server:
        with Producer(f"{server.url}/orders", create_topic=True) as producer:
            producer.send(b"12345")
        for moment, offset in (("2001-01-01T00:00:00Z", 0), ("2099-01-01T00:00:00Z", 10)):
            arguments = ["offsets", "set", "billing", "orders", moment, "--url", server.url]
            assert run([*arguments, *store]) == 0
            assert capsys.readouterr().out == f"billing goes on at {offset} in orders\n"
            assert offset_of(store[1]) == offset


def test_set_without_a_server_means_the_latest_topic_of_a_name(
    store: str, orders: TopicIdentity
) -> None:
    """Where a topic was deleted and created again, both have a commit."""
    kept = FileStore(store.removeprefix("file:"))
    later = replace(orders, id=70, epoch=(orders.epoch or 0) + 1)
    kept.save(Commit(consumer="billing", topic=later, offset=1))
    assert run(["offsets", "set", "billing", "orders", "500", "--store", store, "-q"]) == 0
    found = {each.topic.id: each.offset for each in kept.commits("billing")}
    assert found == {orders.id: 12345, 70: 500}
