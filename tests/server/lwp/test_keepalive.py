"""The gate that keeps keepalives from becoming a storm (AMB-23)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lance_server.lwp.flow_control.heartbeat import KeepaliveGate


def test_a_gate_fills_up_again() -> None:
    """A quiet minute allows sixty more."""
    gate = KeepaliveGate(0.0, burst=100)
    assert sum(gate.admit(0.0) for _ in range(150)) == 100
    assert gate.deferred == 50
    assert gate.due(60.0) == 50
    assert sum(gate.admit(60.0) for _ in range(150)) == 10


def test_a_late_keepalive_is_answered_before_later_ones() -> None:
    """Whoever waits is next, also when there is room for one again."""
    gate = KeepaliveGate(0.0, burst=1)
    assert gate.admit(0.0)
    assert not gate.admit(0.0)
    assert not gate.admit(1.0)
    assert gate.due(1.0) == 1


@settings(deadline=None)
@given(st.lists(st.floats(0, 3), max_size=200))
def test_every_keepalive_is_answered_at_last(pauses: list[float]) -> None:
    """Admitted or deferred, none is lost, and never more than one a second beyond the burst."""
    now, gate = 0.0, KeepaliveGate(0.0, burst=5)
    answered = 0
    for pause in pauses:
        now += pause
        answered += gate.due(now)
        answered += gate.admit(now)
        assert answered <= 5 + now + 1e-6
    assert answered + gate.deferred == len(pauses)
