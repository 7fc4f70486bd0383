"""One broker for all tests of a cluster; they are skipped where it cannot run."""

import os
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from tests.cluster.nodes import created

from lance_server.testing.kafka_brokers import KafkaCluster, brokers, lacks_broker

REQUIRED = bool(os.environ.get("LANCE_CLUSTER_REQUIRED"))


def lacking() -> str | None:
    """Return what tests of a cluster lack here, or None."""
    if find_spec("confluent_kafka") is None:
        return "the package confluent-kafka (extra 'cluster')"
    return lacks_broker()


class _Left(pytest.Module):
    """A module that is left out, with the reason."""

    def collect(self) -> Iterable[pytest.Item]:
        pytest.skip(f"a cluster needs {lacking()}", allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Leave out what cannot even be imported, and say why; fail instead where it is required."""
    missing = lacking()
    if missing is None or Path(__file__).parent not in module_path.parents:
        return None
    if REQUIRED:
        raise pytest.UsageError(f"a cluster needs {missing}")
    module: pytest.Module = _Left.from_parent(parent, path=module_path)
    return module


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One broker."""
    with brokers(tmp_path_factory.mktemp("kafka"), 1) as found:
        yield found


@pytest.fixture
def url(broker: KafkaCluster) -> str:
    """The address of a topic that does not exist yet."""
    return f"kafka://{broker.bootstrap()}/test-{uuid4().hex}"


@pytest.fixture
def cluster(url: str) -> str:
    """The address of the log of a new cluster."""
    return created(url)
