"""The questions of ``vectors check --exec`` to an adapter, and the check of its answers.

The contract is written down in ``vectors/README.md``; this module is its meaning.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lance_spec.vectors import FAMILIES, Vector

Json = dict[str, Any]

_ENCODED: Final = {"frame_encode": "fields", "tlv_encode": "records"}
"""Families in which the adapter is given values and writes the bytes."""
_REFUSALS: Final = {"error", "close", "reject"}
CONTRACT: Final = 1
"""Version of the contract; it rises when an adapter of today would no longer be understood."""
_COMPARED: Final = ("reason", "field", "offset", "missing", "code")


def requests(family: str, vector: Vector) -> Iterator[Json]:
    """Return what an adapter is asked about a vector; the vector's answers are not in it."""
    group = {name: value for name, value in vector.group.items() if name != "source"}
    asked: Json = {"id": vector.id, "family": family, "group": group}
    asked |= {name: vector.test[name] for name in ("message", "version") if name in vector.test}
    if family in _ENCODED:
        yield asked | {_ENCODED[family]: vector.test[_ENCODED[family]]}
    elif family == "frame_stream":
        for cut in vector.test["cuts"]:
            yield asked | {"pieces": [each.hex() for each in pieces(vector.data, cut)]}
    else:
        yield asked | {"bytes": vector.data.hex()}


def hello(families: Sequence[str]) -> Json:
    """Return the first question: which families an adapter takes."""
    return {"id": "hello", "contract": CONTRACT, "families": list(families)}


def declared(answer: Json, families: Sequence[str]) -> set[str]:
    """Return the families that an adapter says it takes; all of them when it does not say.

    Raises:
        ValueError: the answer is not a list of families that there are.
    """
    named = answer.get("families", list(families))
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise ValueError(f"hello: families is not a list of names: {_short(named)}")
    if unknown := sorted(set(named) - set(FAMILIES)):
        raise ValueError(f"hello: there is no family {', '.join(unknown)}")
    return set(named)


def pieces(data: bytes, cut: Mapping[str, int]) -> list[bytes]:
    """Return ``data`` in pieces, as a way of cutting says."""
    if "at" in cut:
        return [data[: cut["at"]], data[cut["at"] :]]
    size = cut["every"]
    return [data[start : start + size] for start in range(0, len(data), size)]


def problem(family: str, vector: Vector, answer: Json) -> str | None:
    """Return what is wrong with an answer, one sentence, or None when it is right."""
    if family == "crc":
        return _checksum_problem(vector, answer.get("crc"))
    if family in _ENCODED:
        right = answer.get("bytes") == vector.data.hex()
        return None if right else f"wrote {_short(answer.get('bytes'))}"
    outcome = answer.get("outcome")
    if not isinstance(outcome, dict) or not isinstance(outcome.get("action"), str):
        return f"the answer has no outcome with an action: {_short(answer)}"
    if not any(_fits(family, wanted, outcome) for wanted in vector.outcomes):
        return f"did {_short(outcome)}, should {_short(list(vector.outcomes))}"
    return _reading_problem(family, vector, outcome, answer)


def _checksum_problem(vector: Vector, computed: Any) -> str | None:
    if not isinstance(computed, str):
        return "the answer has no crc"
    right = (computed == vector.test["crc"]) is (vector.result == "valid")
    return None if right else f"computed {computed[:80]}, listed as {vector.result}"


def _fits(family: str, wanted: Json, outcome: Json) -> bool:
    """Whether an outcome is the wanted one; a codec alone can do less than a connection."""
    action = outcome["action"]
    if action == "accept" and wanted["action"] == "error" and family == "frame_decode":
        return True  # the frame is sound; what it says is refused by whoever answers
    if action != wanted["action"] and not (action == "reject" and wanted["action"] in _REFUSALS):
        return False
    told = [name for name in _COMPARED if name in outcome and name in wanted]
    return all(_plain(outcome[name]) == _plain(wanted[name]) for name in told)


def _reading_problem(family: str, vector: Vector, outcome: Json, answer: Json) -> str | None:
    """Compare what was read with what the vector says."""
    for name in ("whole", "end", "needed"):
        if name in vector.test and answer.get(name) != vector.test[name]:
            return f"{name} is {_short(answer.get(name))}, should be {vector.test[name]}"
    if "frames" in vector.test:
        return _frames_problem(vector.test["frames"], answer.get("frames"))
    return _accepted_problem(family, vector, answer) if outcome["action"] == "accept" else None


def _accepted_problem(family: str, vector: Vector, answer: Json) -> str | None:
    if "records" in vector.test and answer.get("records") != vector.test["records"]:
        return f"read {_short(answer.get('records'))}"
    if "bytes" in answer and answer["bytes"] != vector.data.hex() and vector.result == "valid":
        return f"wrote {_short(answer['bytes'])}"
    if "fields" in vector.test:
        partial = family == "frame_decode"
        return _fields_problem(vector.test["fields"], answer.get("fields"), partial=partial)
    return None


def _frames_problem(wanted: list[Json], found: Any) -> str | None:
    if not isinstance(found, list) or len(found) != len(wanted):
        count = len(found) if isinstance(found, list) else "no"
        return f"read {count} frames, should be {len(wanted)}"
    for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if complaint := _fields_problem(one, other, partial=False):
            return f"frame {index}: {complaint}"
    return None


def _fields_problem(wanted: Json, found: Any, *, partial: bool) -> str | None:
    """Compare fields; with ``partial`` only those that were given, of which there must be some."""
    if not isinstance(found, dict) or (wanted and not found):
        return "the answer does not say what was read"
    for name, value in wanted.items():
        if name == "whole" or (partial and name not in found):
            continue
        if not _contains(found.get(name), value):
            return f"{name} is {_short(found.get(name))}, should be {_short(value)}"
    return None


def _contains(found: Any, wanted: Any) -> bool:
    """Whether a value is the wanted one; numbers may be decimal text, objects may hold more."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            _contains(found.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(_contains(*pair) for pair in zip(found, wanted, strict=True))
    return bool(_plain(found) == _plain(wanted))


def _plain(value: Any) -> Any:
    return str(int(value)) if isinstance(value, bool | int) else value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
