"""The state file of ``lwp replay``."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lance_sdk._io.state_files import replace_files
from lance_sdk.cli.console.exit_codes import Failure
from lance_sdk.cli.records.replay_source import ReplayPosition

if TYPE_CHECKING:
    from lance_sdk.offsets import TopicIdentity


@dataclass(slots=True)
class ReplayState:
    """How far a replay is.

    Attributes:
        path: the file, or None when nothing is noted.
        source: where the records come from.
        target: where they go.
        place: where in the source to go on, or None at the beginning.
        topic: which topic the source was, where it was one and that is known.
    """

    path: Path | None
    source: str
    target: str
    place: ReplayPosition | None = None
    topic: "TopicIdentity | None" = None

    @classmethod
    def load(cls, path: Path | None, source: str, target: str) -> Self:
        """Read what an earlier run noted.

        Args:
            path: the file; it need not exist.
            source: what this run reads.
            target: where this run writes.

        Raises:
            Failure: when the file is of another replay, or is not such a file.
        """
        state = cls(path, source, target)
        if path is None or not path.exists():
            return state
        noted = _read(path)
        if (noted["source"], noted["target"]) != (source, target):
            raise Failure(
                f"{path} is the state of a replay from {noted['source']} to {noted['target']}; "
                f"name another file, or remove it"
            )
        state.place, state.topic = noted["place"], noted["topic"]
        return state

    def check_topic(self, topic: "TopicIdentity") -> None:
        """Take note of the topic that is read.

        Raises:
            Failure: it is not the one that was read before, so that its offsets mean others.
        """
        before, self.topic = self.topic, topic
        difference = None if before is None else before.difference(topic)
        if difference is not None:
            raise Failure(
                f"{self.path} is the state of a replay of another topic {topic.label}: its "
                f"{difference}; remove the file to replay the topic from its beginning"
            )

    def save(self, place: ReplayPosition) -> None:
        """Note a place; the file is whole at any time."""
        self.place = place
        if self.path is None:
            return
        topic = None if self.topic is None else asdict(self.topic)
        noted = {"source": self.source, "target": self.target, "place": place, "topic": topic}
        try:
            replace_files({self.path: json.dumps(noted).encode()})
        except OSError as error:
            raise Failure(f"cannot write {self.path}: {error.strerror}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {path}: {error}") from error
    wanted = {"source": str, "target": str, "place": int}
    if isinstance(noted, dict) and all(type(noted.get(k)) is kind for k, kind in wanted.items()):
        with suppress(TypeError):
            return {**noted, "topic": _topic(noted.get("topic"))}
    raise Failure(f"{path} is not a state of a replay; name another file, or remove it")


def _topic(noted: Any) -> "TopicIdentity | None":
    """Return the topic that was noted; states of files and of earlier releases name none."""
    from lance_sdk.offsets import TopicIdentity  # noqa: PLC0415 - loaded when it is needed

    return TopicIdentity(**noted) if isinstance(noted, dict) else None
