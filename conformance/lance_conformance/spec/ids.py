"""The ids of all cases there ever were; lines are added, never changed or removed."""

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Locked:
    """One id.

    Attributes:
        case_id: the id, never given to another question.
        since: the version of the kit in which it appeared.
        version: rises when what is asked, or how it is judged, changes.
        retired: the case is gone; its id stays taken.
    """

    case_id: str
    since: str
    version: int
    retired: bool


def locked_ids(package: str = __package__) -> list[Locked]:
    """Return the ids in the order in which they were added.

    Args:
        package: where the ``ids.lock`` is, see `Suite.ids`.
    """
    text = files(package).joinpath("ids.lock").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [Locked(row[0], row[1], int(row[2]), row[3:] == ["retired"]) for row in rows]
