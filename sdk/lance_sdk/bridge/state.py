"""The state file of ``lwp bridge``."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from lance_sdk._io.state_files import held, replace_files
from lance_sdk.bridge.contract import CopyPosition
from lance_sdk.bridge.endpoints import CopyIdentity
from lance_sdk.errors import ConfigError

_PLACE = {"offset": int, "following": int, "digest": str}


@dataclass(slots=True)
class CopyState:
    """How far a copy is.

    Attributes:
        path: the file, or None when nothing is noted.
        source: where the records come from.
        target: where they go.
        places: where to go on, by partition; one that is not there begins at its beginning.
        written: by partition, up to where in the source may have been written after its place.
        ends: by partition, where the target ended when the place was noted, if it tells.
        identity: by what the target recognises the copy.
    """

    path: Path | None
    source: str
    target: str
    places: dict[int, CopyPosition] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    identity: CopyIdentity = field(default_factory=CopyIdentity)

    @classmethod
    @contextmanager
    def held(cls, path: Path | None, source: str, target: str) -> Iterator[Self]:
        """Read what an earlier run noted, and keep other runs away from it.

        Args:
            path: the file; it need not exist.
            source: what this run reads.
            target: where this run writes.

        Raises:
            ConfigError: the file is of another copy, in use, or no such file.
        """
        state = cls(path, _without_secret(source), _without_secret(target))
        if path is None:
            yield state
            return
        with held(path, "lwp bridge"):
            state._load(path)
            state._save()  # the identity counts from the first batch on
            yield state

    def _load(self, path: Path) -> None:
        try:
            noted = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {path}: {error}") from error
        self._take(path, noted)

    def _take(self, path: Path, noted: Any) -> None:
        try:
            places = {int(number): _place(each) for number, each in noted["places"].items()}
            written, ends = (
                {int(each): int(place) for each, place in noted.get(name, {}).items()}
                for name in ("written", "ends")
            )
            identity = CopyIdentity(**noted.get("identity", {})).checked()
        except (AttributeError, KeyError, TypeError, ValueError):
            text = f"{path} is not a state of a copy; name another file, or remove it"
            raise ConfigError(text) from None
        if (noted.get("source"), noted.get("target")) != (self.source, self.target):
            raise ConfigError(
                f"{path} is the state of a copy from {noted.get('source')} to "
                f"{noted.get('target')}; "
                "name another file, or remove it"
            )
        self.places, self.written, self.ends, self.identity = places, written, ends, identity

    def save(self, partition: int, place: CopyPosition, end: int | None = None) -> None:
        """Note a place, and where the target ends there; the file is whole at any time.

        Raises:
            OSError: it cannot be written.
        """
        self.places[partition] = place
        self.written.pop(partition, None)
        if end is not None:
            self.ends[partition] = end
        self._save()

    def begin(self, partition: int, end: int) -> None:
        """Note where the target ends before anything is copied.

        Raises:
            OSError: it cannot be written.
        """
        self.ends[partition] = end
        self._save()

    def intend(self, partition: int, following: int) -> None:
        """Note up to where is written next: a repetition has to have the same batches.

        Raises:
            OSError: it cannot be written.
        """
        self.written[partition] = following
        self._save()

    def _save(self) -> None:
        if self.path is None:
            return
        noted = {
            "source": self.source,
            "target": self.target,
            "identity": asdict(self.identity),
            "places": {str(number): each._asdict() for number, each in self.places.items()},
            "written": {str(number): end for number, end in self.written.items()},
            "ends": {str(number): end for number, end in self.ends.items()},
        }
        replace_files({self.path: json.dumps(noted).encode()})


def _place(noted: Any) -> CopyPosition:
    if any(type(noted[name]) is not kind for name, kind in _PLACE.items()):
        raise TypeError
    return CopyPosition(**noted)


def _without_secret(url: str) -> str:
    scheme, _, rest = url.partition("://")
    place, slash, topic = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{topic}"
