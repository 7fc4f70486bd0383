"""Answers on their way into a socket."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from lance_server.lwp.responses import Answer

PIECE: Final = 1024 * 1024
"""How much is handed over at a time, in bytes.

asyncio copies what the socket does not take at once. Handing an answer over in pieces keeps
that copy small, so that a slow reader costs what its answers measure and not twice as much.
"""


class WriteBuffer:
    """Answers that the socket has not been given yet.

    Attributes:
        size: their bytes; an answer counts whole until the last of it has been handed over.
        handed_over: bytes that were handed over since the beginning.
    """

    __slots__ = ("_answers", "_position", "handed_over", "size")

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._position = 0
        self.size = 0
        self.handed_over = 0

    def __bool__(self) -> bool:
        return bool(self._answers)

    def __repr__(self) -> str:
        return f"<WriteBuffer {len(self._answers)} answers, {self.size} bytes>"

    def add(self, answers: Sequence[Answer]) -> None:
        """Put answers after those that are here."""
        self.size += sum(map(len, answers))
        self._answers.extend(answers)

    def pass_on(self, answers: Sequence[Answer]) -> bool:
        """Count answers as handed over if nothing is before them and they are one piece.

        Args:
            answers: what the caller hands over at once when the answer is yes.
        """
        if self._answers:
            return False
        total = sum(map(len, answers))
        if total > PIECE:
            return False
        self.handed_over += total
        return True

    def next_pieces(self) -> list[Answer | memoryview]:
        """Return the next bytes to hand over; only while there are some.

        They are as many whole answers as measure no more than `PIECE`, or a part of a larger one.
        """
        answers = self._answers
        total = len(answers[0])
        if total > PIECE:
            return [self._next_part(answers[0])]
        pieces: list[Answer | memoryview] = [answers.popleft()]
        while answers and total + len(answers[0]) <= PIECE:
            total += len(answers[0])
            pieces.append(answers.popleft())
        self.size -= total
        self.handed_over += total
        return pieces

    def _next_part(self, answer: Answer) -> memoryview:
        """Return the next piece of the first answer, which is a large one."""
        piece = memoryview(answer)[self._position : self._position + PIECE]
        self._position += len(piece)
        if self._position == len(answer):
            self._answers.popleft()
            self._position = 0
            self.size -= len(answer)
        self.handed_over += len(piece)
        return piece

    def clear(self) -> None:
        """Throw everything away."""
        self._answers.clear()
        self._position = self.size = 0
