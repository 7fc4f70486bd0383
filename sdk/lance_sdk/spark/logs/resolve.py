"""Which log a query reads: a server's, or what lies at a path."""

from collections.abc import Iterable, Sequence
from typing import Final

from lance_sdk.errors import ConfigError
from lance_sdk.spark.files.file_log import FileLog
from lance_sdk.spark.files.segments import SEGMENTS, is_topic
from lance_sdk.spark.files.storage import Entry, entries, is_folder
from lance_sdk.spark.files.wal import FOLDER as WAL_FOLDER
from lance_sdk.spark.logs.contract import Log
from lance_sdk.spark.options import Options
from lance_spec.disk.segment_names import LWP_SLOT_SUFFIX, QWP_SLOT_SUFFIX

_SLOT_SUFFIXES: Final = (QWP_SLOT_SUFFIX, LWP_SLOT_SUFFIX)


def open_log(options: Options) -> Log:
    """Return the log that the options name.

    Raises:
        ConfigError: they name none, or several kinds.
        OSError: a path cannot be read.
    """
    if not options.path:
        if not (options.topics or options.topics_pattern):
            raise ConfigError("say what to read: option topic=NAME, topics=A,B or topicsPattern")
        options.url()
        from lance_sdk.spark.logs.server_log import ServerLog  # noqa: PLC0415 - as in `source`

        return ServerLog(options)
    topics: list[str] = []
    slots: list[str] = []
    for path in options.path:
        _sort(path, topics, slots, may_be_empty=True)
    if topics and slots:
        raise ConfigError("path: slots and segments cannot be read together; read one of them")
    if slots:
        from lance_sdk.spark.logs.slot_log import SlotLog  # noqa: PLC0415 - as in `source`

        return SlotLog(options, slots)
    return FileLog(options, TopicFolders(options.path, topics))


class TopicFolders:
    """The folders of topics at some paths, as they are whenever it is asked.

    Args:
        paths: data directories, folders of topics' folders, and topics' folders.
        known: the topics' folders among them that were found already.
    """

    def __init__(self, paths: Sequence[str], known: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._known = set(known)

    def __repr__(self) -> str:
        return f"<TopicFolders {len(self._known)} at {', '.join(self._paths)}>"

    def now(self) -> list[str]:
        """Return those there are; the folder of a topic that was deleted is none."""
        return [folder for path in self._paths for folder in self._at(path)]

    def _at(self, path: str) -> list[str]:
        try:
            if path in self._known:
                return [path] if is_folder(path) else []
            return [entry.path for entry in _children(path)[0] if self._is_one(entry)]
        except (ConfigError, FileNotFoundError):  # it was there once, and is deleted
            return []

    def _is_one(self, entry: Entry) -> bool:
        if entry.path in self._known:
            return True
        try:
            found = is_topic(entry.path, entries(entry.path))
        except FileNotFoundError:  # deleted since it was listed
            return False
        if found:
            self._known.add(entry.path)
        return found


def folders_of(path: str) -> tuple[list[str], list[str]]:
    """Return the topic folders and the slots at a path.

    Raises:
        ConfigError: there are none.
    """
    topics: list[str] = []
    slots: list[str] = []
    _sort(path, topics, slots)
    return topics, slots


def _sort(path: str, topics: list[str], slots: list[str], *, may_be_empty: bool = False) -> None:
    """Add what is at a path.

    Raises:
        ConfigError: there is nothing; a data directory without topics will do on request.
    """
    if not is_folder(path):
        raise ConfigError(
            f"path={path!r} is a file; name its folder, and with startingOffsets and "
            "endingOffsets what of it to read"
        )
    if _take(path, topics, slots):
        return
    children, is_data_directory = _children(path)
    found = [_take(child.path, topics, slots) for child in children]
    if not any(found) and not (may_be_empty and is_data_directory):
        raise ConfigError(
            f"path={path!r}: no segments (*.lnc) and no slots (*.sfl, *.sfa) there or one folder "
            "below; name a data directory, a topic's folder or a slot"
        )


def _children(path: str) -> tuple[list[Entry], bool]:
    """Return the folders that may be topics' or slots, and whether a server has made the path."""
    inside = [entry for entry in entries(path) if entry.is_folder]
    names = {entry.name for entry in inside}
    if SEGMENTS in names:
        inside = [e for e in entries(f"{path.rstrip('/')}/{SEGMENTS}") if e.is_folder]
    is_data_directory = not names.isdisjoint({SEGMENTS, WAL_FOLDER})  # which is made first
    return [entry for entry in inside if not entry.name.startswith(".")], is_data_directory


def _take(path: str, topics: list[str], slots: list[str]) -> bool:
    try:
        listed = entries(path)
    except FileNotFoundError:  # deleted since it was listed
        return False
    if is_topic(path, listed):
        topics.append(path)
    elif any(entry.name.endswith(_SLOT_SUFFIXES) for entry in listed):
        slots.append(path)
    else:
        return False
    return True
