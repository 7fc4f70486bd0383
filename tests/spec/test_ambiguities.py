"""The ambiguity register is complete, well formed, and the only source of its ids."""

import re
from pathlib import Path

import pytest

import lance_spec
from lance_spec import ambiguities
from lance_spec.ir.families import families, messages

ID = re.compile(r"\b(?:AMB|SF|FLV|RL|SPK|CLU)-\d\d\b")
ROW = """[[row]]
id = "AMB-01"
question = "Which?"
readings = ["This", "That"]
known = "Nobody knows."
choice = "This."
sections = ["LWP section 1"]
"""


def refusal(text: str) -> str:
    """The error that parsing a register raises, as text."""
    with pytest.raises(ambiguities.RegisterError) as caught:
        ambiguities.parse(text)
    return str(caught.value)


def test_a_row_reads_as_it_is_written() -> None:
    """Every field arrives under its name."""
    (row,) = ambiguities.parse(ROW)
    assert row.readings == ("This", "That")
    assert row.sections == ("LWP section 1",)


@pytest.mark.parametrize(
    ("series", "count"), [("AMB", 61), ("SF", 42), ("FLV", 2), ("RL", 1), ("SPK", 1), ("CLU", 1)]
)
def test_each_series_is_numbered_without_gaps(series: str, count: int) -> None:
    """Rows are added at the end of their series, and none is missing."""
    numbers = [row.id for row in ambiguities.load() if row.id.startswith(f"{series}-")]
    assert numbers == [f"{series}-{number:02}" for number in range(1, count + 1)]


def test_texts_are_questions_and_sentences() -> None:
    """A question ends with its mark, an answer with a full stop."""
    for row in ambiguities.load():
        assert row.question.endswith("?"), row.id
        assert row.known.endswith("."), row.id
        assert row.choice.endswith("."), row.id


def test_rows_refer_to_rows_that_exist() -> None:
    """No row sends its reader to nowhere."""
    known = {row.id for row in ambiguities.load()}
    for row in ambiguities.load():
        text = " ".join([row.question, *row.readings, row.known, row.choice, *row.sections])
        assert set(ID.findall(text)) <= known, row.id


def test_the_grammar_cites_rows_that_exist() -> None:
    """Every id that a message, field or frame form gives is a row."""
    known = {row.id for row in ambiguities.load()}
    cited: set[str] = set()
    for subject in messages().values():
        cited |= {*subject.ambiguities, *ID.findall(subject.section)}
        for field in subject.fields:
            cited |= {*field.facts.ambiguities, *ID.findall(field.facts.section)}
    for family in families().values():
        cited |= {each for form in family.frames for each in form.ambiguities}
    assert cited <= known


def test_the_package_cites_rows_that_exist() -> None:
    """Every id in a docstring or comment of the grammar floor is a row."""
    known = {row.id for row in ambiguities.load()}
    for file in Path(lance_spec.__file__).parent.rglob("*.py"):
        assert set(ID.findall(file.read_text())) <= known, file.name


def test_a_row_is_found_by_its_id() -> None:
    """The id is the name that everything else uses."""
    assert ambiguities.find("AMB-05").id == "AMB-05"


def test_an_id_without_a_row_is_refused() -> None:
    """A misspelt id does not pass."""
    with pytest.raises(KeyError, match="AMB-99"):
        ambiguities.find("AMB-99")


def test_two_rows_cannot_share_an_id() -> None:
    """An id names one question."""
    assert "AMB-01" in refusal(ROW + ROW)


@pytest.mark.parametrize("name", ["id", "question", "readings", "known", "choice", "sections"])
def test_a_missing_field_is_named(name: str) -> None:
    """The error says which row lacks what."""
    text = "".join(line for line in ROW.splitlines(True) if not line.startswith(f"{name} ="))
    message = refusal(text)
    assert message.startswith("row 1")
    assert f"{name} is missing" in message


def test_an_unknown_field_is_named() -> None:
    """A misspelt field does not vanish."""
    assert "chioce is unknown" in refusal(ROW + 'chioce = "x"\n')


@pytest.mark.parametrize("value", ['"text"', "[]", "[1]", '[""]'])
def test_readings_are_a_list_of_texts(value: str) -> None:
    """One reading is a list too."""
    assert "list of texts" in refusal(ROW.replace('["This", "That"]', value))


@pytest.mark.parametrize("value", ["1", '""', '" padded "'])
def test_a_text_is_a_text(value: str) -> None:
    """Numbers, nothing and stray spaces are slips."""
    assert "question must be a text" in refusal(ROW.replace('"Which?"', value))


def test_what_is_no_toml_is_refused() -> None:
    """A syntax error is reported with its line."""
    assert "line 1" in refusal("row = = 1")
