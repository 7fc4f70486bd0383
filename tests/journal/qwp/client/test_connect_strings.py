"""Connect strings of row senders, and the host tracker."""

import re
import ssl
from functools import partial
from pathlib import Path

import pytest
import trustme

from lance_sdk._protocol.hosts import Endpoint as Address
from lance_sdk.errors import ConfigError
from lance_sdk.journal import Durability, SlotKind
from lance_sdk.journal.connect_keys import KEYS, RENAMED
from lance_sdk.journal.lwp.settings import from_connect_string as from_lwp
from lance_sdk.journal.qwp import QwpSender
from lance_sdk.journal.qwp._connection.hosts import HostState, HostTracker
from lance_sdk.journal.qwp.config import from_connect_string, parse_endpoint
from lance_server.listeners.qwp import QwpOptions
from lance_server.listeners.qwp.testing import endpoint
from lance_server.security.authorizer import Security
from lance_server.security.tls import TlsConfig


def test_every_part_of_a_string_finds_its_place() -> None:
    """Slot, reconnecting, credentials and rows."""
    config = from_connect_string(
        "ws::addr=a:1,b;sf_dir=/x;sender_id=me;username=u;password=p;request_durable_ack=on;"
        "durable_ack_keepalive_interval_millis=50;connect_timeout=3s;auth_timeout_ms=4000;"
        "auto_flush_rows=off;auto_flush_bytes=8k;auto_flush_interval=250;max_buf_size=1m;"
        "max_name_len=60;sf_durability=flush;initial_connect_retry=on;",
        {},
    )
    assert config.target == "ws::addr=a:1,b"
    assert config.forward.path == Path("/x/me")
    assert config.forward.journal.kind is SlotKind.QWP
    assert config.forward.journal.durability is Durability.FLUSH
    assert config.forward.journal.synced_before_trim == (".symbol-dict",)
    transport = config.carrier
    assert [str(each) for each in transport.endpoints] == ["a:1", "b:9000"]
    assert (transport.durable, transport.keepalive, transport.retry_initially) == (True, 0.05, True)
    assert (transport.connect_timeout, transport.upgrade_timeout) == (3.0, 4.0)
    rows = config.rows
    assert (rows.auto_flush_rows, rows.auto_flush_bytes, rows.auto_flush_interval) == (
        None,
        8192,
        0.25,
    )
    assert (rows.max_buffer, rows.max_name) == (1 << 20, 60)


WRONG = [
    ("sf_max_segment_bytes", "1"),
    ("sf_max_bytes", "3G"),
    ("sf_max_total_bytes", "1"),
    ("sf_sync_interval_millis", "0"),
    ("reconnect_initial_backoff_millis", "0"),
    ("reconnect_max_backoff_millis", "0"),
    ("max_frame_rejections", "0"),
    ("max_in_flight", "0"),
    ("error_inbox_capacity", "3"),
    ("on_damaged_error", "dead_letter"),
    ("on_unsupported_error", "retriable"),
    ("connect_timeout", "0"),
    ("auth_timeout_ms", "0"),
]
"""Keys of both schemes, with values that will not do."""
WRONG_ROWS = [
    ("request_timeout", "0"),
    ("max_buf_size", "0"),
    ("max_name_len", "0"),
    ("auto_flush_rows", "-1"),
    ("auto_flush_bytes", "x"),
]
"""Likewise, of QWP alone."""


@pytest.mark.parametrize(
    ("scheme", "key", "value"),
    [
        *(("ws", *each) for each in (*WRONG, *WRONG_ROWS)),
        *(("lance", *each) for each in WRONG),
    ],
)
def test_a_value_that_will_not_do_is_refused_under_the_name_that_was_written(
    scheme: str, key: str, value: str
) -> None:
    """No message names a setting that stands in no connect string."""
    read = partial(from_connect_string, overrides={}) if scheme == "ws" else from_lwp
    with pytest.raises(ConfigError, match=f"^{key}\\b") as caught:
        read(f"{scheme}::addr=a;{key}={value};")
    words = set(re.findall(r"\w+_\w+", str(caught.value)))
    assert words <= {*KEYS, *RENAMED, "dead_letter"}


@pytest.mark.parametrize("text", ["0", "off"])
def test_a_trigger_that_is_off_starts_no_flush(text: str) -> None:
    """``auto_flush_bytes=0`` is the default of the source (SF client section 4.5)."""
    rows = from_connect_string(f"ws::addr=a;auto_flush_bytes={text};", {}).rows
    assert rows == from_connect_string("ws::addr=a;", {}).rows
    assert rows.auto_flush_bytes is None


@pytest.mark.parametrize("scheme", ["lance", "http", "tcp"])
def test_another_protocols_string_is_refused(scheme: str) -> None:
    """A row sender speaks QWP."""
    with pytest.raises(ConfigError, match="must begin with"):
        QwpSender.from_conf(f"{scheme}::addr=h;")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("h", "h", 9000), ("h:1", "h", 1), ("[::1]", "::1", 9000), ("[::1]:2", "::1", 2)],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    """The port may be left out."""
    assert parse_endpoint(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", ":1", "h:", "h:0", "h:70000", "::1", "[::1", "[::1]x", "h:a"])
def test_addresses_that_are_none_are_refused(text: str) -> None:
    """The key is named."""
    with pytest.raises(ConfigError, match="addr"):
        parse_endpoint(text)


def test_tls_is_spoken_with_roots_of_ones_own(tmp_path: Path) -> None:
    """``wss`` with ``tls_roots`` trusts what they vouch for, and nobody else."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "roots.pem")
    tls = TlsConfig(cert_path=tmp_path / "cert.pem", key_path=tmp_path / "key.pem")
    with endpoint(tmp_path / "data", options=QwpOptions(security=Security(tls))) as qwp:
        addr = f"localhost:{qwp.listener.address.port}"
        with QwpSender.from_conf(f"wss::addr={addr};tls_roots={tmp_path / 'roots.pem'};") as sender:
            sender.row("t", columns={"v": 1})
        assert qwp.values("t") == [1]
        with pytest.raises(OSError, match="certificate is not accepted"):
            QwpSender.from_conf(f"wss::addr={addr};").open()
        context = ssl.create_default_context(cafile=str(tmp_path / "roots.pem"))
        with QwpSender.from_conf(f"wss::addr={addr};", tls=context) as sender:
            sender.row("t", columns={"v": 2})
        assert qwp.values("t") == [1, 2]


def tracker(hosts: int = 3) -> HostTracker:
    """Return a tracker of new hosts."""
    return HostTracker([Address("h", port) for port in range(1, hosts + 1)])


def test_hosts_are_tried_in_order_once_a_round() -> None:
    """Ties are decided by the order of ``addr``."""
    hosts = tracker()
    order = []
    while (index := hosts.pick()) is not None:
        order.append(index)
        hosts.unreachable(index)
    assert order == [0, 1, 2]
    hosts.begin_round()
    assert hosts.pick() == 0


def test_the_best_known_host_comes_first() -> None:
    """Healthy before unknown before rejecting before broken before replica."""
    hosts = tracker(5)
    hosts.role_rejected(0, transient=False)
    hosts.unreachable(1)
    hosts.role_rejected(2, transient=True)
    hosts.succeeded(4)
    hosts._attempted.clear()
    order = []
    while (index := hosts.pick()) is not None:
        order.append(index)
        hosts._attempted.add(index)
    assert order == [4, 3, 2, 1, 0]


def test_a_round_forgets_all_but_the_last_healthy_host() -> None:
    """What was wrong a round ago may be right now."""
    hosts = tracker()
    hosts.unreachable(0)
    hosts.succeeded(1)
    hosts.begin_round()
    assert [hosts.state(each) for each in range(3)] == [
        HostState.UNKNOWN,
        HostState.HEALTHY,
        HostState.UNKNOWN,
    ]
    assert hosts.pick() == 1


def test_a_break_in_the_middle_demotes_only_a_healthy_host() -> None:
    """And does not make it count as tried."""
    hosts = tracker()
    hosts.succeeded(0)
    hosts.begin_round()
    hosts.failed_midstream(0)
    assert hosts.state(0) is HostState.TRANSPORT_ERROR
    assert hosts.pick() == 1
    hosts.role_rejected(1, transient=True)
    hosts.failed_midstream(1)
    assert hosts.state(1) is HostState.TRANSIENT_REJECT
