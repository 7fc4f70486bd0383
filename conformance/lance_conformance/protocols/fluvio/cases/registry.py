"""The list of cases, filled by the modules of this package."""

from collections.abc import Mapping

from lance_conformance.protocols.fluvio.clauses import clauses
from lance_conformance.protocols.fluvio.dialogue import DIALECT, Dialogue
from lance_conformance.protocols.questions import Questions

AREAS: Mapping[str, str] = {
    "fl-frame": "Frames and headers",
    "fl-version": "Versions",
    "fl-watch": "Watches",
    "fl-topic": "Topics",
    "fl-produce": "Produce",
    "fl-batch": "Batches",
    "fl-offset": "Offsets",
    "fl-stream": "Streams",
    "fl-commit": "Consumer offsets",
    "fl-record": "Records",
}
QUESTIONS: Questions[Dialogue] = Questions(Dialogue, AREAS, clauses, (DIALECT,))
case = QUESTIONS.case
