"""Connect strings: every key, every notation, every mistake."""

from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.x509 import load_pem_x509_certificate
from hypothesis import given
from hypothesis import strategies as st

from lance_sdk._protocol.backoff import Backoff
from lance_sdk.errors import ConfigError
from lance_sdk.journal import Category, Durability, Policy, SlotKind
from lance_sdk.journal._sending.tls import context_of
from lance_sdk.journal.connect_keys import FOREIGN, KEYS, parse_bool, parse_millis, parse_size
from lance_sdk.journal.connect_string import parse_connect_string
from lance_sdk.journal.lwp.settings import from_connect_string
from lance_sdk.journal.rejections import QWP_FORCED
from lance_sdk.testing import LoadedDice

SOURCE_KEYS = [
    "sf_dir",
    "sender_id",
    "sf_max_bytes",
    "sf_max_total_bytes",
    "sf_durability",
    "sf_append_deadline_millis",
    "drain_orphans",
    "max_background_drainers",
    "reconnect_max_duration_millis",
    "reconnect_initial_backoff_millis",
    "reconnect_max_backoff_millis",
    "initial_connect_retry",
    "close_flush_timeout_millis",
    "request_durable_ack",
    "durable_ack_keepalive_interval_millis",
    "error_inbox_capacity",
    "on_server_error",
    "on_schema_error",
    "on_parse_error",
    "on_internal_error",
    "on_security_error",
    "on_write_error",
    "addr",
    "username",
    "password",
    "token",
    "tls_verify",
    "tls_roots",
    "tls_roots_password",
    "auto_flush",
    "auto_flush_rows",
    "auto_flush_bytes",
    "auto_flush_interval",
    "init_buf_size",
    "max_buf_size",
    "max_name_len",
    "max_schemas_per_connection",
]
"""The keys of SF client section 4."""
NEWER_KEYS = [
    "sf_max_segment_bytes",
    "sf_sync_interval_millis",
    "connect_timeout",
    "auth_timeout_ms",
    "max_frame_rejections",
    "poison_min_escalation_window_millis",
]
"""Keys that published clients have beside."""


def test_every_key_of_the_source_is_known() -> None:
    """Under its current name or its old one."""
    names = {*KEYS, *(key.replaces for key in KEYS.values())}
    assert {*SOURCE_KEYS, *NEWER_KEYS} <= names


def test_a_string_becomes_settings() -> None:
    """Each value where it belongs, in seconds and bytes."""
    config = parse_connect_string(
        "ws::addr=a:1,b;addr=c;sf_dir=/d;sender_id=edge-1;sf_max_segment_bytes=1M;"
        "sf_max_total_bytes=1G;sf_durability=periodic;sf_sync_interval_millis=100;"
        "sf_append_deadline_millis=2s;drain_orphans=true;max_background_drainers=2;"
        "reconnect_max_duration_millis=60000;reconnect_initial_backoff_millis=20;"
        "reconnect_max_backoff_millis=1s;initial_connect_retry=async;"
        "close_flush_timeout_millis=-1;error_inbox_capacity=32;on_schema_error=dead_letter;"
        "max_frame_rejections=9;poison_min_escalation_window_millis=1;"
    ).forward_config()
    assert config.path == Path("/d/edge-1")
    assert config.journal.kind is SlotKind.QWP
    assert (config.journal.segment_bytes, config.journal.max_total_bytes) == (1 << 20, 1 << 30)
    assert config.journal.durability is Durability.PERIODIC
    assert (config.journal.sync_interval, config.journal.append_timeout) == (0.1, 2.0)
    assert (config.drain_orphans, config.max_drainers) == (True, 2)
    assert (config.backoff_base, config.backoff_cap, config.reconnect_budget) == (0.02, 1.0, 60.0)
    assert (config.initial_connect, config.close_timeout) == ("async", -0.001)
    assert config.error_inbox_capacity == 32
    assert config.limits.policies == {Category.SCHEMA_MISMATCH: Policy.DEAD_LETTER}
    assert (config.limits.strikes, config.limits.dwell) == (9, 0.001)


def test_the_defaults_are_those_of_the_source() -> None:
    """No folder: memory; no retry at the first connect; an outage may last for ever (SF-12)."""
    config = parse_connect_string("ws::addr=a;").forward_config()
    assert (config.path, config.initial_connect, config.reconnect_budget) == (None, "off", None)
    assert (config.close_timeout, config.backoff_base, config.backoff_cap) == (5.0, 0.1, 5.0)
    assert config.journal.append_timeout == 30.0


@pytest.mark.parametrize("key", ["auto_flush_rows", "auto_flush_bytes", "auto_flush_interval"])
@pytest.mark.parametrize("text", ["0", "off", "OFF"])
def test_zero_and_off_disable_a_trigger(key: str, text: str) -> None:
    """The source writes its default as ``0 (off)`` (SF client section 4.5)."""
    assert parse_connect_string(f"ws::addr=a;{key}={text};").get(key, "missing") is None


@pytest.mark.parametrize("scheme", ["ws", "lance"])
def test_a_first_backoff_above_the_largest_is_cut_to_it(scheme: str) -> None:
    """As the source computes it; no pair of delays is refused (SF client section 4.2)."""
    text = f"{scheme}::addr=a;reconnect_initial_backoff_millis=10s;reconnect_max_backoff_millis=1s;"
    if scheme == "lance":
        settings = from_connect_string(f"{text}topic=t;")
        assert settings.client.backoff_base == settings.client.backoff_cap == 1.0
    config = parse_connect_string(text).forward_config()
    delay = Backoff(config.backoff_base, config.backoff_cap, LoadedDice()).next_delay()
    assert delay == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [
        *[(text, 1) for text in ("1", "1b", "1B")],
        *[(text, 1 << 16) for text in ("64k", "64K", "64kb", "64KB", "64KiB", "65536")],
        *[(text, 4 << 20) for text in ("4m", "4M", "4mb", "4MiB")],
        ("1T", 1 << 40),
    ],
)
def test_sizes(written: str, bytes_: int) -> None:
    """One notation for every key, always powers of 1024 (SF-27)."""
    assert parse_size("sf_max_bytes", written) == bytes_


@pytest.mark.parametrize(
    ("written", "seconds"), [("500", 0.5), ("500ms", 0.5), ("5s", 5.0), ("2m", 120.0), ("0", 0.0)]
)
def test_durations(written: str, seconds: float) -> None:
    """A plain number is milliseconds, as the keys say."""
    assert parse_millis("x", written) == seconds


@pytest.mark.parametrize("key", [name for name, key in KEYS.items() if key.parse is parse_bool])
@pytest.mark.parametrize(("written", "meant"), [("on", True), ("TRUE", True), ("0", False)])
def test_switches(key: str, written: str, meant: bool) -> None:
    """Every switch takes every spelling (SF-26)."""
    folder = "sf_dir=/d;"
    assert parse_connect_string(f"ws::addr=a;{folder}{key}={written};").get(key) is meant


def test_initial_connect_has_aliases() -> None:
    """Canonical names and the older ones (SF client section 13.4)."""
    said = {
        text: parse_connect_string(f"ws::addr=a;initial_connect_retry={text};").get(
            "initial_connect_retry"
        )
        for text in ("off", "false", "on", "sync", "true", "async")
    }
    assert [*said.values()] == ["off", "off", "sync", "sync", "sync", "async"]


def test_other_keys_do_not_change_how_the_first_connect_is_tried() -> None:
    """Setting a backoff promotes nothing to sync."""
    text = "ws::addr=a;reconnect_max_duration_millis=10;reconnect_initial_backoff_millis=1;"
    assert parse_connect_string(text).forward_config().initial_connect == "off"


@pytest.mark.parametrize("policy", ["auto", *(each.value for each in Policy)])
@pytest.mark.parametrize("category", [each for each in Category if each is not Category.DAMAGED])
def test_policies_are_validated_and_applied(category: Category, policy: str) -> None:
    """Each category has its own key; what cannot be is refused (SF-25)."""
    text = f"ws::addr=a;{category.option}={policy};"
    if category is Category.UNSUPPORTED and policy.startswith("retriable"):
        with pytest.raises(ConfigError, match="on_unsupported_error"):
            parse_connect_string(text).forward_config()
        return
    if category in QWP_FORCED and policy not in {"auto", "terminal"}:
        with pytest.raises(ConfigError, match=f"{category.option}={policy}: this always halts"):
            parse_connect_string(text).forward_config()
        policies = parse_connect_string(text.replace("ws", "lance", 1)).forward_config().limits
        assert policies.policies == {category: Policy(policy)}
        return
    policies = parse_connect_string(text).forward_config().limits.policies
    if category in QWP_FORCED:
        assert policies == {}
        return
    assert policies == ({} if policy == "auto" else {category: Policy(policy)})


def test_one_key_for_every_answer_of_a_server() -> None:
    """A category's own key goes before it; what was never sent keeps its own policy."""
    text = "ws::addr=a;on_server_error=drop;on_parse_error=terminal;"
    policies = parse_connect_string(text).forward_config().limits.policies
    assert policies[Category.PARSE_ERROR] is Policy.HALT
    assert policies[Category.SCHEMA_MISMATCH] is Policy.DROP
    assert Category.DAMAGED not in policies
    assert QWP_FORCED.isdisjoint(policies)


@pytest.mark.parametrize(
    ("category", "policy"),
    [
        (Category.SCHEMA_MISMATCH, Policy.DEAD_LETTER),
        (Category.PARSE_ERROR, Policy.HALT),
        (Category.INTERNAL_ERROR, Policy.HALT),
        (Category.SECURITY_ERROR, Policy.HALT),
        (Category.WRITE_ERROR, Policy.DEAD_LETTER),
        (Category.PROTOCOL_VIOLATION, Policy.HALT),
        (Category.UNKNOWN, Policy.HALT),
    ],
)
@pytest.mark.parametrize("on_disk", [True, False])
def test_qwp_does_what_section_14_says(category: Category, policy: Policy, on_disk: bool) -> None:
    """What it drops is kept as a dead letter where there is a folder (SF-37)."""
    text = "ws::addr=a;" + ("sf_dir=/d;" if on_disk else "")
    kept = policy is Policy.HALT or on_disk
    defaults = parse_connect_string(text).forward_config().limits.defaults
    assert defaults[category] is (policy if kept else Policy.DROP)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("addr=a", "must begin with one of ws::"),
        ("http::addr=a;", "must begin with one of ws::"),
        ("ws::", "must name a server"),
        ("ws::addr=;", "none of them empty"),
        ("ws::addr=a,,b;", "none of them empty"),
        ("ws::addr=a,b;addr=a;", "different hosts"),
        ("ws::addr=a;sf_dri=/d;", "did you mean 'sf_dir'"),
        ("ws::addr=a;frobnicate=1;", "unknown connect string key 'frobnicate'"),
        ("ws::addr=a;sf_dir;", "expected key=value"),
        ("ws::addr=a;sf_dir=;", "expected a value"),
        ("ws::addr=a;sf_dir=/d;sf_dir=/e;", "given twice"),
        ("ws::addr=a;sf_max_bytes=1k;sf_max_segment_bytes=1k;", "given twice"),
        ("ws::addr=a;sf_max_bytes=4q;", "expected a size"),
        ("ws::addr=a;sf_max_bytes=-1;", "expected a size"),
        ("ws::addr=a;sf_append_deadline_millis=soon;", "expected milliseconds"),
        ("ws::addr=a;sf_append_deadline_millis=-5;", "expected milliseconds"),
        ("ws::addr=a;request_durable_ack=perhaps;", "expected on or off"),
        ("ws::addr=a;sf_durability=always;", "memory, periodic, flush, append"),
        ("ws::addr=a;sender_id=a/b;sf_dir=/d;", "it names a folder"),
        ("ws::addr=a;sender_id=..;sf_dir=/d;", "it names a folder"),
        ("ws::addr=a;auto_flush_rows=many;", "a number of rows, or off"),
        ("ws::addr=a;error_inbox_capacity=3;", "at least 16"),
        ("ws::addr=a;username=u;", "belong together"),
        ("ws::addr=a;username=u;password=p;token=t;", "exclude each other"),
        ("ws::addr=a;tls_verify=on;", "need wss::"),
        ("wss::addr=a;tls_roots_password=p;", "belongs to tls_roots"),
        ("ws::addr=a;drain_orphans=on;", "needs sf_dir"),
        ("ws::addr=a;topic=t;", "does not apply to ws::"),
        ("lance::addr=a;request_durable_ack=on;", "does not apply to lance::"),
        ("ws::addr=a;on_schema_error=explode;", "expected one of"),
        ("lance::addr=a;compression=zstd;", "expected one of none, lz4, auto"),
        ("ws::addr=a\0b;", "NUL"),
    ],
)
def test_mistakes_are_named(text: str, words: str) -> None:
    """The key, the value and what to do (SF-28)."""
    with pytest.raises(ConfigError, match=words):
        parse_connect_string(text).forward_config()


@pytest.mark.parametrize("key", sorted(FOREIGN))
def test_keys_of_other_clients_are_accepted_with_a_warning(key: str) -> None:
    """A string that works elsewhere works here (SF-28)."""
    with pytest.warns(UserWarning, match=key):
        parse_connect_string(f"ws::addr=a;{key}=1;")


@pytest.mark.parametrize("how", ["none", "lz4", "auto"])
def test_compression_is_a_key_of_lwp(how: str) -> None:
    """The same name means something else to other clients, which speak QWP."""
    assert from_connect_string(f"lance::addr=a;compression={how};").compression == how


def test_a_semicolon_is_written_twice() -> None:
    """As in passwords."""
    assert parse_connect_string("ws::addr=a;token=a;;b=c;;;").get("token") == "a;b=c;"


def test_secrets_are_not_shown() -> None:
    """Not by repr, not in errors."""
    shown = repr(parse_connect_string("wss::addr=a;username=u;password=hush;"))
    assert "hush" not in shown
    assert "u" in shown


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but ConfigError comes out."""
    try:
        parse_connect_string("ws::addr=a;" + text)
    except (ConfigError, UserWarning):
        return


def test_asking_for_a_key_that_does_not_exist_is_a_mistake() -> None:
    """So that a typo in a program is not a default."""
    with pytest.raises(KeyError):
        parse_connect_string("ws::addr=a;").get("adr")


def test_an_lwp_string_names_topic_and_servers() -> None:
    """Host, token, and what becomes of missing topics."""
    settings = from_connect_string(
        "lance::addr=h:7,g;topic=a b;token=t;sf_dir=/d;on_missing_topic=create;max_in_flight=3;"
    )
    assert [str(each) for each in settings.url.endpoints] == ["h:7", "g:1992"]
    assert (settings.url.topic, settings.client.token) == ("a b", "t")
    assert settings.on_missing_topic == "create"
    assert settings.forward.limits.frames == 3
    assert settings.forward.journal.kind is SlotKind.LWP


def test_trusted_certificates_in_pem(tmp_path: Path) -> None:
    """And a file that holds none is named."""
    roots = tmp_path / "roots.pem"
    trustme.CA().cert_pem.write_to_path(str(roots))
    context = context_of(parse_connect_string(f"wss::addr=a;tls_roots={roots};"))
    assert context is not None
    assert len(context.get_ca_certs()) == 1
    roots.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"roots\.pem"):
        context_of(parse_connect_string(f"wss::addr=a;tls_roots={roots};"))


def test_trusted_certificates_under_a_password(tmp_path: Path) -> None:
    """A PKCS #12 trust store; a wrong password is told as such."""
    store = tmp_path / "roots.p12"
    authority = load_pem_x509_certificate(trustme.CA().cert_pem.bytes())
    content = pkcs12.serialize_key_and_certificates(
        None, None, None, [authority], BestAvailableEncryption(b"open")
    )
    store.write_bytes(content)
    text = f"wss::addr=a;tls_roots={store};tls_roots_password="
    context = context_of(parse_connect_string(f"{text}open;"))
    assert context is not None
    assert len(context.get_ca_certs()) == 1
    with pytest.raises(ConfigError, match=r"roots\.p12"):
        context_of(parse_connect_string(f"{text}wrong;"))


def test_certificates_may_go_unchecked_by_name() -> None:
    """Only on an explicit unsafe_off."""
    context = context_of(parse_connect_string("wss::addr=a;tls_verify=unsafe_off;"))
    assert context is not None
    assert not context.check_hostname
    assert context_of(parse_connect_string("ws::addr=a;")) is None
