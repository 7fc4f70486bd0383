"""The row sender as an application uses it, on three clients."""

import datetime as dt
import inspect
from pathlib import Path
from typing import Any

import pytest

from lance_sdk.errors import ConfigError, ConnectFailed, NotOpenError
from lance_sdk.journal import JournalFull, SlotLocked
from lance_sdk.journal.qwp import AsyncQwpSender, QwpSender, RowError, timestamp_nanos
from lance_sdk.journal.rejections import SenderHalted
from lance_sdk.journal.sender_stats import FramesLost
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.testing import Endpoint, endpoint
from lance_server.security.authorizer import Security
from lance_server.security.tokens import AuthConfig
from lance_server.testing import free_port

pytestmark = pytest.mark.anyio
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
UNUSED = "127.0.0.1:1"


async def test_a_row_arrives_as_it_was_given(api: Any, qwp: Endpoint) -> None:
    """Symbols, columns and the time of a row are what the server gets."""
    async with api.sender(f"ws::addr={qwp.addr};") as sender:
        await sender.row(
            "trades", symbols={"symbol": "ETH-USD"}, columns={"price": 2615.54}, at=NOON
        )
    stamp = int(NOON.timestamp()) * 1_000_000_000
    assert qwp.records("trades") == [(stamp, {"symbol": "ETH-USD", "price": 2615.54})]


async def test_rows_arrive_once_and_in_order(api: Any, qwp: Endpoint) -> None:
    """On a network that works nothing is lost, doubled or moved."""
    async with api.sender(f"ws::addr={qwp.addr};auto_flush_rows=7;") as sender:
        for number in range(100):
            await sender.row("t", columns={"v": number}, at=timestamp_nanos(number))
    assert qwp.values("t") == [*range(100)]


async def test_flush_returns_before_the_network(api: Any, sf: Path) -> None:
    """Without a server, rows are stored and the number of their frame is known."""
    conf = f"ws::addr={UNUSED};sf_dir={sf};initial_connect_retry=async;"
    async with api.sender(conf, close_timeout=0) as sender:
        await sender.row("t", columns={"v": 1})
        assert await sender.flush() == 0
        assert sender.acked_fsn == -1
        assert sender.pending_rows == 0
    assert sender.stats().journal.backlog_frames == 1


async def test_what_one_process_stored_the_next_sends(api: Any, sf: Path, qwp: Endpoint) -> None:
    """A slot is taken up where it was left, symbols included."""
    offline = f"ws::addr={UNUSED};sf_dir={sf};initial_connect_retry=async;"
    async with api.sender(offline, close_timeout=0) as sender:
        for number in range(3):
            await sender.row("t", symbols={"s": f"s{number}"}, columns={"v": number})
            await sender.flush()
    async with api.sender(f"ws::addr={qwp.addr};sf_dir={sf};") as sender:
        await sender.row("t", symbols={"s": "s1"}, columns={"v": 3})
        await sender.row("t", symbols={"s": "new"}, columns={"v": 4})
    assert qwp.values("t") == [0, 1, 2, 3, 4]
    assert qwp.values("t", "s") == ["s0", "s1", "s2", "s1", "new"]


async def test_symbols_are_sent_once_and_understood_for_ever(
    api: Any, sf: Path, qwp: Endpoint
) -> None:
    """A later frame refers to what an earlier one brought; a new connection catches up first."""
    async with api.sender(f"ws::addr={qwp.addr};sf_dir={sf};") as sender:
        for _ in range(3):
            await sender.row("t", symbols={"s": "often"})
            await sender.flush()
            assert await sender.wait(timeout=5)
        qwp.when(connection=0, close=1001)
        await sender.row("t", symbols={"s": "often"})
        await sender.flush()
        assert await sender.wait(timeout=5)
        assert sender.stats().connects == 2
    assert qwp.values("t", "s") == ["often"] * 4


async def test_durable_acks_are_what_counts_when_asked_for(api: Any, qwp: Endpoint) -> None:
    """An OK alone settles nothing then; the acknowledgement of the disk does."""
    conf = f"ws::addr={qwp.addr};request_durable_ack=on;"
    qwp.when(message=0, hold_durable=True)
    async with api.sender(conf) as sender:
        await sender.row("t", columns={"v": 1})
        await sender.flush()
        assert not await sender.wait(timeout=0.2)
        assert sender.acked_fsn == -1
        await sender.row("t", columns={"v": 2})
        await sender.flush()
        assert await sender.wait(timeout=5)
        assert sender.acked_fsn == 1


@pytest.mark.parametrize(
    "credentials", ["token=correct horse;", "username=me;password=correct horse;"]
)
async def test_credentials_open_the_door(api: Any, tmp_path: Path, credentials: str) -> None:
    """Bearer and Basic are what the upgrade carries."""
    security = Security(None, AuthConfig(tokens=("correct horse",)))
    with endpoint(tmp_path / "data", options=QwpOptions(security=security)) as qwp:
        async with api.sender(f"ws::addr={qwp.addr};{credentials}") as sender:
            await sender.row("t", columns={"v": 1})
        assert qwp.values("t") == [1]


async def test_wrong_credentials_end_every_attempt(api: Any, tmp_path: Path) -> None:
    """401 is final, whatever the retry options say; the rows stay."""
    security = Security(None, AuthConfig(tokens=("correct horse",)))
    with endpoint(tmp_path / "data", options=QwpOptions(security=security)) as qwp:
        sender = api.sender(f"ws::addr={qwp.addr};token=wrong wrong;initial_connect_retry=sync;")
        with pytest.raises(SenderHalted, match="401"):
            await sender.open()
        assert qwp.listener.accepted == 1


async def test_without_a_server_opening_fails_at_once(api: Any) -> None:
    """By default one round over the hosts decides, and every attempt is listed."""
    with pytest.raises(ConnectFailed, match=UNUSED):
        await api.sender(f"ws::addr={UNUSED};").open()


async def test_missing_durable_acks_are_told_at_once(api: Any, qwp: Endpoint) -> None:
    """Waiting for acknowledgements that never come would fill the disk in silence."""
    qwp.when(on="connect", no_durable_ack=True, times=0)
    sender = api.sender(f"ws::addr={qwp.addr};request_durable_ack=on;")
    with pytest.raises(OSError, match="does not grant durable acknowledgements"):
        await sender.open()


async def test_a_bad_row_leaves_the_buffer_as_it_was(api: Any, qwp: Endpoint) -> None:
    """The error names table, column and row, and the rows before it are sent."""
    async with api.sender(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        await sender.row("t", columns={"v": 1, "w": "x"})
        with pytest.raises(RowError, match=r"table 't', row 1, column 'w': .* VARCHAR") as error:
            await sender.row("t", columns={"v": 2, "w": 3})
        assert (error.value.table, error.value.column, error.value.row) == ("t", "w", 1)
        assert sender.pending_rows == 1
        await sender.row("t", columns={"v": 3})
    assert qwp.values("t") == [1, 3]


async def test_rows_of_dicts_are_taken_together_or_not_at_all(api: Any, qwp: Endpoint) -> None:
    """One bad row refuses the call."""
    async with api.sender(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        good = [{"s": "a", "v": 1, "t": NOON}, {"s": None, "v": 2, "t": NOON}]
        await sender.rows("t", good, symbols=["s"], at="t")
        with pytest.raises(RowError, match="row 1, column 'v'"):
            await sender.rows("t", [{"v": 3}, {"v": "three"}])
        with pytest.raises(RowError, match=r"row 0, column 't': .* missing"):
            await sender.rows("t", [{"v": 3}], at="t")
    assert qwp.values("t") == [1, 2]
    assert qwp.values("t", "s") == ["a", None]


async def test_a_batch_larger_than_a_frame_is_split(api: Any, sf: Path, qwp: Endpoint) -> None:
    """Frames fit in segments, however many rows are flushed at once."""
    conf = f"ws::addr={qwp.addr};sf_dir={sf};sf_max_segment_bytes=4096;auto_flush=off;"
    async with api.sender(conf) as sender:
        for number in range(1000):
            await sender.row("t", symbols={"s": f"symbol {number}"}, columns={"v": number})
        await sender.flush()
        assert await sender.wait(timeout=10)
        assert sender.stats().frames_sent > 5
    assert qwp.values("t") == [*range(1000)]
    assert qwp.values("t", "s") == [f"symbol {number}" for number in range(1000)]


async def test_a_row_larger_than_a_frame_is_refused_when_it_is_given(
    api: Any, sf: Path, qwp: Endpoint
) -> None:
    """Not at some later flush, and with the way out."""
    conf = f"ws::addr={qwp.addr};sf_dir={sf};sf_max_segment_bytes=4096;"
    async with api.sender(conf) as sender:
        with pytest.raises(RowError, match="raise sf_max_segment_bytes"):
            await sender.row("t", columns={"v": "x" * 4096})


async def _fill(sender: Any) -> None:
    """Write frames until there is no room."""
    for number in range(200):
        await sender.row("t", symbols={"s": str(number)}, columns={"v": number})
        await sender.flush()


async def test_a_full_journal_keeps_the_rows(api: Any, sf: Path, tmp_path: Path) -> None:
    """The flush fails, the rows stay in order, and a later flush stores them once."""
    conf = (
        f"sf_dir={sf};sf_max_segment_bytes=512;sf_max_total_bytes=1024;"
        "sf_append_deadline_millis=50;auto_flush=off;"
    )
    offline = f"ws::addr={UNUSED};initial_connect_retry=async;{conf}"
    sender = api.sender(offline, close_timeout=0)
    await sender.open()
    with pytest.raises(JournalFull):
        await _fill(sender)
    full_at = sender.published_fsn
    assert sender.pending_rows == 1
    with pytest.raises(JournalFull):
        await sender.close()
    with endpoint(tmp_path / "data") as qwp:
        async with api.sender(f"ws::addr={qwp.addr};{conf}") as sender:
            assert await sender.wait(timeout=5)
        assert qwp.values("t") == [*range(full_at + 1)]
        assert qwp.values("t", "s") == [str(number) for number in range(full_at + 1)]


async def test_rows_can_be_given_up(api: Any, qwp: Endpoint) -> None:
    """What was not flushed is forgotten, and counted."""
    async with api.sender(f"ws::addr={qwp.addr};auto_flush=off;") as sender:
        await sender.row("t", columns={"v": 1})
        assert sender.clear() == 1
        await sender.row("t", columns={"v": 2})
    assert qwp.values("t") == [2]


async def test_a_slot_has_one_sender(api: Any, sf: Path, qwp: Endpoint) -> None:
    """A second sender learns whose slot it is."""
    conf = f"ws::addr={qwp.addr};sf_dir={sf};"
    async with api.sender(conf):
        with pytest.raises(SlotLocked, match="pid="):
            await api.sender(conf).open()


async def test_an_outage_is_ridden_out(api: Any, sf: Path, tmp_path: Path) -> None:
    """Rows of before, during and after an outage all arrive, in order."""
    port = free_port()
    with endpoint(tmp_path / "data", port=port) as qwp:
        sender = api.sender(f"ws::addr={qwp.addr};sf_dir={sf};")
        await sender.open()
        await sender.row("t", columns={"v": 0})
        await sender.flush()
        assert await sender.wait(timeout=5)
    for number in range(1, 5):
        await sender.row("t", columns={"v": number})
        await sender.flush()
    with endpoint(tmp_path / "data", port=port) as qwp:
        await sender.row("t", columns={"v": 5})
        await sender.flush()
        assert await sender.wait(timeout=10)
        assert (await sender.close()).clean
        assert qwp.values("t") == [*range(6)]


async def test_frames_in_memory_that_nobody_took_are_told(api: Any) -> None:
    """Leaving the block without them is an error."""
    sender = api.sender(f"ws::addr={UNUSED};initial_connect_retry=async;", close_timeout=0.05)
    with pytest.raises(FramesLost):
        async with sender:
            await sender.row("t", columns={"v": 1})


async def test_a_sender_must_be_open(api: Any) -> None:
    """The error says how."""
    with pytest.raises(NotOpenError, match="with"):
        await api.sender(f"ws::addr={UNUSED};").row("t", columns={"v": 1})


def test_the_environment_can_say_where_to(qwp: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is the one that clients of QuestDB read."""
    monkeypatch.setenv("QDB_CLIENT_CONF", f"ws::addr={qwp.addr};")
    with QwpSender.from_env() as sender:
        sender.row("t", columns={"v": 1})
    assert qwp.values("t") == [1]


def test_an_environment_that_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is named."""
    monkeypatch.delenv("QDB_CLIENT_CONF", raising=False)
    with pytest.raises(ConfigError, match="QDB_CLIENT_CONF"):
        QwpSender.from_env()


def test_both_apis_have_the_same_methods() -> None:
    """Names, parameters and defaults; only ``await`` differs."""
    for name in {*vars(QwpSender), *vars(AsyncQwpSender)}:
        if not name.startswith("_"):
            sync, other = getattr(QwpSender, name), getattr(AsyncQwpSender, name)
            if callable(sync):
                assert inspect.signature(sync).parameters == inspect.signature(other).parameters


def test_secrets_are_not_shown() -> None:
    """Neither by the sender nor by its settings."""
    sender = QwpSender.from_conf("ws::addr=h;username=me;password=hunter22;")
    assert "hunter22" not in repr(sender) + repr(sender._config)
