"""Which log a query reads: a server's, or what lies at a path."""

from lance_sdk.errors import ConfigError
from lance_sdk.spark.contract import Log
from lance_sdk.spark.file_log import FileLog
from lance_sdk.spark.options import Options
from lance_sdk.spark.segments import has_segments
from lance_sdk.spark.server_log import ServerLog
from lance_sdk.spark.slot_log import SlotLog, has_slot
from lance_sdk.spark.storage import Entry, entries, is_folder

_SEGMENTS = "segments"


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
        return ServerLog(options)
    topics: list[str] = []
    slots: list[str] = []
    for path in options.path:
        _sort(path, topics, slots)
    if topics and slots:
        raise ConfigError("path: slots and segments cannot be read together; read one of them")
    if slots:
        return SlotLog(options, slots)
    return FileLog(options, topics)


def folders_of(path: str) -> tuple[list[str], list[str]]:
    """Return the topic folders and the slots at a path.

    Raises:
        ConfigError: there are none.
    """
    topics: list[str] = []
    slots: list[str] = []
    _sort(path, topics, slots)
    return topics, slots


def _sort(path: str, topics: list[str], slots: list[str]) -> None:
    if not is_folder(path):
        raise ConfigError(
            f"path={path!r} is a file; name its folder, and with startingOffsets and "
            "endingOffsets what of it to read"
        )
    listed = entries(path)
    if _take(path, listed, topics, slots):
        return
    inside = [entry for entry in listed if entry.is_folder]
    if any(entry.name == _SEGMENTS for entry in inside):  # a data directory of a server
        inside = [e for e in entries(f"{path.rstrip('/')}/{_SEGMENTS}") if e.is_folder]
    found = [_take(e.path, entries(e.path), topics, slots) for e in inside if _visible(e)]
    if not any(found):
        raise ConfigError(
            f"path={path!r}: no segments (*.lnc) and no slots (*.sfl, *.sfa) there or one folder "
            "below; name a data directory, a topic's folder or a slot"
        )


def _visible(entry: Entry) -> bool:
    return not entry.name.startswith(".")


def _take(path: str, listed: list[Entry], topics: list[str], slots: list[str]) -> bool:
    if has_segments(listed):
        topics.append(path)
    elif has_slot(listed):
        slots.append(path)
    else:
        return False
    return True
