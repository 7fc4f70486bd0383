"""A Kafka broker on this machine: one node in KRaft mode, from the jars that Maven copied."""

import os
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from bench.brokers.broker import free_port, located
from bench.brokers.child import running

_MEMORY = "-Xmx512m"
_READY = "Kafka Server started"


def jars() -> Path | None:
    """Return the folder with the broker's jars, or None where they were not installed.

    The environment variable ``LANCE_KAFKA_JARS`` names it.
    """
    folder = os.environ.get("LANCE_KAFKA_JARS", "")
    return Path(folder) if folder and any(Path(folder).glob("kafka_*.jar")) else None


def lacks_broker() -> str | None:
    """Return what a broker would need here, or None."""
    if located("java") is None:
        return "java"
    return None if jars() else "jars of Kafka (bench/brokers/kafka_jars/install.sh)"


def properties(folder: Path, port: int, controller_port: int) -> Mapping[str, str]:
    """Return the settings of a single broker.

    Args:
        folder: where it keeps its logs.
        port: of 127.0.0.1, for clients.
        controller_port: of 127.0.0.1, for itself.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }


@contextmanager
def broker(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[int]:
    """Run a broker with its logs in a folder, and yield its port.

    Args:
        folder: for its logs and settings; it is made.
        more: settings beside `properties`.

    Raises:
        OSError: Java is not there.
        RuntimeError: the broker ended before it was ready.
        subprocess.CalledProcessError: its folder could not be prepared.
    """
    folder_of_jars = jars()
    assert folder_of_jars is not None, "see `lacks_broker`"
    port = free_port()
    folder.mkdir(exist_ok=True)
    settings = folder / "server.properties"
    pairs = {**properties(folder, port, free_port()), **(more or {})}
    settings.write_text("".join(f"{name}={value}\n" for name, value in pairs.items()))
    java = ["java", _MEMORY, "-cp", f"{folder_of_jars}/*"]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", _cluster_id(), "-c", str(settings)],
        check=True,
        capture_output=True,
    )
    with running([*java, "kafka.Kafka", str(settings)], ready=_READY):
        yield port


def _cluster_id() -> str:
    """Return the option with a random id as Kafka wants it: 16 bytes in URL-safe base64."""
    made = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
    return f"--cluster-id={made}"  # one argument: an id may begin with a dash
