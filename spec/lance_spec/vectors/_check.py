"""Whether the vectors are well formed, and every faulty one has exactly its fault."""

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from lance_spec import ambiguities
from lance_spec.vectors import FAMILIES, Vector, Vectors, _cases, read
from lance_spec.vectors._faults import CHECKSUMS, derive


def check(folder: Path, names: Sequence[str] = FAMILIES) -> list[str]:
    """Return what is wrong with the vectors in a folder, one sentence each.

    Needs ``jsonschema``, which the ``test`` extra brings.

    Args:
        folder: where the files are.
        names: the families to check.

    Raises:
        ModuleNotFoundError: ``jsonschema`` is not installed.
    """
    problems: list[str] = []
    families: list[Vectors] = []
    for family in names:
        found = list(_schema_problems(folder, family))
        problems += [f"{family}.json: {problem}" for problem in found]
        if not found:
            families.append(read(folder / f"{family}.json"))
    for each in families:
        problems += [f"{each.family}.json: {problem}" for problem in _problems(each)]
    problems += _server_case_problems(folder) if tuple(names) == FAMILIES else []
    return [*problems, *_repeated_ids(families)]


def _server_case_problems(folder: Path) -> list[str]:
    found = list(_schema_problems(folder, "server_case")) or list(_cases.problems(folder))
    return [f"{_cases.FILE}: {problem}" for problem in found]


def _schema_problems(folder: Path, family: str) -> Iterator[str]:
    """Hold a file against its schema."""
    try:
        document = json.loads((folder / f"{family}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        yield f"cannot be read: {error}"
        return
    for fault in _validator(folder, family).iter_errors(document):
        yield f"{fault.json_path}: {fault.message[:200]}"


def _validator(folder: Path, family: str) -> Any:
    """Return what judges a family's file; only here are jsonschema and its parts needed."""
    jsonschema: Any = import_module("jsonschema")
    referencing: Any = import_module("referencing")
    schemas = [json.loads(path.read_text()) for path in (folder / "schema").glob("*.json")]
    resources = [(each["$id"], referencing.Resource.from_contents(each)) for each in schemas]
    registry = referencing.Registry().with_resources(resources)
    schema = {"$ref": f"{family}_v1.schema.json"}
    return jsonschema.Draft202012Validator(schema, registry=registry)


def _problems(vectors: Vectors) -> Iterator[str]:
    """Check what a schema cannot say."""
    stated = vectors.document["numberOfTests"]
    if stated != len(vectors.tests):
        yield f"numberOfTests is {stated}, there are {len(vectors.tests)}"
    yield from _flag_problems(vectors)
    by_id = {vector.id: vector for vector in vectors}
    rows = {row.id for row in ambiguities.load()}
    for vector in vectors:
        for row in _cited(vector):
            if row not in rows:
                yield f"{vector.id}: {row} is not a row of the ambiguity register"
        if "pairOf" in vector.test:
            yield from _pair_problems(vector, by_id.get(vector.test["pairOf"]))


def _cited(vector: Vector) -> list[str]:
    section = vector.test["clause"].partition("/")[0]
    cited = [vector.test["ambiguity"]] if "ambiguity" in vector.test else []
    return [*cited, *([section] if "-" in section else [])]


def _flag_problems(vectors: Vectors) -> Iterator[str]:
    noted = set(vectors.document["notes"])
    used = {flag for vector in vectors for flag in vector.test["flags"]}
    for flag in sorted(used - noted):
        yield f"the flag {flag} has no note"
    for flag in sorted(noted - used):
        yield f"the note {flag} has no test"


def _pair_problems(vector: Vector, pair: Vector | None) -> Iterator[str]:
    if pair is None:
        yield f"{vector.id}: its pair {vector.test['pairOf']} is not in the file"
        return
    if pair.result != "valid" or pair.outcomes[0]["action"] != "accept" or "fault" in pair.test:
        yield f"{vector.id}: its pair {pair.id} is not a valid test without a fault"
    if "crc" in vector.test:
        yield from _crc_problems(vector, pair)
        return
    try:
        derived = derive(pair.data, vector.test["fault"], _checksum(vector))
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        yield f"{vector.id}: its fault does not apply to {pair.id}: {error}"
        return
    if derived != vector.data:
        yield f"{vector.id}: {pair.id} with its fault is {derived.hex()}, not {vector.data.hex()}"
    if derived == pair.data and vector.test["fault"]["kind"] != "version":
        yield f"{vector.id}: its fault changes nothing"
    yield from _version_problems(vector, pair)


def _version_problems(vector: Vector, pair: Vector) -> Iterator[str]:
    """A test is read in the version of its pair, unless its fault names another."""
    own, other = vector.test.get("version"), pair.test.get("version")
    wanted = vector.test["fault"].get("version", other)
    if own != wanted:
        yield f"{vector.id}: it is read in version {own}, it should be {wanted}"
    if wanted == other and vector.test["fault"]["kind"] == "version":
        yield f"{vector.id}: its fault changes nothing"


def _checksum(vector: Vector) -> Any:
    dialect = vector.group.get("dialect")
    return CHECKSUMS[dialect["checksum"]] if dialect else None


def _crc_problems(vector: Vector, pair: Vector) -> Iterator[str]:
    """A faulty checksum stands beside the same bytes."""
    if vector.data != pair.data:
        yield f"{vector.id}: its bytes are not those of {pair.id}"
    if (
        vector.test["crc"] == pair.test["crc"]
        or vector.test["crc"] != vector.test["fault"]["value"]
    ):
        yield f"{vector.id}: its checksum is not the one that its fault sets"


def _repeated_ids(families: list[Vectors]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for vectors in families:
        for vector in vectors:
            if vector.id in seen:
                other = seen[vector.id]
                yield f"{vectors.family}.json: {vector.id} is the id of a test in {other}.json"
            seen[vector.id] = vectors.family
