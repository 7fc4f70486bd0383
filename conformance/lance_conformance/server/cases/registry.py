"""The list of cases, filled by the modules of this package."""

from collections.abc import Mapping

from lance_conformance.engine.registry import Case, CaseRegistry
from lance_conformance.server.case_context import CaseContext
from lance_conformance.spec.clauses import clauses

__all__ = ["AREAS", "BOTH", "CASES", "Case", "case", "registered"]

BOTH = ("specified", "deployed")
SPECIFIED = ("specified",)
AREAS: Mapping[str, str] = {
    "axis": "Dialect axes",
    "hdr": "Header",
    "seg": "Segmentation",
    "crc": "Checksum",
    "kal": "Keepalive",
    "ing": "Ingest and Ack",
    "top": "Topics",
    "name": "Topic names",
    "part": "Partitioned topics",
    "ctl": "Control payloads",
    "ret": "Retention",
    "fet": "Fetch",
    "ord": "Order of answers",
    "tlv": "Records",
    "lz4": "Compression",
    "big": "Large frames",
    "pipe": "Pipelines",
    "fuzz": "Random stimuli",
    "sub": "Subscribe and push",
    "com": "CommitOffset",
    "time": "Offset for time",
    "grp": "Consumer groups",
    "err": "Errors and bulkheads",
    "log": "Log semantics",
    "clu": "Cluster",
    "auth": "Tokens",
    "tls": "TLS and certificates",
    "crowd": "Many and slow peers",
    "pos": "Position: late frames",
    "size": "Size: large frames",
    "width": "Width: large numbers",
    "num": "Number: many of each",
    "rep": "Repetition: asked again",
    "mix": "Interleaving: several at once",
    "wait": "Time: idle and slow peers",
    "vol": "Amount: large logs",
    "each": "Each kind of frame",
    "any": "Anything in any order",
}
CASES: CaseRegistry[CaseContext] = CaseRegistry(CaseContext, AREAS, clauses, BOTH)
case = CASES.case
registered = CASES.registered
