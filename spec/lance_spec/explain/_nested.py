"""Explaining one message that nests, by watching its codec read."""

from collections.abc import Iterator

from lance_spec.checksum import Buffer
from lance_spec.codec.composed import codec
from lance_spec.explain._fluvio import explain_batches
from lance_spec.explain._model import Explanation, Part
from lance_spec.explain._values import size
from lance_spec.explain._watched import MOST, Watched
from lance_spec.ir.families import composed


def explain_message(name: str, data: Buffer, version: int = 0, *, most: int = MOST) -> Explanation:
    """Explain bytes as one message that nests: of a group, or of another system.

    Never raises for what the bytes are: it goes as far as they make sense and names the fault.

    Args:
        name: family and message, for example ``fluvio.ProduceRequest``.
        data: the message, without what frames it.
        version: version of the protocol that it is written in, where there are versions.
        most: show at most this many fields.

    Raises:
        KeyError: no family has such a message.
    """
    length = memoryview(data).nbytes
    title = f"{name}, {size(length)}"
    parts = explain_parts(title, name, data, version=version, most=most)
    return Explanation(length, None, tuple(parts))


def explain_part(
    title: str, name: str, data: Buffer, *, start: int = 0, version: int = 0, most: int = MOST
) -> Part:
    """Explain the bytes from ``start`` to the end of ``data`` as one message that nests.

    Raises:
        KeyError: no family has such a message.
    """
    return next(explain_parts(title, name, data, start=start, version=version, most=most))


def explain_parts(
    title: str, name: str, data: Buffer, *, start: int = 0, version: int = 0, most: int = MOST
) -> Iterator[Part]:
    """Explain them, and then the records of each batch among them.

    Raises:
        KeyError: no family has such a message.
    """
    family = composed().get(name.partition(".")[0])
    if family is None:
        raise KeyError(f"no family for {name!r}; there are {', '.join(composed())}")
    family.message(name.partition(".")[2])
    watched = Watched(family, data, version)
    yield watched.explain(title, codec(name), start, whole=name, most=most)
    yield from explain_batches(watched, most)
