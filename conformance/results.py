"""``python conformance/results.py``: asks this project's server everything and writes it down.

The tables of the page about conformance results are these files, made from runs and committed.

    python conformance/results.py --source PROGRAM --external "NAME=HOST:PORT --token-file FILE"

asks a server of others, which runs already, and writes ``published.inc``, or ``NAME.inc`` with
``--table NAME``, with a judgement on each clause that was not kept (``judgements.toml``).
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from external import External, record
from lance_server.testing.process import ServerProcess

HERE = Path(__file__).parents[1] / "docs" / "_results"
KIT = [sys.executable, "-m", "lance_conformance"]
EASY = ["--timeout-scale", "3", "-q"]
"""A table is about rules, not about how busy the machine was."""
TOKEN = "a-token-for-the-kit"


@dataclass(frozen=True)
class Trial:
    """One column of a table.

    Attributes:
        name: How it is called there.
        server: Options of the server.
        kit: Options of the kit.
        place: Which of the server's listeners to ask; its own by default.
    """

    name: str
    server: tuple[str, ...]
    kit: tuple[str, ...]
    place: str = ""


def _lwp(folder: Path) -> Iterator[Trial]:
    for dialect in ("specified", "deployed"):
        yield Trial(dialect, ("--dialect", dialect), ("--dialect", dialect))
    yield Trial("auto", (), ())
    (folder / "token").write_text(TOKEN)
    token = ("--token-file", str(folder / "token"))
    yield Trial("token for all", ("--auth-token-file", token[1]), token)
    writing = ("--auth-token-file", token[1], "--auth-write-only")
    yield Trial("token to write", writing, (*token, "--token-mode", "write-only"))
    yield Trial("mutual TLS", *_certificates(folder))


def _certificates(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    authority = trustme.CA()
    ca, kit = str(folder / "ca.pem"), str(folder / "kit.pem")
    authority.cert_pem.write_to_path(ca)
    authority.issue_cert("kit.example").private_key_and_cert_chain_pem.write_to_path(kit)
    server = authority.issue_cert("127.0.0.1")
    server.private_key_pem.write_to_path(str(folder / "server.key"))
    server.cert_chain_pems[0].write_to_path(str(folder / "server.pem"))
    files = ("--tls-cert-path", str(folder / "server.pem"), "--tls-key-path")
    demanded = ("--tls-client-ca-path", ca, "--tls-require-client-cert")
    options = (*files, str(folder / "server.key"), *demanded)
    return options, ("--tls", "--ca", ca, "--cert", kit)


def _rustlog(_: Path) -> Iterator[Trial]:
    for dialect, setting in (("both", "auto"), ("binary", "binary"), ("json", "json")):
        server = ("--rustlog", "127.0.0.1:0", "--rustlog-dialect", setting)
        yield Trial(dialect, server, ("--protocol", "rustlog", "--dialect", dialect), "rustlog")


def _fluvio(_: Path) -> Iterator[Trial]:
    server = ("--fluvio-sc", "127.0.0.1:0", "--fluvio-spu", "127.0.0.1:0")
    yield Trial("lance-server", server, ("--protocol", "fluvio"), "fluvio-sc")


@contextmanager
def _target(trial: Trial) -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory(prefix="lance-results-") as data,
        ServerProcess.running(Path(data, "data"), *trial.server) as server,
    ):
        host, port = server.others[trial.place] if trial.place else server.address
        yield f"{host}:{port}"


def _asked(trial: Trial, run: Path) -> None:
    with _target(trial) as target:
        command = [*KIT, "--target", target, *trial.kit, "--jsonl", str(run), *EASY]
        code = subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode
    print(f"{trial.name}: exit code {code}")


def main() -> None:
    """Make the tables that are named on the command line, or every one; or that of others."""
    tables = {"lwp": _lwp, "rustlog": _rustlog, "fluvio": _fluvio}
    parser = argparse.ArgumentParser(description="Make the tables of the results page.")
    parser.add_argument("tables", nargs="*", help=f"of this project's server: {', '.join(tables)}")
    parser.add_argument(
        "--external",
        action="append",
        metavar="NAME=WHERE",
        help="a server, HOST:PORT with options of the kit behind, or a run file",
    )
    parser.add_argument("--source", help="which program it is, and which version")
    parser.add_argument(
        "--table", default="published", help="the file of its table is docs/_results/TABLE.inc"
    )
    given = parser.parse_args()
    if given.external:
        if not given.source:
            parser.error("--external needs --source: say which program it is, and which version")
        record(
            [External.read(e) for e in given.external], given.source, HERE / f"{given.table}.inc"
        )
        return
    for table in given.tables or tables:
        trials = tables[table]
        with tempfile.TemporaryDirectory(prefix="lance-results-") as name:
            folder = Path(name)
            named = []
            for number, trial in enumerate(trials(folder)):
                run = folder / f"{number}.jsonl"
                _asked(trial, run)
                named.append(f"{trial.name}={run}")
            page = subprocess.run(
                [*KIT, "matrix", *named, "--rst"], check=True, capture_output=True, text=True
            ).stdout
        (HERE / f"{table}.inc").write_text(page)


if __name__ == "__main__":
    main()
