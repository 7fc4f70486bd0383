"""What the published client does, one by one, with our listener and with a real cluster."""

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest

from lance_server.testing import ServerProcess
from lance_spec import ambiguities

from .cluster import Cluster
from .conftest import OPTIONS
from .operations import Refused, answers

COUNT: Final = 85
EXPLAINED: Final = {
    "create ''": "FLV-02",
    "create for gzip": "FLV-02",
    "produce 20 MiB": "FLV-02",
    "produce lz4 to a topic of gzip": "FLV-02",
}
"""Operations whose answers differ, and the row of the register that says why."""


class Answers(NamedTuple):
    """What an operation returned on both sides, and what refusals have to match."""

    cluster: Any
    listener: Any
    refused: str | None

    @property
    def equal(self) -> bool:
        """Whether both say the same, or refuse for the same reason in words of their own."""
        if self.refused is None or not self._are_refusals:
            return bool(self.cluster == self.listener)
        return all(re.search(self.refused, each.text) for each in (self.cluster, self.listener))

    @property
    def _are_refusals(self) -> bool:
        return isinstance(self.cluster, Refused) and isinstance(self.listener, Refused)


@pytest.fixture(scope="module")
def both(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Answers]:
    """Return what each operation came to."""
    data = tmp_path_factory.mktemp("operations") / "data"
    own = f"t{uuid.uuid4().hex[:12]}"
    there = answers(cluster.sc, own)
    with ServerProcess.running(data, *OPTIONS) as server:
        here = answers("{}:{}".format(*server.others["fluvio-sc"]), own)
    return {name: Answers(there[name][0], *here[name]) for name in there if name in here}


def test_every_operation_is_done(both: Mapping[str, Answers]) -> None:
    """None is left out because one before it took too long."""
    assert len(both) == COUNT


def test_answers_differ_where_the_register_says_why(both: Mapping[str, Answers]) -> None:
    """Everything else is equal: offsets, order, partitions, names, lists and refusals."""
    differing = {name: each for name, each in both.items() if not each.equal}
    assert set(differing) == set(EXPLAINED), differing
    assert len(both) - len(differing) >= 80


def test_the_register_has_the_reasons() -> None:
    """Each row that is named is there and speaks of what the listener does."""
    for row in EXPLAINED.values():
        assert "Our listener" in ambiguities.find(row).choice
