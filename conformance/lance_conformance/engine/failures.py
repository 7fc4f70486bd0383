"""How a case ends when it does not pass."""

TIMING_REASONS = frozenset({"timeout", "not-closed", "overran"})
"""Reasons that a slow machine can cause too; such a case is asked once more, alone."""

LONGEST = 500
"""Characters of a message that are kept; it may quote what a target said."""


class Failure(Exception):  # noqa: N818 - a failure of the target, not an error of the kit
    """The target did something that no allowed outcome covers.

    Args:
        reason: A machine reason code such as ``closed-early`` or ``field:batch_id``.
        message: One sentence: what came, and what was allowed instead.
        expected: The allowed outcomes, each with the clause or ambiguity it rests on.
        received: What came instead.
        connection: The connection it happened on, ``None`` when no single one.
        timing: Slowness alone could have caused it; by default, when the reason says so.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        expected: tuple[str, ...] = (),
        received: str = "",
        connection: int | None = None,
        timing: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message if len(message) <= LONGEST else f"{message[:LONGEST]}..."
        self.expected = expected
        self.received = received
        self.connection = connection
        self.timing = reason in TIMING_REASONS if timing is None else timing

    def told_as(self, kind: "type[Failure]", message: str, reason: str = "") -> "Failure":
        """The same, in the words of who knows what it means.

        Args:
            kind: What it means: a `Failure`, or that a case is `Blocked`.
            message: One sentence, after which this failure's own stands.
            reason: Another reason code.
        """
        return kind(
            reason or self.reason,
            f"{message}: {self.message}",
            expected=self.expected,
            received=self.received,
            connection=self.connection,
            timing=self.timing,
        )

    def settled(self, words: str) -> "Failure":
        """The same, once it is known that slowness has not caused it.

        Args:
            words: How it is known.
        """
        return type(self)(
            self.reason,
            f"{self.message}; {words}",
            expected=self.expected,
            received=self.received,
            connection=self.connection,
            timing=False,
        )


class Blocked(Failure):
    """The question could not be put: its control failed, so no answer would prove anything."""


class NotApplicable(Exception):  # noqa: N818 - an answer to "why not", not an error
    """The target has made a choice under which the question has no meaning."""


class KitError(Exception):
    """The kit itself is wrong: it was about to send bytes that it did not mean to send."""
