"""A bad network and a bad server: nothing is lost, and doubled only where that is documented."""

import random
from pathlib import Path
from typing import Any

import pytest

from lance_sdk.journal.qwp import QwpSender
from lance_sdk.journal.rejections import Rejection, SenderHalted
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.testing import Endpoint, endpoint

from ..network import FAULTS  # noqa: TID252 - tests are no package
from ..network import Network as Anywhere  # noqa: TID252 - tests are no package
from .conftest import Fault, Network, quick

ROWS = 6


def send(conf: str, rows: int = ROWS, **forward: Any) -> QwpSender:
    """Send rows one frame each, and return the sender once all are acknowledged."""
    sender = QwpSender(quick(conf, **forward))
    with sender:
        for number in range(rows):
            sender.row("t", symbols={"s": f"s{number % 3}"}, columns={"v": number})
            sender.flush()
        assert sender.wait(timeout=10)
    return sender


def delivered(qwp: Endpoint, rows: int = ROWS) -> int:
    """Check that all rows came, in order, with their symbols; return how many came again.

    A frame that comes again is a replay: what follows it is what followed it before.
    """
    values, symbols = qwp.values("t"), qwp.values("t", "s")
    assert symbols == [f"s{number % 3}" for number in values]
    seen: list[int] = []
    for before, value in zip([-1, *values], values, strict=False):
        assert value <= before + 1, values
        seen += [value] if value not in seen else []
    assert seen == [*range(rows)]
    return len(values) - rows


@pytest.mark.parametrize("after", range(ROWS + 1))
@pytest.mark.parametrize("kind", ["drop", "reset", "half_close", "stall"])
@pytest.mark.parametrize("towards", ["server", "client"])
def test_a_network_that_fails_at_any_frame_loses_nothing(
    qwp: Endpoint, kind: str, towards: str, after: int
) -> None:
    """After a fault at each frame boundary, everything arrives in order.

    What the server had taken and not acknowledged when the connection broke comes again; that
    is all that may be doubled (SF-34).
    """
    fault = Fault(kind, towards, after)
    with Network(qwp.addr, fault) as network:
        conf = f"ws::addr={network.addr};max_in_flight=2;initial_connect_retry=sync;"
        sender = send(conf, patience=0.1)
    assert delivered(qwp) <= 2 * sender.stats().reconnect_attempts
    if towards == "server" or after < 3:  # an OK may be about several frames, so they are fewer
        assert fault.happened.is_set()
    if fault.happened.is_set() and after < ROWS // 2:
        assert sender.stats().reconnect_attempts >= 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_network_that_fails_anywhere_loses_nothing(
    qwp: Endpoint, sf: Path, fault: Any, seed: int
) -> None:
    """Also in the middle of frames, of the upgrade, and several times in a row."""
    rng = random.Random(f"{fault} {seed}")
    with Anywhere(qwp.listener.address.port, fault, 4, rng, most=900) as network:
        conf = f"ws::addr=127.0.0.1:{network.port};sf_dir={sf};initial_connect_retry=sync;"
        send(conf, patience=0.1)
    delivered(qwp)


@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 1013, 4000])
def test_a_close_is_followed_by_a_reconnect(qwp: Endpoint, code: int) -> None:
    """These blame nobody (SF client section 15.2); the frame is sent again."""
    qwp.when(message=3, close=code, reason="as told")
    sender = send(f"ws::addr={qwp.addr};")
    assert delivered(qwp) == 0
    assert sender.stats().connects == 2


@pytest.mark.parametrize("code", [999, 1004, 1005, 1006, 1015])
def test_a_close_that_nobody_may_send_is_survived(qwp: Endpoint, code: int) -> None:
    """It breaks the protocol, and costs the connection."""
    qwp.when(message=3, close=code)
    send(f"ws::addr={qwp.addr};")
    assert delivered(qwp) == 0


@pytest.mark.parametrize("after", [1, 1000])
def test_an_ack_of_too_much_settles_nothing(qwp: Endpoint, after: int) -> None:
    """A number that was never sent costs the connection, and no frame (SF-35)."""
    qwp.when(message=2, ack=2 + after)
    sender = send(f"ws::addr={qwp.addr};max_in_flight=1;")
    assert delivered(qwp) == 0
    assert sender.stats().connects == 2


def test_an_ack_of_less_than_nothing_settles_nothing(qwp: Endpoint) -> None:
    """-1 is not a number of a message (SF-35)."""
    qwp.when(message=0, ack=-1)
    send(f"ws::addr={qwp.addr};max_in_flight=1;")
    assert delivered(qwp) == 0


def test_an_ack_of_too_little_settles_only_that(qwp: Endpoint) -> None:
    """An old number again is harmless; the frame is settled by the next right one."""
    qwp.when(message=3, ack=1, store=True)
    sender = send(f"ws::addr={qwp.addr};")
    assert delivered(qwp) == 0
    assert sender.stats().connects == 1


@pytest.mark.parametrize(
    "answer",
    ["", "00", "00 0000000000000000 0100", "02 0000", "00 0100000000000000 0000 ff", "07" * 5],
    ids=["empty", "one byte", "cut", "not asked for", "trailing", "error cut"],
)
def test_an_answer_that_is_none_costs_the_connection(qwp: Endpoint, answer: str) -> None:
    """The frame is sent again on the next one."""
    qwp.when(message=1, send=answer)
    sender = send(f"ws::addr={qwp.addr};max_in_flight=1;")
    assert delivered(qwp) == 0
    assert sender.stats().connects == 2


@pytest.mark.parametrize(
    "rule",
    [
        {"status": 404},
        {"status": 426},
        {"status": 503},
        {"status": 200},
        {"status": 500},
        {"status": 421},
        {"status": 421, "role": "REPLICA"},
        {"status": 421, "role": "PRIMARY_CATCHUP"},
        {"version": "0"},
        {"version": "2"},
        {"version": "x"},
        {"stall": True},
    ],
    ids=str,
)
def test_an_upgrade_that_fails_is_tried_again(qwp: Endpoint, rule: dict[str, Any]) -> None:
    """All but 401 and 403 may be otherwise the next time."""
    qwp.when(on="connect", times=2, **rule)
    send(f"ws::addr={qwp.addr};initial_connect_retry=sync;", patience=0.2)
    delivered(qwp)


def test_another_host_takes_over(tmp_path: Path) -> None:
    """A host that turns out to be a replica is left for the next one in the same round."""
    with endpoint(tmp_path / "a") as replica, endpoint(tmp_path / "b") as primary:
        replica.when(on="connect", status=421, role="REPLICA", times=0)
        send(f"ws::addr=127.0.0.1:1,{replica.addr},{primary.addr};")
        assert delivered(primary) == 0
        assert replica.listener.accepted == 1


def test_a_failover_in_the_middle_goes_on_where_it_was(tmp_path: Path) -> None:
    """The host that closes is demoted, and the other one gets the dictionary first."""
    with endpoint(tmp_path / "a") as first, endpoint(tmp_path / "b") as second:
        first.when(message=3, close=1001)
        send(f"ws::addr={first.addr},{second.addr};max_in_flight=1;")
        values = first.values("t") + second.values("t")
        assert values == [*range(ROWS)]
        assert second.values("t", "s") == [f"s{number % 3}" for number in second.values("t")]


# What servers refuse ---------------------------------------------------------------------------


def test_a_frame_that_cannot_be_read_halts_and_is_kept(qwp: Endpoint, sf: Path) -> None:
    """Nothing is given up: the sender stops, and says how to go on."""
    qwp.when(message=2, reject="PARSE_ERROR", text="no such type", times=0)
    conf = f"ws::addr={qwp.addr};sf_dir={sf};"
    sender = QwpSender(quick(conf)).open()
    for number in range(4):
        sender.row("t", symbols={"s": f"s{number % 3}"}, columns={"v": number})
        sender.flush()
    with pytest.raises(SenderHalted, match=r"frame 2 of 't' rejected, parse .*no such type"):
        sender.wait(timeout=10)
    assert sender.acked_fsn == 1
    assert sender.close().kept_frames == 2
    qwp.script.rules.clear()
    with QwpSender(quick(conf)) as again:
        assert again.wait(timeout=5)
    assert delivered(qwp, 4) == 0


def test_a_dead_letter_does_not_stop_the_others(qwp: Endpoint, sf: Path) -> None:
    """The frame goes into the file, those after it to the server."""
    told: list[Rejection] = []
    qwp.when(message=2, reject="SCHEMA_MISMATCH", text="no such column")
    conf = f"ws::addr={qwp.addr};sf_dir={sf};"
    sender = send(conf, error_handler=told.append)
    assert qwp.values("t") == [0, 1, 3, 4, 5]
    assert sender.stats().dead_lettered == 1
    assert [(each.first_fsn, each.table, each.status) for each in told] == [(2, "t", 3)]
    assert (sf / "default" / "dead-letters.jsonl").read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("status", [0x04, 0x07, 0xEE, 0xFF])
def test_an_unknown_status_halts_whatever_was_configured(qwp: Endpoint, status: int) -> None:
    """Nothing is dropped for a reason that nobody here understands (SF client section 14)."""
    qwp.when(message=2, reject=status)
    with pytest.raises(SenderHalted, match="frame 2"):
        send(f"ws::addr={qwp.addr};on_server_error=drop;")
    assert qwp.values("t") == [0, 1]


@pytest.mark.parametrize("status", ["INTERNAL_ERROR", "WRITE_ERROR", "DICTIONARY_GAP"])
def test_what_may_pass_is_tried_again_where_that_is_asked_for(qwp: Endpoint, status: str) -> None:
    """The frame goes out on the next connection."""
    qwp.when(message=2, reject=status)
    sender = send(f"ws::addr={qwp.addr};on_internal_error=retriable;on_write_error=retriable;")
    assert delivered(qwp) == 0
    assert sender.stats().server_errors == 1


def test_a_frame_that_is_refused_over_and_over_halts(qwp: Endpoint) -> None:
    """A retry that cannot help ends, after as many strikes as were allowed."""
    qwp.when(table="t", reject="WRITE_ERROR", times=0)
    conf = f"ws::addr={qwp.addr};max_frame_rejections=3;on_write_error=retriable;"
    conf += "poison_min_escalation_window_millis=0;"
    with pytest.raises(SenderHalted, match="write"):
        send(conf)
    assert qwp.listener.upgraded == 3


def test_not_writable_is_waited_out(qwp: Endpoint) -> None:
    """It is not a strike against the frame: the server says that it is not about it."""
    qwp.when(message=0, reject="NOT_WRITABLE", times=6)
    conf = f"ws::addr={qwp.addr};max_frame_rejections=2;poison_min_escalation_window_millis=0;"
    sender = send(conf)
    assert delivered(qwp) == 0
    assert sender.stats().server_errors == 0


def test_a_frame_too_large_for_the_host_is_a_dead_letter(tmp_path: Path, sf: Path) -> None:
    """It is never sent: the host has told its limit."""
    with endpoint(tmp_path / "data", options=QwpOptions(max_message=1000)) as qwp:
        with QwpSender(quick(f"ws::addr={qwp.addr};sf_dir={sf};")) as sender:
            for value in ("small", "x" * 2000, "small too"):
                sender.row("t", columns={"v": value})
                sender.flush()
            assert sender.wait(timeout=5)
            assert sender.stats().connects == 1
        assert qwp.values("t") == ["small", "small too"]
        assert sender.stats().dead_lettered == 1
