"""Hypothesis strategies by family: whole frames, streams of them, and messages with one fault.

They need the ``test`` extra. The families are ``lwp``, ``groups``, ``engine``, ``store_forward``,
``replication``, ``qwp``, ``fluvio`` and ``rustlog``.
"""

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from lance_spec.checksum import CRC32C
from lance_spec.codec.composed import codec
from lance_spec.dialect import SPECIFIED, Dialect
from lance_spec.faults import Fault, faults
from lance_spec.fluvio.apis import APIS, Api
from lance_spec.frames import encode_control
from lance_spec.ir import families
from lance_spec.ir.nodes import Message
from lance_spec.messages import fluvio, groups, qwp, rustlog
from lance_spec.messages.store_forward import StoredBatch
from lance_spec.qwp.upgrade import payload_class
from lance_spec.records import encode_record
from lance_spec.strategies import composed as composed_strategies
from lance_spec.strategies.frames import encoded, records
from lance_spec.strategies.frames import frames as lwp_frames

_MOST: Final = 4


def frames(family: str, dialect: Dialect = SPECIFIED) -> st.SearchStrategy[bytes]:
    """Return whole frames of a family, all of them valid.

    What a frame is depends on the family: a frame of LWP, a Control frame of a consumer group, an
    entry after the header of a sidecar, a frame of a slot's segment, a record of a cluster's log,
    a QWP message, a request of Fluvio or RustLog after its length.

    Args:
        family: the family's name.
        dialect: the dialect of LWP frames.

    Raises:
        KeyError: there is no such family; the text lists those there are.
    """
    if family == "lwp":
        return lwp_frames(dialect)
    if family == "groups":
        return _group_frames(dialect)
    try:
        return _FRAMES[family]()
    except KeyError:
        known = ", ".join(("lwp", "groups", *_FRAMES))
        raise KeyError(f"no family {family!r}; there are {known}") from None


def streams(family: str, dialect: Dialect = SPECIFIED) -> st.SearchStrategy[tuple[bytes, ...]]:
    """Return frames of a family as they follow each other on a connection or in a file.

    For ``engine`` and ``store_forward`` the first element is the file's header. Joined, they are
    the stream; `lance_spec.strategies.frames.cuts` cuts it anywhere.

    Raises:
        KeyError: there is no such family.
    """
    several = st.lists(frames(family, dialect), min_size=1, max_size=_MOST).map(tuple)
    if family not in _HEADERS:
        return several
    header = encoded(_HEADERS[family])
    return st.tuples(header, several).map(lambda both: (both[0], *both[1]))


def mutated(field: str, version: int = 0) -> st.SearchStrategy[Fault]:
    """Return messages with one fault, which is in one field.

    Args:
        field: message and field, ``Header.magic`` or ``fluvio.Batch.crc``.
        version: version of the protocol, where there are versions.

    Raises:
        KeyError: there is no such message or field.
    """
    name, _, own = field.rpartition(".")
    subject = families.message(name)
    subject.field(own)
    valid = _valid(name, subject, version)
    return valid.flatmap(lambda data: _one_fault(name, data, version, own))


def _valid(name: str, subject: Message, version: int) -> st.SearchStrategy[bytes]:
    if "." not in name:
        return encoded(name).map(lambda data: _sealed(name, data))
    drawn = composed_strategies.composed(name, version)
    passed = (version,) if subject.versioned else ()
    return drawn.map(lambda value: bytes(value.encode(*passed)))


def _sealed(name: str, data: bytes) -> bytes:
    """Make the checksum of a flat message right, where it has one."""
    family = next(n for n, f in families.families().items() if name in {m.name for m in f.messages})
    value = codec(f"{family}.{name}").decode(data)
    return bytes(value.with_crc().encode()) if hasattr(value, "with_crc") else data


def _one_fault(name: str, data: bytes, version: int, own: str) -> st.SearchStrategy[Fault]:
    found = [each for each in faults(name, data, version) if each.field == own]
    return st.sampled_from(found) if found else st.nothing()


@st.composite
def _group_frames(draw: st.DrawFn, dialect: Dialect) -> bytes:
    command, (form, *_) = draw(st.sampled_from(list(groups.PAYLOADS.items())))
    payload = draw(composed_strategies.composed(f"groups.{form.__name__}")).encode()
    return encode_control(dialect, command, payload)


@st.composite
def _slot_frames(draw: st.DrawFn) -> bytes:
    batch = draw(records().filter(bool))
    payload = StoredBatch(
        topic_number=draw(st.integers(0, 2**32 - 1)),
        batch_id=draw(st.integers(1, 2**64 - 1)),
        timestamp_ns=draw(st.integers(0, 2**64 - 1)),
        record_count=len(batch),
        records=b"".join(encode_record(value, kind) for kind, value in batch),
    ).encode()
    length = len(payload).to_bytes(4, "little")
    return CRC32C(length + payload).to_bytes(4, "little") + length + payload


def _log_records() -> st.SearchStrategy[bytes]:
    return composed_strategies.composed("replication.LogRecord").map(lambda one: one.encode())


@st.composite
def _qwp_messages(draw: st.DrawFn) -> bytes:
    flags = draw(st.sampled_from([0x00, 0x04, 0x08, 0x09, 0x0C]))
    form = payload_class(flags)
    payload = draw(composed_strategies.composed(f"qwp.{form.__name__}"))
    return qwp.QwpMessage(
        flags=flags, table_count=len(payload.tables), payload=payload.encode()
    ).encode()


@st.composite
def _fluvio_requests(draw: st.DrawFn) -> bytes:
    api: Api = draw(st.sampled_from(APIS))
    version = draw(st.integers(*api.versions))
    body: Any = draw(composed_strategies.composed(f"fluvio.{api.request}", version))
    versioned = families.message(f"fluvio.{api.request}").versioned
    request = fluvio.Request(
        api_key=api.key,
        api_version=version,
        correlation_id=draw(st.integers(0, 2**31 - 1)),
        client_id="strategy",
        body=body.encode(version) if versioned else body.encode(),
    )
    return fluvio.Frame(body=request.encode()).encode()


@st.composite
def _rustlog_requests(draw: st.DrawFn) -> bytes:
    every = families.composed()["rustlog"].messages
    names = [each.name for each in every if each.name.endswith("Request") or each.name == "Ping"]
    message = draw(composed_strategies.composed(f"rustlog.{draw(st.sampled_from(names))}"))
    return rustlog.Frame(payload=message.encode()).encode()


_FRAMES: Final[dict[str, Callable[[], st.SearchStrategy[bytes]]]] = {
    "engine": lambda: encoded("SidecarEntry").map(lambda data: _sealed("SidecarEntry", data)),
    "store_forward": _slot_frames,
    "replication": _log_records,
    "qwp": _qwp_messages,
    "fluvio": _fluvio_requests,
    "rustlog": _rustlog_requests,
}
_HEADERS: Final = {"engine": "SidecarHeader", "store_forward": "SegmentHeader"}
