"""A Fetch that is answered by one compiled call: where it is, and what is left alone."""

import os
from array import array
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from struct import pack

import pytest

from lance_spec import frames
from lance_spec._native import accelerator
from lance_spec.checksum import CRC32C
from lance_spec.dialect import DEPLOYED, SPECIFIED, Dialect

pytestmark = pytest.mark.skipif(
    accelerator is None, reason="the compiled loops were not built (no C compiler)"
)

PREFIX = frames._CONTROL_PREFIXES["crc32c"]
COLUMNS = (
    array("Q", [0, 8]),
    array("Q", [8, 30]),
    array("I", [1, 2]),
    array("I", [3, 4]),
    bytearray(2),
    bytearray(b"\1\1"),
    [],
)
PLACE = (COLUMNS, 100, 30, 30)
FORM = (PREFIX, 0x11, True, CRC32C.compute, True)


def with_columns(columns: dict[int, object], *rest: int) -> tuple[object, ...]:
    """Return the place with other columns, and perhaps other numbers after them."""
    changed = tuple(columns.get(number, column) for number, column in enumerate(COLUMNS))
    return (changed, *(rest or PLACE[1:]))


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[int]:
    """Return the descriptor of a file that can be read from memory alone."""
    descriptor = os.open(tmp_path / "stored", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, bytes(range(30)))
    try:
        os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
    except OSError as error:
        pytest.skip(f"the file system cannot read without waiting: {error.strerror}")
    yield descriptor
    os.close(descriptor)


def reads_without_waiting(path: Path) -> bool:
    """Whether a file can be read from memory alone."""
    try:
        with path.open("rb") as file:
            return os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT) == 1
    except OSError:
        return False


@pytest.mark.parametrize("dialect", [SPECIFIED, DEPLOYED], ids=lambda each: each.name)
def test_a_fetch_is_answered_with_whole_batches(dialect: Dialect, stored: int) -> None:
    """The header, the fields before the data and the data are what is encoded piece by piece."""
    checksum = dialect.checksum
    prefix = frames._CONTROL_PREFIXES[checksum.name]
    for start, most, end, count in ((0, 29, 8, 1), (0, 30, 30, 3), (8, 2**32 - 1, 30, 2)):
        for counted in (True, False):
            form = (prefix, 0x11, counted, checksum.compute, checksum is CRC32C)
            data = bytes(range(start, end))
            payload = pack("<QLL", 100 + end, len(data), count if counted else 1) + data
            assert accelerator.answer_fetch(
                stored, PLACE, form, 100 + start, most
            ) == frames.encode_control(dialect, 0x11, payload)


@pytest.mark.parametrize(
    ("place", "start", "most"),
    [
        (PLACE, 99, 30),
        (PLACE, 101, 30),
        (PLACE, 130, 30),
        (PLACE, 2**64 - 1, 30),
        (PLACE, 100, 7),
        (PLACE, 100, 0),
        ((COLUMNS, 100, 29, 30), 108, 30),
        (with_columns({5: bytearray(b"\1\0")}), 100, 30),
        (with_columns({5: bytearray(b"\1\0")}), 108, 30),
        (with_columns({4: bytearray(b"\1\0")}), 100, 30),
        (with_columns({4: bytearray(b"\2\0")}), 100, 30),
        (with_columns({0: array("Q", [8, 8]), 1: array("Q", [4, 4])}), 108, 22),
        (with_columns({0: array("Q", [8, 9]), 1: array("Q", [2**63, 9]), 6: [1]}), 108, 22),
        (with_columns({2: array("I", [2**32 - 1] * 2)}), 100, 30),
        (with_columns({0: array("Q", [0]), 1: array("Q", [31])}, 100, 31, 31), 100, 31),
        (with_columns({0: array("Q", [0]), 1: array("Q", [2**62])}, 100, 2**63, 2**63), 100, 2**63),
        (
            (
                (array("Q"), array("Q"), array("I"), array("I"), bytearray(), bytearray(), []),
                0,
                0,
                0,
            ),
            0,
            9,
        ),
    ],
)
def test_what_is_no_usual_fetch_is_left_alone(
    stored: int, place: tuple[object, ...], start: int, most: int
) -> None:
    """Between batches, too large, not compared, damaged, beyond the file, or no order at all."""
    assert accelerator.answer_fetch(stored, place, FORM, start, most) is None


def test_a_descriptor_that_cannot_be_read_is_left_alone(stored: int) -> None:
    """What the system says to it is for the ordinary way to word."""
    left, right = os.pipe()
    for descriptor in (-2, 2**31, 2**31 - 1, left, right):
        assert accelerator.answer_fetch(descriptor, PLACE, FORM, 100, 30) is None
    os.ftruncate(stored, 29)
    assert accelerator.answer_fetch(stored, PLACE, FORM, 100, 30) is None
    assert accelerator.answer_fetch(stored, PLACE, FORM, 100, 8) is not None
    os.close(left)
    os.close(right)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        ((0, PLACE[:-1], FORM, 100, 30), TypeError),
        ((0, list(PLACE), FORM, 100, 30), TypeError),
        ((0, PLACE, FORM[:-1], 100, 30), TypeError),
        ((0, PLACE, (PREFIX[:-1], *FORM[1:]), 100, 30), TypeError),
        ((0, PLACE, (None, *FORM[1:]), 100, 30), TypeError),
        ((None, PLACE, FORM, 100, 30), TypeError),
        ((2**80, PLACE, FORM, 100, 30), OverflowError),
        ((0, PLACE, FORM, -1, 30), OverflowError),
        ((0, PLACE, FORM, 100, 2**64), OverflowError),
        ((0, (COLUMNS, None, 30, 30), FORM, 100, 30), TypeError),
        ((0, (COLUMNS, 100, -1, 30), FORM, 100, 30), OverflowError),
        ((0, with_columns({6: ()}), FORM, 100, 30), TypeError),
        ((0, with_columns({6: ["x"]}), FORM, 100, 30), TypeError),
        ((0, (None, *PLACE[1:]), FORM, 100, 30), TypeError),
        ((0, (COLUMNS[:-1], *PLACE[1:]), FORM, 100, 30), TypeError),
        ((0, with_columns({0: None}), FORM, 100, 30), TypeError),
        *(
            ((0, with_columns({at: COLUMNS[at][:1]}), FORM, 100, 30), ValueError)
            for at in range(1, 6)
        ),
        ((0, PLACE, (PREFIX, -1, *FORM[2:]), 100, 30), OverflowError),
    ],
)
def test_what_is_no_place_or_form_is_refused(arguments: tuple[object, ...], error: type) -> None:
    """Whatever is wrong is an exception, and never a read outside the columns."""
    with pytest.raises(error):
        accelerator.answer_fetch(*arguments)


def test_a_checksum_that_fails_is_reported(stored: int) -> None:
    """An exception of the checksum function comes out as it is."""
    form = (*FORM[:3], lambda _: 1 // 0, False)
    with pytest.raises(ZeroDivisionError):
        accelerator.answer_fetch(stored, PLACE, form, 100, 30)


@pytest.mark.parametrize("sizes", [[16_384], [20_000, 30_001], [16_384, 1], [70_000, 16_390, 3]])
def test_the_checksum_is_that_of_all_bytes(sizes: list[int], tmp_path: Path) -> None:
    """Put together from those of large batches, or computed: it is the same."""
    data = os.urandom(sum(sizes))
    ends = list(accumulate(sizes))
    starts = [0, *ends[:-1]]
    crcs = [CRC32C.compute(data[start:end]) for start, end in zip(starts, ends, strict=True)]
    numbers = array("Q", starts), array("Q", ends), array("I", [1] * len(sizes)), array("I", crcs)
    flags = bytearray(len(sizes)), bytearray(b"\1" * len(sizes))
    place = ((*numbers, *flags, []), 0, len(data), len(data))
    (tmp_path / "stored").write_bytes(data)
    with (tmp_path / "stored").open("rb") as file:
        found = accelerator.answer_fetch(file.fileno(), place, FORM, 0, len(data))
    payload = pack("<QLL", len(data), len(data), len(sizes)) + data
    assert found in (frames.encode_control(SPECIFIED, 0x11, payload), None)
    assert found is not None or not reads_without_waiting(tmp_path / "stored")


def test_bytes_that_changed_on_the_disk_do_not_match_their_checksum(tmp_path: Path) -> None:
    """A batch was compared when it was first read; whoever receives it finds later damage."""
    data = bytes(20_000)
    crc = array("I", [CRC32C.compute(data)])
    index = (array("Q", [0]), array("Q", [20_000]), array("I", [1]), crc, bytearray(1))
    place = ((*index, bytearray(b"\1"), []), 0, 20_000, 20_000)
    (tmp_path / "stored").write_bytes(b"\1" + data[1:])
    with (tmp_path / "stored").open("rb") as file:
        found = accelerator.answer_fetch(file.fileno(), place, FORM, 0, 20_000)
    if found is None:
        pytest.skip("the file system cannot read without waiting")
    splitter = frames.FrameSplitter((SPECIFIED,))
    assert splitter.receive_data(found) == []
    assert splitter.fault is not None
    assert splitter.fault.kind is frames.FaultKind.BAD_PAYLOAD_CRC
