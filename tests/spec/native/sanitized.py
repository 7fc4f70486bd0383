"""Calls every entry point of the compiled loops with structured random arguments.

Run as ``python sanitized.py MODULE SEED CALLS`` with a module that was compiled with address and
undefined-behaviour sanitizers: they end the process where something is wrong. Half of the calls
are as the package makes them; the others have arguments in them that nobody would pass.
``python sanitized.py MODULE FILE…`` runs tests with such a module.
"""

import gc
import importlib.machinery
import importlib.util
import sys
import tempfile
from array import array
from collections.abc import Callable
from inspect import isbuiltin
from itertools import accumulate
from random import Random
from struct import pack
from types import MemberDescriptorType, ModuleType
from typing import Any

Arguments = list[Any]
FINE = (
    NotImplementedError,
    *(TypeError, ValueError, OverflowError, BufferError, NotImplementedError),
    *(AttributeError, ZeroDivisionError, MemoryError),
)
"""What a call may raise; a SystemError is a mistake of the compiled code."""


def load(path: str) -> ModuleType:
    """Have the package use a compiled module of another place."""
    import lance_spec  # noqa: PLC0415 - before anything of it uses the compiled module

    name = "lance_spec._accelerator"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[name] = lance_spec._accelerator = module  # type: ignore[attr-defined]
    return module


class Generator:
    """Makes arguments.

    Args:
        module: the compiled module.
        random: decides.
        descriptor: an open file.
    """

    def __init__(self, module: ModuleType, random: Random, descriptor: int) -> None:
        from lance_spec import frames  # noqa: PLC0415
        from lance_spec.checksum import CRC32C  # noqa: PLC0415
        from lance_spec.codec import ingest_runs  # noqa: PLC0415
        from lance_spec.dialect import SPECIFIED  # noqa: PLC0415

        self._module = module
        self._handle: type = type("Handle", (module.HandleFields,), {"__slots__": ()})
        self._random = random
        self._descriptor = descriptor
        self._frames, self._runs = frames, ingest_runs
        self._dialect, self._crc = SPECIFIED, CRC32C

    def data(self) -> bytes:
        """Return a chain of records, whole, cut, damaged, or none at all."""
        random = self._random
        values = [
            random.randbytes(random.choice([0, 1, 9, 200])) for _ in range(random.randrange(5))
        ]
        raw = bytearray(b"".join(pack("<BL", 1, len(each)) + each for each in values))
        return self._damaged(raw)

    def fluvio(self) -> bytes:
        """Return records of Fluvio behind their count, whole, cut or damaged."""
        from lance_spec.fluvio.batches import FluvioRecord, pack_batches  # noqa: PLC0415

        random = self._random
        sizes = [0, 1, 63, 64, 200]
        records = [
            FluvioRecord(
                random.randbytes(random.choice(sizes)),
                random.choice([None, b"", random.randbytes(random.choice(sizes))]),
                10**12 + random.choice([0, 1, 2**30, -(2**30)]),
            )
            for _ in range(random.randrange(5))
        ]
        return self._damaged(bytearray(next(pack_batches(records)).records if records else b""))

    def _damaged(self, raw: bytearray) -> bytes:
        random = self._random
        match random.randrange(4):
            case 0 if raw:
                raw[random.randrange(len(raw))] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
            case 1:
                del raw[random.randint(0, len(raw)) :]
            case 2:
                raw += random.randbytes(random.randrange(9))
        return bytes(raw)

    def buffer(self) -> Any:
        """Return such bytes as one of the types that hold bytes."""
        kind = self._random.choice(
            [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))]
        )
        return kind(self.data())

    def ring(self) -> bytes:
        """Return frames of a ring."""
        bodies = [pack("<L", len(each)) + each for each in (self.data() for _ in range(3))]
        return self._damaged(
            bytearray(b"".join(pack("<L", self._crc(body)) + body for body in bodies))
        )

    def ingested(self) -> Any:
        """Return a frame as the splitter makes them."""
        random, payload = self._random, self.data()
        kind = random.choice(list(self._frames.FrameKind))
        numbers = [random.choice([0, 1, 5, 2**40, 2**64 - 1]) for _ in range(2)]
        frame = self._frames.Frame(
            kind,
            random.randrange(256),
            *numbers,
            random.choice([0, 1, 2**32 - 1]),
            random.choice([0, 1]),
            memoryview(payload),
            self._crc(payload),
        )
        if random.random() < 0.05:
            frame.payload.release()
        return frame

    def columns(self) -> Arguments:
        """Return an index of batches."""
        random = self._random
        sizes = [random.choice([1, 9, 20_000, 2**40]) for _ in range(random.randrange(6))]
        ends = list(accumulate(sizes))
        starts = [end - size for end, size in zip(ends, sizes, strict=True)]
        count = len(sizes)
        found: Arguments = [array("Q", starts), array("Q", ends)]
        found += [array("I", [random.randrange(2**32) for _ in sizes]) for _ in range(2)]
        found += [
            bytearray(random.choices([0, 0, 0, 1], k=count)),
            bytearray(random.choices([1, 1, 0], k=count)),
        ]
        found.append(sorted(random.sample(range(9), random.randrange(3))))
        if random.random() < 0.2:
            found[random.randrange(6)] = random.choice(
                [bytearray(1), array("Q", [2**64 - 1] * 3), b""]
            )
        return found

    def stream(self) -> memoryview:
        """Return frames on the wire."""
        parts = []
        for _ in range(self._random.randrange(4)):
            payload = self.data()
            flags = self._random.choice([1, 2, 4, 8, 32, 255])
            parts.append(
                self._frames.encode_header(self._dialect, flags, payload=payload) + payload
            )
        return memoryview(self._damaged(bytearray(b"".join(parts))))

    def splitting(self) -> Arguments:
        """Return the arguments of `split_frames`."""
        stream = self.stream()
        known = self._frames.plain_prefixes(self._dialect)
        place = self._random.choice([0, 0, 0, len(stream), 1])
        function = self._random.choice([self._crc.compute, self._crc.compute, self.raising])
        limit = self._random.choice([2**24, 50])
        return [
            stream,
            place,
            known,
            limit,
            function,
            function == self._crc.compute,
            memoryview(b""),
            self._frames.Frame,
            [],
        ]

    @staticmethod
    def raising(_: object) -> int:
        """Raise, as a checksum function may."""
        return 1 // 0

    def answering(self) -> Arguments:
        """Return the arguments of `answer_fetch`."""
        base = self._random.choice([0, 100])
        start = base + self._random.choice([0, 1, 9, 20_000])
        place = (tuple(self.columns()), base, 50_000, self._random.choice([0, 30, 50_000]))
        form = (self._frames._CONTROL_PREFIXES["crc32c"], 0x11, True, self._crc.compute, True)
        return [self._descriptor, place, form, start, self._random.choice([1, 100, 10**6])]

    def batcher(self) -> Arguments:
        """Return the arguments of `add_to_batch`."""
        batcher = self._module.BatcherFields()
        if self._random.random() < 0.9:
            batcher.values = self._random.choice([[], [], [b"x"], (), None])
            batcher.last = object()
        batcher.bound = self._random.choice([100, 10**6, 2**63 - 1, -1])
        batcher.plain_type = self._random.choice([1, 1, -1])
        batcher.used = self._random.choice([0, 50, 2**63 - 1, 2**63 - 3, -1, -(2**63)])
        number = self._random.choice([1, 1, 0, 255, 2**70, -(2**70)])
        return [batcher, self._random.choice([b"", b"value", "text"]), number, self._handle]

    def number(self) -> int:
        """Return a number of 64 bits."""
        return self._random.choice([0, 1, 2**31, 2**63, 2**64 - 1])

    def ingest_frames(self) -> list[Any]:
        """Return some frames of a producer."""
        return [self.ingested() for _ in range(self._random.randrange(5))]

    def counting(self) -> Arguments:
        """Return the arguments of `count_run`."""
        random = self._random
        return [
            self.ingest_frames(),
            random.randrange(3),
            random.randrange(5),
            random.choice([0, 1]),
            self.number(),
            self._frames.FrameKind.INGEST,
            self._runs._ODD,
            random.random() < 0.5,
        ]

    def gathering(self) -> Arguments:
        """Return the arguments of `gather_run`."""
        return [
            self.ingest_frames(),
            self.number(),
            self._random.randrange(4),
            bytearray(),
            bytearray(self._random.choice([0, 64])),
        ]

    def calls(self) -> dict[str, Callable[[], Arguments]]:
        """Return what makes the arguments of each entry point."""
        random = self._random
        number = self.number
        return {
            "scan_records": lambda: [self.buffer()],
            "record_bounds": lambda: [self.buffer()],
            "part_records": lambda: [self.buffer(), self.buffer()],
            "decode_records": lambda: [self.buffer()],
            "follow_ring": lambda: [
                self.ring(),
                random.choice([0, 0, 8, 10**9]),
                self._crc.compute,
            ],
            "split_frames": self.splitting,
            "count_run": self.counting,
            "gather_run": self.gathering,
            "seal_entries": lambda: [
                bytearray(random.randbytes(random.choice([0, 63, 64, 200]))),
                number(),
                number(),
                self._crc.compute,
            ],
            "whole_batches": lambda: [
                *self.columns(),
                random.choice([0, 1, 9]),
                random.choice([10, 50_000, 2**64 - 1]),
            ],
            "answer_fetch": self.answering,
            "keep_freed": lambda: [random.choice([1 << 20, 64 << 20]), 1 << 20],
            "give_back": list,
            "fluvio_to_log": lambda: [
                self.fluvio(),
                random.choice([-1, 0, 10**12, 2**63 - 1, -(2**63), 2**70]),
                random.choice([0, 40, 10**6, 2**63 - 1, -1]),
            ],
            "write_each": lambda: [
                [
                    (-1, self.buffer(), random.choice([0, 5, 2**63 - 1]))
                    for _ in range(random.randrange(4))
                ]
            ],
            "unfilled": lambda: [random.choice([0, 1, 70_000])],
            "add_to_batch": self.batcher,
            "join_records": lambda: [
                [self.data() for _ in range(random.randrange(4))],
                random.choice([1, 255, 256, -1]),
            ],
        }

    def hostile(self) -> Any:
        """Return something that nobody would pass."""
        released = memoryview(b"gone")
        released.release()
        several = memoryview(bytearray(24)).cast("B", (4, 6))
        return self._random.choice(
            [
                None,
                0,
                -1,
                2**31,
                2**63 - 1,
                2**64,
                -(2**70),
                1.5,
                "text",
                b"",
                b"abc",
                bytearray(5),
                released,
                several,
                memoryview(b"abcdef")[::2],
                [],
                [None],
                {},
                {b"": 1},
                (),
                (1, 2),
                object(),
                array("Q", [1, 2]),
                self.raising,
                lambda _: "no number",
                int,
                self._handle,
                self._module.BatcherFields(),
                self._frames.Frame,
                self._frames.Frame.__new__(self._frames.Frame),
                self.ingested(),
                range(3),
            ]
        )


def check_unusual_records(module: ModuleType) -> None:
    """A batch that says nothing, or nonsense, of how full it is, and odd types, need a look."""
    cases = [(0, 1), (2**63 - 1, 1), (-1, 1), (0, 2**70), (0, 2)]
    for used, record_type in cases:
        batcher, values = module.BatcherFields(), list[bytes]()
        batcher.last, batcher.values = object(), values
        batcher.used, batcher.bound, batcher.plain_type = used, 2**63 - 1, 1
        handle = module.add_to_batch(batcher, b"value", record_type, module.HandleFields)
        is_usual = (used, record_type) == cases[0]
        assert (handle is not None, len(values)) == (is_usual, int(is_usual)), (used, record_type)
        assert not is_usual or batcher.used == 10


def check_fields(module: ModuleType) -> None:
    """The fields of the types hold what they are given, or say what they cannot hold."""
    for base in module.FrameFields, module.BatcherFields, module.HandleFields:
        kind = type("Derived", (base,), {"__slots__": ("more",)})
        names = [name for name in dir(base) if type(getattr(base, name)) is MemberDescriptorType]
        for name in names:
            for value in (object(), 1, -1, 2**64 - 1, 2**70, [], kind()):
                holder = kind()
                try:
                    setattr(holder, name, value)
                    assert getattr(holder, name) == value
                    delattr(holder, name)
                except FINE:
                    continue
        holder = kind()
        holder.more = holder  # of itself: the collector finds it
    gc.collect()


def main() -> None:
    """Make so many calls, and tell how many succeeded."""
    module = load(sys.argv[1])
    if not sys.argv[2].isdecimal():
        import pytest  # noqa: PLC0415 - after `load`

        chosen = ["-k", "not outside_its_buffers and not left_out"]
        sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *chosen, *sys.argv[2:]]))
    check_unusual_records(module)
    check_fields(module)
    random, calls = Random(int(sys.argv[2])), int(sys.argv[3])
    with tempfile.TemporaryFile() as file:
        file.write(random.randbytes(60_000))
        file.flush()
        generator = Generator(module, random, file.fileno())
        makers = generator.calls()
        offered = {name for name, each in vars(module).items() if isbuiltin(each)}
        assert offered == set(makers), offered ^ set(makers)
        succeeded = dict.fromkeys(makers, 0)
        for _ in range(calls):
            name = random.choice(list(makers))
            arguments = makers[name]()
            if random.random() < 0.5:
                for _ in range(random.choice([1, 1, 2])):
                    arguments.insert(random.randint(0, len(arguments)), generator.hostile())
                    if random.random() < 0.9:
                        del arguments[random.randrange(len(arguments))]
            try:
                getattr(module, name)(*arguments)
            except FINE:
                continue
            succeeded[name] += 1
    assert all(succeeded.values()), succeeded
    print(sum(succeeded.values()), "of", calls, "calls succeeded")  # noqa: T201 - a program


if __name__ == "__main__":
    main()
