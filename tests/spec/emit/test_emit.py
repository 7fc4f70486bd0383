"""Generated files are what the grammar renders, and say so when they are not."""

import ast
from pathlib import Path

import pytest

import lance_spec
from lance_spec import __main__ as command
from lance_spec.emit import targets

CHECKOUT = Path(__file__).parents[3] / "spec"


def test_committed_files_are_fresh() -> None:
    """What is committed is what the grammar renders today."""
    assert targets.stale(CHECKOUT, targets.targets()) == []


def test_check_passes_on_the_committed_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``emit --check`` is silent when nothing is stale."""
    monkeypatch.setattr(command, "source_root", lambda: CHECKOUT)
    assert command.main(["emit", "--check"]) == 0
    assert capsys.readouterr().out == ""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a fresh copy of every generated file, which the command works on."""
    targets.write(tmp_path, targets.targets())
    monkeypatch.setattr(command, "source_root", lambda: tmp_path)
    return tmp_path


def test_check_names_a_file_that_was_edited(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One changed character makes a file stale."""
    edited = copy / "lance_spec" / "messages" / "lwp.py"
    edited.write_text(edited.read_text().replace("44", "45", 1))
    assert command.main(["emit", "--check"]) == 1
    assert capsys.readouterr().out == "stale: lance_spec/messages/lwp.py\n"


def test_check_notices_a_file_that_only_grew(copy: Path) -> None:
    """A longer file is as stale as a changed one."""
    edited = copy / "lance_spec" / "messages" / "engine.py"
    edited.write_text(edited.read_text() + "\n")
    assert command.main(["emit", "--check"]) == 1


def test_check_names_a_file_that_is_missing(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that was never written is stale."""
    (copy / "lance_spec" / "messages" / "engine.py").unlink()
    assert command.main(["emit", "--check"]) == 1
    assert "messages/engine.py" in capsys.readouterr().out


def test_check_writes_nothing(copy: Path) -> None:
    """Checking leaves a stale file as it is."""
    edited = copy / "lance_spec" / "messages" / "engine.py"
    edited.write_text("stale")
    command.main(["emit", "--check"])
    assert edited.read_text() == "stale"


def test_emit_restores_what_was_edited(copy: Path) -> None:
    """Writing makes the next check pass."""
    (copy / "lance_spec" / "messages" / "engine.py").write_text("stale")
    assert command.main(["emit"]) == 0
    assert command.main(["emit", "--check"]) == 0


def test_generated_files_say_where_they_come_from() -> None:
    """The first lines name the generator, so that nobody edits its output."""
    for each in targets.targets():
        assert "python -m lance_spec emit" in "".join(each.text.splitlines()[:2])


def test_an_installed_package_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outside a checkout there is nothing to generate into."""
    installed = tmp_path / "site-packages" / "lance_spec" / "__init__.py"
    monkeypatch.setattr(lance_spec, "__file__", str(installed))
    assert command.main(["emit"]) == 2
    assert "is not a checkout" in capsys.readouterr().err
    assert not installed.parent.parent.exists()


def test_generated_modules_import_no_construct() -> None:
    """What is generated stands on its own."""
    for each in targets.targets():
        if each.path.suffix == ".py":
            imported = {
                node.module
                for node in ast.walk(ast.parse(each.text))
                if isinstance(node, ast.ImportFrom)
            }
            assert not any("construct" in (name or "") for name in imported)
            assert not any("grammar" in (name or "") for name in imported)
