"""Judges a history of writes by the files of stopped nodes; shares no code with the product.

A log file is a chain of records: a type byte, four bytes of length (little-endian), the value.
A record of type 2 has a key first: two bytes of its length, the key, then the payload.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple


class History(NamedTuple):
    """What clients saw.

    Attributes:
        acked: per writer, the values that were acknowledged, in the order of sending.
        maybe: values of which nobody knows whether they are stored.
        read: what a reader got while all of it went on, in order.
    """

    acked: dict[str, list[bytes]]
    maybe: set[bytes]
    read: list[bytes]


def values_of(folder: Path) -> list[bytes]:
    """Return the values in the log files of a topic's folder, in the log's order."""
    found: list[bytes] = []
    for path in sorted(folder.glob("*.lnc"), key=lambda each: int(each.name.split("_")[0])):
        data, place = path.read_bytes(), 0
        while place < len(data):
            length = int.from_bytes(data[place + 1 : place + 5], "little")
            found.append(data[place + 5 : place + 5 + length])
            place += 5 + length
        if place != len(data):
            raise AssertionError(f"{path} ends inside a record")
    return found


def files_of(root: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def problems(history: History, nodes: list[Path], topic_id: int) -> list[str]:
    """Return what is wrong with the nodes' files.

    Args:
        history: what clients saw.
        nodes: data directories.
        topic_id: the topic that was written to.
    """
    logs = [values_of(node / "segments" / str(topic_id)) for node in nodes]
    found = [
        f"{node} has another log than {nodes[0]}"
        for node, log in zip(nodes, logs, strict=True)
        if log != logs[0]
    ]
    log = logs[0]
    times = Counter(log)
    found += [f"{value!r} is stored {count} times" for value, count in times.items() if count > 1]
    place = {value: number for number, value in enumerate(log)}
    for writer, values in history.acked.items():
        found += [f"{value!r} of {writer} is lost" for value in values if value not in place]
        order = [place[value] for value in values if value in place]
        if order != sorted(order):
            found.append(f"the records of {writer} are not in the order of sending")
    known = {value for values in history.acked.values() for value in values} | history.maybe
    found += [f"{value!r} was never sent" for value in log if value not in known]
    if history.read != log[: len(history.read)]:
        found.append("what was read is not what the log begins with")
    first = files_of(nodes[0] / "segments")
    for node in nodes[1:]:
        files = files_of(node / "segments")
        found += [
            f"{name} differs between {nodes[0].name} and {node.name}"
            for name in sorted(first.keys() | files.keys())
            if first.get(name) != files.get(name)
        ]
    return found
