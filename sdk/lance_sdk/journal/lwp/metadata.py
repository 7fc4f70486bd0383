"""Metadata of an LWP slot: whose batch ids it uses, and its topics (SF-32).

All of it stands in ``.lwp-slot``, which is written again, and synced, whenever something is added:
a topic is on disk before the first frame that needs it.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from lance_sdk._protocol.backoff import RandomSource
from lance_sdk._protocol.produce.send_settings import draw_nonce
from lance_sdk.journal._slot.layout import CORRUPT, FRAME_HEADER, FRAME_HEADER_SIZE, crc32c
from lance_sdk.journal.errors import JournalError, SlotUnreadable
from lance_sdk.journal.files import Files, RealFiles
from lance_spec.errors import DecodeError
from lance_spec.messages.store_forward import (
    SegmentFrame,
    SlotIdentity,
    SlotMetadataHeader,
    SlotTopic,
)

NAME: Final = ".lwp-slot"
NO_TOPIC_ID: Final = 2**32 - 1
"""A topic whose number the server has not told yet."""
MOST_TOPICS: Final = 100_000
_LARGEST: Final = 64 << 20
_MACHINE_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def machine_id() -> str:
    """Return what tells this machine from others."""
    for name in _MACHINE_IDS:
        try:
            found = Path(name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found
    return f"node-{uuid.getnode():012x}"


class SlotMetadata:
    """Identity and topics of one slot.

    Args:
        path: the slot's folder; None keeps them in memory.
        files: the file system.
        expected: whether the slot was used before, so that a missing file is damage.

    Attributes:
        identity: whose batch ids the slot uses; None until one was drawn.
        damage: what of the file could not be read, as text; "" when all of it could.

    Raises:
        SlotUnreadable: the file was written by a newer format.
        OSError: it cannot be read.
    """

    def __init__(
        self, path: Path | None, files: Files | None = None, *, expected: bool = False
    ) -> None:
        self._files = files or RealFiles()
        self._file = None if path is None else path / NAME
        self._topics: dict[int, SlotTopic] = {}
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._lock = threading.Lock()
        self.identity: SlotIdentity | None = None
        self.damage = ""
        self._set_aside = False
        if self._file is not None:
            self._load(self._file, expected=expected)

    def __repr__(self) -> str:
        return f"<SlotMetadata {self._file or 'memory'}: {len(self._topics)} topics>"

    def _load(self, file: Path, *, expected: bool) -> None:
        try:
            data = self._files.read(file, _LARGEST)
        except FileNotFoundError:
            self.damage = "it is missing" if expected else ""
            return
        size = SlotMetadataHeader.SIZE
        try:
            SlotMetadataHeader.decode(data[:size])
        except DecodeError as error:
            if error.field == "version" and len(data) >= size:
                raise SlotUnreadable(
                    file, error.offset, f"{error}; a newer client wrote it"
                ) from None
            self.damage = str(error)
            return
        last = b""
        for payload in self._frames(memoryview(data), size):
            last = bytes(payload)
            self._take(last)
        if last[:4] != SlotIdentity.MAGIC and not self.damage:
            self.damage = f"byte {len(data)}: it ends early"

    def _frames(self, data: memoryview, offset: int) -> Iterator[memoryview]:
        while offset < len(data):
            start = offset + FRAME_HEADER_SIZE
            if start > len(data):
                self.damage = f"byte {offset}: {len(data) - offset} bytes that are not an entry"
                return
            crc, length = FRAME_HEADER.unpack_from(data, offset)
            end = start + length
            if end > len(data) or crc32c(data[offset + 4 : end]) != crc:
                self.damage = f"byte {offset}: an entry does not match its checksum"
                return
            yield data[start:end]
            offset = end

    def _take(self, payload: bytes) -> None:
        try:
            if payload[:4] == SlotIdentity.MAGIC:
                self.identity = SlotIdentity.decode(payload)
            elif payload[:4] == SlotTopic.MAGIC:
                self._put(SlotTopic.decode(payload))
            else:
                self.damage = f"an entry begins with {payload[:4]!r}"
        except DecodeError as error:
            self.damage = str(error)

    def _put(self, topic: SlotTopic) -> None:
        self._topics[topic.topic_number] = topic
        self._numbers[_key(topic)] = topic.topic_number

    def _save(self) -> None:
        if self._file is None:
            return
        self._keep_damaged(self._file)
        entries = [topic.encode() for topic in self._topics.values()]
        if self.identity is not None:  # it stands last, so that an end that is missing shows
            entries.append(self.identity.encode())
        frames = [SegmentFrame(_crc(each), each).encode() for each in entries]
        header = SlotMetadataHeader().encode()
        self._files.replace(self._file, b"".join((header, *frames)))

    def _keep_damaged(self, file: Path) -> None:
        """Set a damaged file aside before the first one that replaces it."""
        if self.damage and not self._set_aside:
            with suppress(FileNotFoundError):
                self._files.rename(file, file.with_name(NAME + CORRUPT))
            self._set_aside = True

    # Identity

    def draw(
        self,
        rng: RandomSource,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        machine: Callable[[], str] = machine_id,
    ) -> int:
        """Draw the nonce of a sender that opens the slot to append; return it.

        Every opening draws again. So no batch id is ever given to two contents: not on another
        machine that got a copy of the slot, and not after a crash that took frames of which the
        server may have got some, whose numbers are given out again.

        Raises:
            OSError: it cannot be kept.
        """
        with self._lock:
            old = 0 if self.identity is None else self.identity.nonce
            while (nonce := draw_nonce(rng)) == old:
                pass
            self.identity = SlotIdentity(nonce, max(0, wall_ns()), machine().encode())
            self._save()
            return nonce

    # Topics

    def number(self, name: str, topic_id: int | None = None) -> int:
        """Return the slot's number of a topic, a new one where it is not known yet.

        Args:
            name: the topic's name; "" for one that is addressed by number only.
            topic_id: the server's number, where that is how it is addressed.

        Raises:
            JournalError: the slot has too many topics.
            OSError: it cannot be kept.
        """
        wanted = SlotTopic(0, NO_TOPIC_ID if topic_id is None else topic_id, 0, name.encode())
        with self._lock:
            known = self._numbers.get(_key(wanted))
            if known is not None:
                return known
            if len(self._topics) >= MOST_TOPICS:
                raise JournalError(f"a slot holds at most {MOST_TOPICS} topics; use another one")
            wanted.topic_number = self._next_number()
            self._put(wanted)
            try:
                self._save()
            except BaseException:  # Ctrl-C, too
                del self._topics[wanted.topic_number], self._numbers[_key(wanted)]
                raise
            return wanted.topic_number

    def _next_number(self) -> int:
        """Return a number that no frame of the slot can have, also not one of a lost topic."""
        highest = max(self._topics, default=-1)
        return highest + 1 + (MOST_TOPICS if self.damage else 0)

    def known(self, name: str, topic_id: int | None = None) -> int | None:
        """Return the slot's number of a topic, where it has one."""
        wanted = NO_TOPIC_ID if topic_id is None else topic_id
        return self._numbers.get((name.encode(errors="surrogatepass"), 0 if name else wanted))

    def topic(self, number: int) -> SlotTopic | None:
        """Return a topic by the slot's number."""
        return self._topics.get(number)

    @property
    def topics(self) -> list[SlotTopic]:
        """Every topic, by number."""
        return [self._topics[number] for number in sorted(self._topics)]

    def found(self, number: int, topic_id: int, created_at: int) -> bool:
        """Keep what the server says of a topic; return whether it was another one before.

        Raises:
            OSError: it cannot be kept; it is known until the slot is closed all the same.
        """
        with self._lock:
            topic = self._topics[number]
            before = (topic.topic_id, topic.created_at)
            if before == (topic_id, created_at):
                return False
            topic.topic_id, topic.created_at = topic_id, created_at
            self._save()
            return before[0] != NO_TOPIC_ID


def _key(topic: SlotTopic) -> tuple[bytes, int]:
    """Return what a topic is addressed by: its name, or its number where it has none."""
    return topic.name, 0 if topic.name else topic.topic_id


def _crc(payload: bytes) -> int:
    return crc32c(FRAME_HEADER.pack(0, len(payload))[4:] + payload)
