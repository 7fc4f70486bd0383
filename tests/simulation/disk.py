"""A disk that keeps only what it must: what was synced, and any part of the rest.

Of a file there is what a read returns (the page cache), what the disk holds, and the writes
between the two. After a sync that failed, what it was to write is clean and lost: the cache shows
it for a while, and no later sync writes it. Of a folder any subset of the changes to its names
since its last sync survives a loss of power.
"""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

SECTOR: Final = 512
_BLOCK: Final = 64
"""Bytes that a name takes of a disk that fills up."""


class Piece(NamedTuple):
    """A change to a file.

    Attributes:
        offset: where; for a new length the length.
        data: what was written there; None for a new length.
        durable: whether it is on the disk although earlier changes may not be.
    """

    offset: int
    data: bytes | None
    durable: bool = False

    def apply(self, content: bytearray) -> None:
        """Make the change."""
        size = len(content)
        if self.data is None:
            del content[self.offset :]
            content.extend(bytes(self.offset - len(content)))
            return
        if size < self.offset:
            content.extend(bytes(self.offset - size))
        content[self.offset : self.offset + len(self.data)] = self.data

    def torn(self, random: Random) -> list["Piece"]:
        """Return what of it survives: all, nothing, or some of its sectors."""
        chance = random.random()
        if self.durable or chance < 0.4:
            return [self]
        if chance < 0.8 or self.data is None:
            return []
        return [
            Piece(self.offset + start, self.data[start : start + SECTOR])
            for start in range(0, len(self.data), SECTOR)
            if random.random() < 0.5
        ]


@dataclass(slots=True, eq=False)
class File:
    """A file.

    Attributes:
        content: what a read returns.
        disk: what the disk holds for certain.
        pending: changes since, in order.
        lost: whether the cache shows what the disk will never get.
        rotten: whether its bytes were changed on the disk.
    """

    content: bytearray = field(default_factory=bytearray)
    disk: bytearray = field(default_factory=bytearray)
    pending: list[Piece] = field(default_factory=list)
    lost: bool = False
    rotten: bool = False

    def change(self, piece: Piece) -> None:
        """Change it; the disk gets it later, or now if the piece is durable."""
        piece.apply(self.content)
        if piece.durable and not self.pending:
            piece.apply(self.disk)
        else:
            self.pending.append(piece)

    def sync(self) -> None:
        """Bring what is pending to the disk."""
        for piece in self.pending:
            piece.apply(self.disk)
        self.pending.clear()

    def fail_sync(self, random: Random) -> None:
        """Lose what is pending, but for what happened to reach the disk."""
        for piece in self.pending:
            for part in piece.torn(random):
                part.apply(self.disk)
        self.pending.clear()
        self.lost = True

    def forget_lost(self) -> None:
        """Drop what is clean from the cache, so that reads show what the disk has."""
        if self.lost:
            self.content = bytearray(self.disk)
            for piece in self.pending:
                piece.apply(self.content)
            self.lost = False

    def lose_power(self, random: Random) -> None:
        """Keep what the disk has, and any part of what is pending."""
        for piece in self.pending:
            for part in piece.torn(random):
                part.apply(self.disk)
        self.pending.clear()
        self.content = bytearray(self.disk)
        self.lost = False

    def copy(self) -> "File":
        """Return another one with the same content, all of it durable."""
        return File(bytearray(self.content), bytearray(self.content), rotten=self.rotten)


class Move(NamedTuple):
    """A change to the names in a folder: from nothing for a new one, to nothing for a removal."""

    source: str | None
    target: str | None
    node: "Node"

    def apply(self, names: dict[str, "Node"]) -> None:
        """Make the change."""
        if self.source is not None and names.get(self.source) is self.node:
            del names[self.source]
        if self.target is not None:
            names[self.target] = self.node


@dataclass(slots=True, eq=False)
class Folder:
    """A folder.

    Attributes:
        names: what a listing shows.
        disk: what the disk holds for certain.
        pending: changes since, in order.
    """

    names: dict[str, "Node"] = field(default_factory=dict)
    disk: dict[str, "Node"] = field(default_factory=dict)
    pending: list[Move] = field(default_factory=list)

    def change(self, move: Move) -> None:
        """Change its names."""
        move.apply(self.names)
        self.pending.append(move)

    def sync(self) -> None:
        """Make its names durable."""
        self.disk = dict(self.names)
        self.pending.clear()

    def lose_power(self, random: Random) -> None:
        """Keep any subset of what is pending, and so on below."""
        for move in self.pending:
            if random.random() < 0.5:
                move.apply(self.disk)
        self.pending.clear()
        self.names = dict(self.disk)
        for node in self.names.values():
            node.lose_power(random)

    def forget_lost(self) -> None:
        """Drop what is clean from the cache, in all files below."""
        for node in self.names.values():
            node.forget_lost()

    def copy(self) -> "Folder":
        """Return another one with the same content, all of it durable."""
        names = {name: node.copy() for name, node in self.names.items()}
        return Folder(names, dict(names))


Node = File | Folder


@dataclass(slots=True)
class SimDisk:
    """A disk with one tree of folders.

    Attributes:
        root: the folder of everything.
        room: bytes that still fit; None while there is plenty.
        read_only: whether it takes no change.
    """

    root: Folder = field(default_factory=Folder)
    room: int | None = None
    read_only: bool = False

    def find(self, path: Path) -> Node:
        """Return what stands at an absolute path.

        Raises:
            FileNotFoundError: nothing does.
            NotADirectoryError: a file stands in the way.
        """
        node: Node = self.root
        for part in path.parts[1:]:
            if not isinstance(node, Folder):
                raise NotADirectoryError(20, "Not a directory", str(path))
            following = node.names.get(part)
            if following is None:
                raise FileNotFoundError(2, "No such file or directory", str(path))
            node = following
        return node

    def folder(self, path: Path) -> Folder:
        """Return the folder at a path."""
        node = self.find(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(20, "Not a directory", str(path))
        return node

    def take(self, size: int) -> int:
        """Take room for so many more bytes; return for how many there is."""
        if self.room is None:
            return size
        taken = min(size, self.room)
        self.room -= taken
        return taken

    def take_name(self) -> bool:
        """Take room for a name; return whether there is."""
        return self.take(_BLOCK) == _BLOCK

    def give(self, node: Node) -> None:
        """Get the room of something that was removed back."""
        if self.room is not None and isinstance(node, File):
            self.room += len(node.content) + _BLOCK

    def kill(self, random: Random) -> None:
        """End the process: the page cache stays, but for what is clean in it, perhaps."""
        if random.random() < 0.5:
            self.root.forget_lost()

    def power(self, random: Random) -> None:
        """End the machine."""
        self.root.lose_power(random)
        self.read_only = False

    def has_lost(self) -> bool:
        """Whether a failed sync has lost something that the cache still shows."""
        return any(file.lost for _, file in self.files(Path("/")))

    def copy(self) -> "SimDisk":
        """Return a disk with the same files, all of it durable."""
        return SimDisk(self.root.copy())

    def files(self, path: Path) -> list[tuple[Path, File]]:
        """Return all files below a folder, by path."""
        found: list[tuple[Path, File]] = []
        for name, node in sorted(self.folder(path).names.items()):
            if isinstance(node, File):
                found.append((path / name, node))
            else:
                found += self.files(path / name)
        return found
