"""One ring: submissions in, completions out, owned by one thread.

Rules that keep it sound: a buffer that was submitted is not touched, moved or freed before its
completion was seen; every submission is awaited, also after an error; waiting happens on an
event descriptor, outside the interpreter's lock; a ring is used by the thread and the process
that made it.
"""

import ctypes
import errno
import mmap
import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from lance_server.storage.uring._abi import (
    COMPLETION,
    CQ_RING,
    DURABLE,
    ENTRIES,
    POPULATED,
    SINGLE_MAP,
    SQ_RING,
    SUBMISSION,
    Operation,
    Parameters,
    Register,
    Vector,
    await_event,
    enter,
    open_event,
    register,
    set_up,
)

_WORD: Final = 4
_LAST: Final = 0xFFFFFFFF
_UNUSED: Final = (0, 0, 0, 0)
_PROT: Final = mmap.PROT_READ | mmap.PROT_WRITE


@dataclass(frozen=True, slots=True)
class Submission:
    """One durable write.

    Attributes:
        operation: from where: a registered buffer or anywhere.
        fd: the file.
        offset: place in the file.
        address: place of the bytes in memory.
        length: number of bytes.
        buffer: number of the registered buffer.
    """

    operation: Operation
    fd: int
    offset: int
    address: int
    length: int
    buffer: int = 0

    def encode_into(self, memory: memoryview, place: int, user_data: int) -> None:
        """Write the 64 bytes that the kernel reads."""
        SUBMISSION.pack_into(
            memory,
            place,
            self.operation,
            0,
            0,
            self.fd,
            self.offset,
            self.address,
            self.length,
            DURABLE,
            user_data,
            self.buffer,
            *_UNUSED,
        )


class Ring:
    """A pair of rings with registered buffers.

    Args:
        entries: submissions at once; a power of two.
        buffers: registered buffers.
        buffer_size: bytes of each; a multiple of the page size.

    Attributes:
        entries: submissions at once.
        process: id of the process that made it.
        buffers: the memory of the registered buffers.
        fixed: whether the kernel took them; plain writes are used where it did not.

    Raises:
        OSError: the kernel does not offer io_uring, or not to this process.
    """

    def __init__(self, *, entries: int, buffers: int, buffer_size: int) -> None:
        parameters = Parameters()
        self._fd = set_up(entries, parameters)
        self.process = os.getpid()
        self._maps: list[mmap.mmap] = []
        self._views: list[memoryview] = []
        fds = [self._fd]
        # A ring ends with the thread that has it; at the end of the process the kernel does it.
        self._finalizer = weakref.finalize(self, _give_up, self._views, self._maps, fds)
        self._finalizer.atexit = False
        self._results: list[int] = []
        self._pending = 0
        try:
            self._map(parameters)
            self._event = open_event()
            fds.append(self._event)
            register(self._fd, Register.EVENT, ctypes.c_int(self._event), 1)
        except BaseException:
            self.close()
            raise
        self.entries = parameters.sq_entries
        self.buffers = [mmap.mmap(-1, buffer_size) for _ in range(buffers)]
        self._pins = [(ctypes.c_char * buffer_size).from_buffer(each) for each in self.buffers]
        self.addresses = [ctypes.addressof(pin) for pin in self._pins]
        self.fixed = self._register_buffers(buffer_size)

    def __repr__(self) -> str:
        kind = "fixed" if self.fixed else "plain"
        return f"<Ring {self.entries} entries, {len(self.buffers)} {kind} buffers>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _map(self, parameters: Parameters) -> None:
        sq, cq = parameters.sq, parameters.cq
        sq_size = sq.array + parameters.sq_entries * _WORD
        cq_size = cq.entries_at + parameters.cq_entries * COMPLETION.size
        together = bool(parameters.features & SINGLE_MAP)
        self._sq = self._mapped(max(sq_size, cq_size) if together else sq_size, SQ_RING)
        self._cq = self._sq if together else self._mapped(cq_size, CQ_RING)
        entries = self._mapped(parameters.sq_entries * SUBMISSION.size, ENTRIES)
        self._entries = self._view(memoryview(entries))
        self._at, self._completed_at = sq, cq

        self._sq_words = self._view(memoryview(self._sq).cast("I"))
        self._cq_words = self._view(memoryview(self._cq).cast("I"))

    def _view(self, view: memoryview) -> memoryview:
        self._views.append(view)
        return view

    def _mapped(self, size: int, offset: int) -> mmap.mmap:
        flags = mmap.MAP_SHARED | POPULATED
        whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._maps.append(mmap.mmap(self._fd, whole, flags, _PROT, offset=offset))
        return self._maps[-1]

    def _register_buffers(self, size: int) -> bool:
        vectors = (Vector * len(self.addresses))(*[Vector(at, size) for at in self.addresses])
        try:
            register(self._fd, Register.BUFFERS, vectors, len(vectors))
        except OSError:  # a limit on locked memory
            return False
        return True

    def begin(self, submissions: Sequence[Submission]) -> None:
        """Submit operations; `finish` must follow before anything else is begun.

        Args:
            submissions: at most `entries`.
        """
        assert os.getpid() == self.process, "a ring does not survive a fork"
        assert len(submissions) <= self.entries, "more submissions than entries"
        self._publish(submissions)
        self._results = [0] * len(submissions)
        self._pending = self._submit()

    def finish(self) -> list[int]:
        """Wait for all operations that were begun; return their results, in their order.

        A result is what the system call would return, or the negative number of an error.
        """
        while self._pending:
            self._pending -= self._collect(self._results)
            if self._pending:
                await_event(self._event)
        return self._results

    def _publish(self, submissions: Sequence[Submission]) -> None:
        words, at = self._sq_words, self._at
        tail, mask, array = words[at.tail // _WORD], words[at.mask // _WORD], at.array // _WORD
        for number, each in enumerate(submissions):
            slot = (tail + number) & mask
            each.encode_into(self._entries, slot * SUBMISSION.size, number)
            words[array + slot] = slot
        # Submission reads the ring within the system call that follows, which orders these stores.
        words[at.tail // _WORD] = (tail + len(submissions)) & _LAST

    def _submit(self) -> int:
        """Have the kernel take what was published; return how many operations it took.

        Those that it does not take fail with its error, and are taken back from the ring.
        """
        taken, count = 0, len(self._results)
        try:
            while taken < count:
                taken += enter(self._fd, count - taken)
        except OSError as error:
            untaken = count - taken
            self._results[taken:] = [-(error.errno or errno.EIO)] * untaken
            tail = self._at.tail // _WORD
            self._sq_words[tail] = (self._sq_words[tail] - untaken) & _LAST
        return taken

    def _collect(self, results: list[int]) -> int:
        words, at = self._cq_words, self._completed_at
        head, tail, mask = words[at.head // _WORD], words[at.tail // _WORD], words[at.mask // _WORD]
        count = (tail - head) & _LAST
        for number in range(count):
            place = at.entries_at + ((head + number) & mask) * COMPLETION.size
            user_data, result, _ = COMPLETION.unpack_from(self._cq, place)
            results[user_data] = result
        words[at.head // _WORD] = tail
        return int(count)

    def close(self) -> None:
        """Give the ring up; nothing may be in flight."""
        self._finalizer()


def _give_up(views: list[memoryview], maps: list[mmap.mmap], fds: list[int]) -> None:
    for view in views:
        view.release()
    for each in maps:
        each.close()
    for fd in fds:
        os.close(fd)
