"""The two polynomials in use on LWP connections (LWP section 9, AMB-01).

The specification asks for CRC32C; the published server and clients compute IEEE CRC-32.
Which one a connection speaks is an axis of its dialect, never a hard-coded call.
"""

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Checksum:
    """A named 32-bit checksum; call it with bytes.

    Attributes:
        name: ``crc32c`` or ``ieee``.
        compute: the function; takes any buffer and returns an unsigned 32-bit integer.
    """

    name: str
    compute: Callable[[Buffer], int] = field(repr=False, compare=False)

    def __call__(self, data: Buffer) -> int:
        """Return the checksum of ``data`` as an unsigned 32-bit integer."""
        return self.compute(data)


def _castagnoli() -> Callable[[Buffer], int]:
    """Return the compiled function of the package `crc32c`, without the package's own modules.

    Those load argparse, csv, email and zipfile, which takes longer than all of the client.
    """
    package = PathFinder.find_spec("crc32c")
    places = package and package.submodule_search_locations
    found = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if found is None or found.loader is None or found.name in sys.modules:
        import crc32c  # noqa: PLC0415 - it is loaded, or laid out in another way

        return crc32c.crc32c
    module = module_from_spec(found)
    found.loader.exec_module(module)
    sys.modules[found.name] = module  # so that importing the package uses this one
    function: Callable[[Buffer], int] = module.crc32c
    return function


CRC32C = Checksum("crc32c", _castagnoli())
"""Castagnoli, as LWP section 9.1 asks."""

CRC32_IEEE = Checksum("ieee", zlib.crc32)
"""IEEE 802.3, as the published server and clients compute."""
