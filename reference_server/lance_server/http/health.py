"""Whether the server is alive, ready, started (design section 10.6)."""

from lance_server.http.http_messages import Response, as_json
from lance_server.lwp.service import Service
from lance_server.runtime.circuit_breaker import CircuitState
from lance_server.runtime.memory_quota import MemoryLevel


def live() -> Response:
    """Answer the liveness probe: whoever answers is alive."""
    return as_json(200, {"live": True})


def started() -> Response:
    """Answer the startup probe: this port is opened once the log is."""
    return as_json(200, {"started": True})


def ready(service: Service) -> Response:
    """Answer the readiness probe: whether batches are stored now, and if not, why."""
    reasons, doubt = unready_reasons(service), service.engine.expiry.doubt
    warnings = [f"{doubt}; nothing expires by age"] if doubt else []
    body = {"ready": not reasons, "reasons": reasons, "warnings": warnings}
    return as_json(503 if reasons else 200, body)


def unready_reasons(service: Service) -> list[str]:
    """Return why batches are not stored now."""
    reasons = []
    if service.stopping:
        reasons.append("the server is stopping")
    if service.disk.lost is not None:
        reasons.append(service.disk.lost)
    if service.stall.reason is not None:
        reasons.append(service.stall.reason)
    if service.disk.breaker.state is CircuitState.OPEN:
        reasons.append(
            "the disk failed repeatedly, or its circuit was opened by hand; writes are refused"
        )
    reasons += service.more_reasons()
    if service.memory.level is MemoryLevel.CRITICAL:
        reasons.append("memory is short; batches are refused for now")
    return reasons + service.engine.unready_reasons()
