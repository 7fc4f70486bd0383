"""A node of a cluster for each test."""

import pytest
from tests.simulation.cluster.alone import Node


@pytest.fixture
def node() -> Node:
    """A new node."""
    return Node()
