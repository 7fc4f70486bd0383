"""A class name has one meaning in a package, and a private term has a written reason.

The page on the design has the reasons for what is listed here.
"""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "spec/lance_spec",
    "sdk/lance_sdk",
    "reference_server/lance_server",
    "conformance/lance_conformance",
)
DESIGN = " ".join((ROOT / "docs" / "design.rst").read_text().split())
SHARED = {
    "Each protocol's documents have names of their own.": {
        "spec": "ErrorCode",
        "sdk": "StoredRecords",
        "reference_server": "Commit",
        "conformance": "Batch Fetched Partition Record Topic",
    },
    "A type exists as declaration, as data and as codec.": {
        "spec": "BitPerValue Blob Choice Each Elements Filled Many Maybe Nested Nulls PerValue "
        "Sections Sized Slices Timestamps Varint",
    },
    "Each protocol has the same roles.": {
        "sdk": "Ask Pause Wire",
        "reference_server": "Connection Rule Service Session",
    },
    "Each kit has the same parts.": {
        "conformance": "CaseContext Client Connection Cursor Decoder Deployed Driver Findings "
        "Framing Memory NeverCloses Peer Refused Reply Session Specified Subscription "
        "UnreadableError",
    },
    "An interface has the name of what implements it.": {
        "sdk": "Latch",
        "conformance": "FrameFormatter Mutant",
    },
    "Public names keep their name.": {"sdk": "DeadLetter Segment"},
}
"""Class names that stand more than once in a package, by the reason that the design page gives."""
PRIVATE = re.compile(
    "_?(Account|Announcer|Asking|Carrier|Course|Crowd|Detour|Dialogue|Dice|Duel|Errand|Eye|Face"
    "|Feed|Floor|Guard|Handover|Hearing|Judge|Keeper|Lane|Link|Misfits|Pace|Patience|Pen|Picture"
    "|Place|Play|Proof|Pulse|Pump|Resting|Scene|Share|Sighting|Silence|Skills|Slip|Spot"
    "|Stage|Stamper|Supply|Suspicion|Talk|Telling|Trouble|Verdict|Wishes)"
)
"""Words that said one thing here, and another one or nothing elsewhere."""


@cache
def classes(package: str) -> dict[str, list[str]]:
    """Return the modules of each class of a package, by its name; generated messages left out."""
    found = defaultdict(list)
    for path in sorted((ROOT / package).rglob("*.py")):
        if "messages" not in path.parts:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_a_class_name_has_one_meaning_in_a_package(package: str) -> None:
    """A name that stands twice has a reason, and a reason has its name."""
    twice = {
        name
        for name, places in classes(package).items()
        if len(places) > 1 and not name.startswith("_")
    }
    listed = [names.get(package.partition("/")[0], "").split() for names in SHARED.values()]
    assert twice == {name for names in listed for name in names}


@pytest.mark.parametrize("reason", SHARED)
def test_the_design_page_gives_the_reason(reason: str) -> None:
    """It stands in its section on names with two meanings."""
    assert f"**{reason}**" in DESIGN


@pytest.mark.parametrize("package", PACKAGES)
def test_a_private_term_has_a_line_on_the_design_page(package: str) -> None:
    """A class has the field's name for what it is, or the page says why not."""
    private = [name for name in classes(package) if PRIVATE.fullmatch(name)]
    assert [name for name in private if f"``{name}``" not in DESIGN] == []
