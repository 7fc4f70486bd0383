"""A server behind TLS and tokens: every way to read and write goes through both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trustme

from lance_sdk.errors import AuthenticationFailed, ConnectFailed
from lance_sdk.spark.options import Options
from lance_sdk.spark.writing import sinks
from lance_server import running
from lance_server.security.tls import TlsConfig
from lance_server.security.tokens import AuthConfig

VALUES = [b"%04d" % number for number in range(200)]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The options that lead to a server which wants a certificate and a token."""
    authority = trustme.CA()
    certs = {}
    for name in ("server", "client"):
        issued = authority.issue_cert("127.0.0.1", common_name=name)
        certs[name] = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        issued.cert_chain_pems[0].write_to_path(certs[name][0])
        issued.private_key_pem.write_to_path(certs[name][1])
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    cert, key = certs["server"]
    tls = TlsConfig(cert_path=cert, key_path=key, client_ca_path=ca, require_client_cert=True)
    with running(tmp_path / "data", tls=tls, auth=AuthConfig(tokens=("s3cret-word",))) as server:
        cert, key = certs["client"]
        yield {
            "servers": server.url.replace("lance://", "lances://"),
            "dialect": "specified",
            "tlsCa": str(ca),
            "tlsCert": str(cert),
            "tlsKey": str(key),
            "token": "s3cret-word",
        }


@pytest.mark.parametrize("semantics", ["at-least-once", "exactly-once"])
def test_records_go_in_and_come_out(
    reader: Any, secured: dict[str, str], tmp_path: Path, semantics: str
) -> None:
    """Both sinks write, and batch queries read in splits that travel."""
    once = {"txnId": "may", "ledgerPath": str(tmp_path / "ledger")}
    said = {**secured, **once, "topic": "orders", "createTopic": "true", "semantics": semantics}
    sink = sinks.batch_sink(Options.parse(said), ["value"], overwrite=False)
    rows = pa.RecordBatch.from_pydict({"value": VALUES})
    sink.commit([sink.write(iter([rows]), sinks.Task())], 0)
    assert reader.values(**secured, topic="orders", minPartitions="2") == VALUES


@pytest.mark.parametrize(
    ("changed", "error"),
    [({"token": "wrong"}, AuthenticationFailed), ({"tlsCa": "/nowhere.pem"}, ConnectFailed)],
)
def test_who_may_not_come_in_is_told(
    reader: Any, secured: dict[str, str], changed: dict[str, str], error: type[Exception]
) -> None:
    """At once, by what is wrong."""
    with pytest.raises(error):
        reader.values(**{**secured, **changed}, topic="orders")
