"""Every curve there is."""

from bench.curves import clients, fetch, ingest, local, start
from bench.curves.curve import Curve

CURVES: tuple[Curve, ...] = (
    *ingest.CURVES,
    *fetch.CURVES,
    *start.CURVES,
    *clients.CURVES,
    *local.CURVES,
)
