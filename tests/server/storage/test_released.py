"""Data directories that released servers left: each opens, with all that was acknowledged.

They were made by release 0.1.0, in each of its durabilities, stopped cleanly or killed: thirty
batches in topic 1, ten in topic 3, topic 2 deleted, and an offset committed by consumer 42.
"""

import tarfile
from pathlib import Path

import pytest

from lance_server.embedded import running
from lance_server.offline.verifying import verify
from lance_server.testing import RawClient
from lance_spec.enums import Command, ErrorCode
from lance_spec.messages.lwp import Subscribe, SubscribeAck
from lance_spec.records import encode_records

FOLDER = Path(__file__).with_name("released")
ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))
NONCE = 7 << 40
ORDERS = [[b"order %d" % number, b"x" * (number * 7)] for number in range(30)]
METRICS = [[b"metric %d" % number] for number in range(0, 30, 3)]


def whole(batches: list[list[bytes]]) -> bytes:
    """Return what a topic with these batches holds."""
    return b"".join(encode_records(values) for values in batches)


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data directory as a released server left it."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "data"


def test_there_is_a_directory_of_each_durability_and_stop() -> None:
    """Nothing is asked of an archive that is not there."""
    names = {path.name.removesuffix(".tar.xz") for path in ARCHIVES}
    modes = ("fsync", "os", "wal")
    assert names >= {f"0.1.0-{mode}-{stop}" for mode in modes for stop in ("clean", "crashed")}


@pytest.mark.parametrize("durability", ["auto", "fsync", "os", "wal"])
def test_everything_is_read_at_its_offset(left: Path, durability: str) -> None:
    """With whatever durability the server of today runs, also after it was stopped again."""
    for _ in range(2):
        with running(left, durability=durability) as server, RawClient(server.address) as client:
            assert server.report.findings == []
            assert client.read_all(topic_id=1) == whole(ORDERS)
            assert client.read_all(topic_id=3) == whole(METRICS)
            gone = client.error(client.ask(Command.GET_TOPIC, (2).to_bytes(4, "little")))
            assert gone.code is ErrorCode.TOPIC_DELETED


def test_it_goes_on_where_it_ended(left: Path) -> None:
    """New batches follow, a repeated one is known, ids rise, and commits are kept."""
    with running(left) as server, RawClient(server.address) as client:
        client.store(ORDERS[-1], batch_id=NONCE + 30, topic_id=1)
        assert client.read_all(topic_id=1) == whole(ORDERS)
        client.store([b"new"], batch_id=NONCE + 1000, topic_id=3)
        assert client.read_all(topic_id=3) == whole([*METRICS, [b"new"]])
        assert client.create_topic("next") == 4
        answer = client.ask(Command.SUBSCRIBE, Subscribe(1, 0, 1000, 42).encode())
        assert SubscribeAck.decode(answer.payload).offset == 100


def test_the_offline_check_finds_nothing_after_a_start(left: Path) -> None:
    """What recovery leaves is as it should be."""
    with running(left):
        pass
    assert verify(left).findings == []
