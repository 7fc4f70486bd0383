"""How and from where a fetcher fetches."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from lance_sdk._protocol.consume.truncation_check import TakeFingerprint

if TYPE_CHECKING:
    from lance_sdk.values.contract import Codec


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in a log by its time (AMB-37).

    Attributes:
        time_ns: nanoseconds since the Unix epoch, by the server's clock.
    """

    time_ns: int


Start: TypeAlias = int | Moment | Literal["beginning", "end"]
"""A place in a log: a byte offset, a time, its beginning or its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """Settings of a fetcher, as in `lance_sdk.config.ConsumerConfig`.

    Attributes:
        label: how records name the topic.
        topic_id: the topic's number when it is not resolved by name.
        stop_at_end: end at the end the log had in the beginning.
        max_fetch_bytes: data asked for in one Fetch.
        prefetch_bytes: data held ahead of the application.
        poll_interval: seconds between Fetches at the end.
        reset_on_truncation: go on at the end of a log that was cut.
        on_opaque: what to do at a batch that is not records.
        mode: whether the server is to push.
        subscriber: the number under which it is subscribed to: a random one, so that there can
            be no commit under it for the server to resume at (AMB-36).
        held: whether nothing is fetched before `Fetcher.begin`.
        request_timeout: seconds for a control request.
        codec: how ``value`` of the records reads the payload; None leaves it as bytes.
        stop_at: with ``stop_at_end``, the offset to end at where that comes first.
        take_fingerprint: makes what records are recognised by after a reconnect.
        hosts: how many hosts may be asked; one that ends before the position is believed when
            there is no other.
    """

    label: str
    topic_id: int
    stop_at_end: bool
    max_fetch_bytes: int
    prefetch_bytes: int
    poll_interval: float
    take_fingerprint: TakeFingerprint
    reset_on_truncation: bool = False
    on_opaque: Literal["raise", "skip", "bytes"] = "raise"
    mode: Literal["auto", "push", "poll"] = "auto"
    subscriber: int = 1
    held: bool = False
    request_timeout: float = 30.0
    codec: "Codec | None" = None
    stop_at: int | None = None
    hosts: int = 1
