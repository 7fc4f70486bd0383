"""``lwp bridge``: topics copied between systems, with nothing lost on the way."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import trustme

from lance_sdk import Client, Consumer, Producer
from lance_sdk.cli._app import run
from lance_sdk.fluvio import FluvioClient
from lance_sdk.rustlog import RustlogClient
from lance_server.security.tls import TlsConfig

from .conftest import every_protocol
from .urls import Urls

START_MS = 1_700_000_000_000
SYSTEMS = ("lance", "fluvio", "rustlog")


def bridge(*arguments: str) -> int:
    """Run the command in this process; return its exit code."""
    return run(["bridge", *arguments])


@pytest.mark.parametrize("source", SYSTEMS)
@pytest.mark.parametrize("target", SYSTEMS)
def test_every_system_is_copied_to_every_other(
    urls: Urls, tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, target: str
) -> None:
    """All records arrive in order; a second run copies only what came since."""
    ends = urls.of(source, "from"), urls.of(target, "to")
    state = ("--state", str(tmp_path / "state"))
    urls.fill("from", b"a", b"", b"c" * 100_000)
    assert bridge(*ends, "--create-topic", *state) == 0
    assert "copied 3 records" in capsys.readouterr().err
    urls.fill("from", b"d")
    assert bridge(*ends, *state, "--json") == 0
    assert json.loads(capsys.readouterr().out)["records"] == 1
    assert urls.bodies("to") == [b"a", b"", b"c" * 100_000, b"d"]
    assert bridge(*ends, *state, "--json") == 0
    assert json.loads(capsys.readouterr().out)["records"] == 0


def test_keys_and_times_come_from_fluvio(urls: Urls) -> None:
    """A record with both is one in the log too."""
    with FluvioClient(urls.fluvio, compression="zstd") as client:
        client.create_topic("from")
        with client.producer("from") as producer:
            producer.send(b"a", key=b"k", timestamp_ms=START_MS)
            producer.send(b"b", timestamp_ms=-1)
    assert bridge(urls.of("fluvio", "from"), urls.of("lance", "to"), "--create-topic", "-q") == 0
    assert urls.read("to") == [(b"k", START_MS * 1_000_000, b"a"), (None, None, b"b")]


def test_keys_and_times_go_to_fluvio(urls: Urls) -> None:
    """Times are cut to milliseconds; other types arrive as their bytes."""
    with Producer(f"{urls.lwp}/from", create_topic=True) as producer:
        producer.send(b"keyed", key=b"key", timestamp=START_MS * 1_000_000 + 5)
        producer.send({"a": 1}, record_type=2)
    target = urls.of("fluvio", "to?compression=zstd")
    assert bridge(urls.of("lance", "from"), target, "--create-topic", "-q") == 0
    with FluvioClient(urls.fluvio) as client, client.consumer("to", stop_at_end=True) as consumer:
        keyed, other = consumer
    assert (keyed.key, keyed.timestamp_ms, keyed.value) == (b"key", START_MS, b"keyed")
    assert (other.key, json.loads(other.value)) == (None, {"a": 1})


def test_rustlog_takes_neither_keys_nor_times(urls: Urls) -> None:
    """What arrives there is the body alone."""
    with Producer(f"{urls.lwp}/from", create_topic=True) as producer:
        producer.send(b"keyed", key=b"key", timestamp=START_MS * 1_000_000)
    assert bridge(urls.of("lance", "from"), urls.of("rustlog", "to"), "--create-topic", "-q") == 0
    with RustlogClient(urls.rustlog) as client:
        assert [each.value for each in client.records("to")] == [b"keyed"]


def test_json_is_spoken_on_request(urls: Urls) -> None:
    """Both ends of a bridge may speak what RustLog's specification says."""
    urls.fill("from", b"a", bytes(range(256)))
    urls.fill("to")
    with RustlogClient(urls.rustlog) as client:
        client.create_topic("there")
    ends = (urls.of("rustlog", f"{topic}?dialect=json") for topic in ("from", "there"))
    assert bridge(*ends, "-q") == 0
    assert urls.bodies("there") == [b"a", bytes(range(256))]


@pytest.mark.parametrize("source", ["fluvio", "rustlog"])
@pytest.mark.parametrize("target", SYSTEMS)
def test_each_partition_goes_to_its_own(
    urls: Urls, tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, target: str
) -> None:
    """By their numbers; one that comes later is copied from its beginning."""
    ends = urls.of(source, "wide"), urls.of(target, "there")
    state = ("--state", str(tmp_path / "state"), "--create-topic", "--json")
    urls.partitions("wide", 3)
    assert bridge(*ends, *state) == 0
    assert list(json.loads(capsys.readouterr().out)["places"]) == ["0", "1", "2"]
    names = ("there", "there.1", "there.2")
    assert [urls.bodies(each) for each in names] == [[b"of 0"], [b"of 1"], [b"of 2"]]
    urls.fill("wide.1", b"more")
    assert bridge(*ends, *state) == 0
    assert [urls.bodies(each) for each in names] == [[b"of 0"], [b"of 1", b"more"], [b"of 2"]]


@pytest.mark.parametrize("target", ["lance", "fluvio", "rustlog"])
def test_partitions_of_a_partitioned_topic_go_to_their_own(urls: Urls, target: str) -> None:
    """AMB-59: of LWP, to one of the same kind."""
    with Client(urls.lwp) as client:
        for name in ("from", "to"):
            client.create_topic(name, partitions=3)
    for index in range(3):
        urls.fill(f"from-{index}", b"of %d" % index)
    assert bridge(urls.of("lance", "from"), urls.of(target, "to"), "-q") == 0
    assert [urls.bodies(f"to-{index}") for index in range(3)] == [[b"of 0"], [b"of 1"], [b"of 2"]]


@pytest.mark.parametrize("system", ["fluvio", "rustlog"])
def test_a_named_partition_goes_alone(
    urls: Urls, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    """To the one that the target names; where there is none, that is said."""
    urls.partitions("wide", 3)
    source, target = urls.of(system, "wide"), urls.of(system, "other")
    assert bridge(f"{source}?partition=2", f"{target}?partition=1", "--create-topic", "-q") == 0
    assert (urls.bodies("other"), urls.bodies("other.1")) == ([], [b"of 2"])
    assert bridge(source, target) != 0
    assert "partition=2" in capsys.readouterr().err


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_topic_that_was_made_anew_is_not_gone_on_with(
    urls: Urls, tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    """A place of the old topic means nothing in the new one, whether it is there or not."""
    ends = urls.of(system, "from"), urls.of("lance", "to")
    state = ("--state", str(tmp_path / "state"))
    urls.fill("from", b"a", b"b")
    assert bridge(*ends, "--create-topic", *state, "-q") == 0
    urls.delete("from")
    urls.fill("from", b"a")
    assert bridge(*ends, *state) == 1
    assert "the state" in capsys.readouterr().err
    urls.fill("from", b"c")
    assert bridge(*ends, *state) == 1
    assert "was made again; remove the state file" in capsys.readouterr().err
    assert urls.bodies("to") == [b"a", b"b"]


def test_a_record_that_does_not_fit_is_named(
    urls: Urls, capsys: pytest.CaptureFixture[str]
) -> None:
    """RustLog's frames end at 10 MiB."""
    urls.fill("from", b"a", bytes(11 * 1024 * 1024))
    assert bridge(urls.of("fluvio", "from"), urls.of("rustlog", "to"), "--create-topic") == 1
    assert "the record at offset 1 of the source" in capsys.readouterr().err
    assert urls.bodies("to") == [b"a"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("orders", "lance://a/b"), "begins with one of lance://"),
        (("kafka://host/orders", "lance://a/b"), "begins with one of lance://"),
        (("fluvio://host:9003", "lance://a/b"), "expected fluvio://HOST:PORT/TOPIC"),
        (("fluvio://host:9003/t?partition=x", "lance://a/b"), "'x' is not a number"),
        (("rustlog://host:9092/t?sort=up", "lance://a/b"), "unknown key 'sort'"),
        (("fluvio://host:nine/t", "lance://a/b"), "is not an address"),
        (("rustlog://[::1/t", "lance://a/b"), "Invalid IPv6 URL"),
        (("rustlog://me@host/t", "lance://a/b"), "no users or passwords"),
        (("rustlog://host/t?dialect=xml", "lance://a/b"), "'binary' or 'json'"),
        (("fluvio://host/t?compression=rar", "lance://a/b"), "expected one of none"),
        (("lance://a/b", "lance://a/b"), "would be doubled"),
        (("fluvio://a/b", "rustlog://a/b", "--tls-server-name", "x"), "is for lances://"),
    ],
)
def test_what_cannot_work_is_said(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    """Nothing is connected, and the line says why."""
    assert bridge(*arguments) == 2
    assert complaint in capsys.readouterr().err


def test_every_system_is_reached_with_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whom to trust holds for all of them; nobody is trusted unasked."""
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    ca, cert, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    authority.cert_pem.write_to_path(str(ca))
    own.private_key_pem.write_to_path(str(key))
    own.cert_chain_pems[0].write_to_path(str(cert))
    tls = TlsConfig(cert_path=cert, key_path=key)
    with every_protocol(tmp_path / "data", tls=tls) as plain:
        urls = replace(plain, secure="s")
        with Producer(urls.of("lance", "one"), create_topic=True, tls_ca=ca) as producer:
            producer.send(b"a")
        way = [("lance", "one"), ("rustlog", "two"), ("fluvio", "three"), ("lance", "four")]
        for source, target in pairwise(urls.of(*each) for each in way):
            assert bridge(source, target, "--create-topic", "--tls-ca", str(ca), "-q") == 0
            assert bridge(source, target) != 0
            assert "certificate is not accepted" in capsys.readouterr().err
        last = urls.of("lance", "four")
        with Consumer(last, start="beginning", stop_at_end=True, tls_ca=ca) as consumer:
            assert [each.body for each in consumer] == [b"a"]


def test_tls_is_for_the_end_that_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files for TLS that no end uses are a mistake; a broken one is named."""
    file = tmp_path / "ca.pem"
    file.write_text("nonsense")
    ca = ("--tls-ca", str(file))
    assert bridge("fluvio://a/b", "rustlog://a/b", *ca) == 2
    assert "fluvio://a/b has none" in capsys.readouterr().err
    assert bridge("fluvio://a/b", "rustlogs://a/b", *ca) == 2
    assert f"tls_ca={file}" in capsys.readouterr().err
