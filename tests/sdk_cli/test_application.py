"""The command group: help, shared options, usage errors, commands of other packages."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from lance_sdk.cli import _app, _settings
from lance_server import running

Call = Callable[..., Result]
BUILT_IN = [
    *("topics", "produce", "consume", "tail", "replay"),
    *("ping", "status", "pipeline", "bench", "explain"),
]

HELLO = """
import click
from lance_sdk.cli._settings import common_options, current_settings

@click.command()
@common_options
def command():
    '''Say hello.'''
    settings = current_settings()
    shared = ["url", "dialect", "timeout", "json", "verbosity"]
    click.echo([getattr(settings, name) for name in shared])
"""


@pytest.fixture
def settings_of(lwp: Call, add_package: Callable[[str, str], None]) -> Callable[..., str]:
    """What a command is told by the options on the line."""
    add_package("hello", HELLO)

    def call(*arguments: str) -> str:
        result = lwp(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    return call


def test_help_lists_every_command_in_the_order_of_work(lwp: Call) -> None:
    """Topics first, then records, then looking inside."""
    names = re.findall(
        r"^  (\w+) ", lwp("--help").stdout.split("Topics and records:")[1], re.MULTILINE
    )
    assert [name for name in names if name in BUILT_IN] == BUILT_IN


def test_no_command_stands_outside_a_section(lwp: Call) -> None:
    """Also none of those that other packages of this distribution bring."""
    assert "Others:" not in lwp("--help").stdout


def commands() -> list[list[str]]:
    """Return the words of each command, and of each command of a group, that takes options."""
    found: list[list[str]] = []
    context = click.Context(_app.lwp)
    for name in _app.lwp.list_commands(context):
        command = _app.lwp.get_command(context, name)
        if command is None or name in {"vectors", "cluster"}:
            continue
        found.append([name])
        if isinstance(command, click.Group):
            found += [[name, each] for each in command.list_commands(context)]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_help_of_each_command_tells_its_options_from_the_shared_ones(
    words: list[str], lwp: Call
) -> None:
    """Whoever looks for what a command does need not read how it connects."""
    text = lwp(*words, "--help").stdout
    assert text.count("\nConnection:\n") == text.count("  --url URL")
    assert "\nOutput:\n" in text
    assert "  --url" not in text.split("\nOptions:\n")[-1].split("\nConnection:\n")[0]


def test_help_tells_every_exit_code(lwp: Call) -> None:
    """A script's author need not guess."""
    epilog = lwp("--help").stdout.split("Exit codes:")[1]
    assert re.findall(r"^ +(\d+)  ", epilog, re.MULTILINE) == ["0", "1", "2", "3", "130", "143"]


@pytest.mark.parametrize(
    "command", [*BUILT_IN, "completion", "demo", "topics create", "topics list"]
)
def test_every_command_explains_itself(lwp: Call, command: str) -> None:
    """With its own options and the shared ones."""
    result = lwp(*command.split(), "--help")
    assert result.exit_code == 0
    for option in ("--url", "--dialect", "--timeout", "--token", "--tls-ca", "--json", "--quiet"):
        assert option in result.stdout


def test_the_version_is_that_of_the_distribution(lwp: Call) -> None:
    """Name and number on one line."""
    assert re.fullmatch(r"lwp \d+\.\d+\.\d+\S*\n", lwp("--version").stdout)


def test_shared_options_stand_before_or_behind_the_command(
    settings_of: Callable[..., str],
) -> None:
    """Either way says the same."""
    before = settings_of("--url", "lance://a", "--timeout", "5s", "--json", "-v", "hello")
    behind = settings_of("hello", "--url", "lance://a", "--timeout", "5", "--json", "-v")
    assert before == behind == "['lance://a', None, 5.0, True, 1]"


def test_the_option_behind_the_command_wins(settings_of: Callable[..., str]) -> None:
    """The one nearest to the end of the line."""
    found = settings_of("--dialect", "deployed", "hello", "--dialect", "specified")
    assert "'specified'" in found


def test_nothing_said_leaves_the_choice_to_url_and_defaults(
    settings_of: Callable[..., str],
) -> None:
    """So that ?dialect= in a URL is not overruled by an option nobody gave."""
    assert settings_of("hello") == "[None, None, None, False, 0]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pingg"], "no such command 'pingg'; did you mean 'ping'? (see 'lwp --help')"),
        (["ping", "--server", "h"], "no such option '--server'. Did you mean '--url'?"),
        (["topics", "create"], "missing argument 'NAME' (see 'lwp topics create --help')"),
        (["topics", "delete", "orders", "-y"], "use --url lance://HOST:PORT or set LANCE_URL"),
        (["topics", "delete", "orders"], "deleting without asking needs a server that you name"),
        (["consume", "lance://h"], "lance://h:1992 names no topic: append one"),
        (["consume", "http://h/t"], "must begin with lance:// or lances://"),
        (["consume", "lance://h/t", "--from", "-1"], "'-1' is neither 'beginning', 'end'"),
        (["ping", "--url", "lance://h:99999"], "expected a port from 1 to 65535"),
        (["ping", "--url", "lance://h?lingr=1"], "did you mean 'linger'?"),
        (["ping", "--timeout", "soon"], "'soon' is not a time such as 500ms"),
        (["produce", "lance://h/t", "--batch", "1 lot"], "'1 lot' is not a size such as 65536"),
        (["produce", "a/b", "--url", "lance://h"], "cannot be a topic's name"),
        (["consume", "lance://h/t", "--from", "2026-01-31T12:00"], "says no time zone; append Z"),
        (["consume", "lance://h/t", "--from", "-5x"], "'5x' is not a time such as 500ms"),
        (["consume", "lance://h/t", "--consumer", "me"], "--consumer and --offsets go together"),
        (["ping", "--url", "lance://h", "--tls-server-name", "n"], "lance://h:1992 has no TLS"),
        (["ping", "--url", "lance://h", "--tls-ca", "/no/file"], "'/no/file' does not exist"),
        (["ping", "--url", "lance://h", "--token", "@/no/file"], "cannot read the token from"),
        (["topics", "retention", "t", "--url", "lance://h"], "nothing to set: give --max-age"),
        (["completion", "tcsh"], "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
        (["topics", "create", "", "--url", "lance://h"], "expected 1 to 255 bytes of UTF-8"),
        (["explain", "4c4"], "3 hexadecimal digits are not a whole number of bytes"),
        (["explain", "xyz"], "'x' is not a hexadecimal digit"),
        (["explain", "@/no/such/file"], "cannot read /no/such/file: No such file"),
        (["demo", "--rows", "0"], "0 is not in the range"),
        (["demo", "--url", "lance://h", "--data-dir", "d"], "--data-dir belongs to the embedded"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    lwp: Call, arguments: list[str], message: str
) -> None:
    """The line says what is wrong and stands on stderr; stdout stays empty."""
    result = lwp(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr)


@pytest.mark.parametrize("arguments", [[], ["topics"]])
def test_a_missing_command_is_answered_with_the_help(lwp: Call, arguments: list[str]) -> None:
    """On stderr: it is wrong usage, exit code 2."""
    result = lwp(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Usage: {' '.join(['lwp', *arguments])} [OPTIONS] COMMAND")
    assert ("\nCommands:\n" if arguments else "\nTopics and records:\n") in result.stderr


def test_a_token_in_a_url_is_not_shown(lwp: Call) -> None:
    """Error messages end up in logs."""
    result = lwp("consume", "lance://s3cret@h")
    assert "s3cret" not in result.stderr


def test_a_package_can_add_a_command(lwp: Call, add_package: Callable[[str, str], None]) -> None:
    """Through the entry point group lance_sdk.commands."""
    add_package("hello", HELLO)
    assert "Say hello." in lwp("--help").stdout
    assert lwp("hello").exit_code == 0


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("raise RuntimeError('out of\\norder')", r"RuntimeError: out of\norder"),
        ("command = 3", "it holds a int and no click command"),
        ("", "has no attribute 'command'"),
    ],
)
def test_a_broken_added_command_says_why_and_disturbs_nobody(
    lwp: Call, add_package: Callable[[str, str], None], source: str, reason: str
) -> None:
    """Help still works; only the broken command fails, with any arguments."""
    add_package("broken", source)
    assert lwp("--help").exit_code == 0
    result = lwp("broken", "--any", "thing")
    assert result.exit_code == 1
    assert reason in result.stderr
    assert "stranger_broken" in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_added_command_cannot_replace_a_built_in_one(
    lwp: Call, add_package: Callable[[str, str], None]
) -> None:
    """Installing a package does not change what lwp consume does."""
    add_package("consume", HELLO)
    assert "Say hello." not in lwp("consume", "--help").stdout


def test_without_click_lwp_names_the_pip_command() -> None:
    """One line on stderr, exit code 2."""
    program = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise ModuleNotFoundError("No module named 'click'", name=name)
sys.meta_path.insert(0, Blocked())
sys.argv = ["lwp", "--help"]
from lance_sdk.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: lwp needs the package 'click'; install it with: pip install 'lance-sdk[cli]'\n"
    )


def test_help_loads_neither_network_nor_drawing() -> None:
    """Start-up stays quick: what a command needs is imported when it runs."""
    heavy = ["asyncio", "anyio", "construct", "lz4", "rich", "ssl"]
    program = f"""
import json, sys
from lance_sdk.cli import main
sys.argv = ["lwp", "--help"]
try:
    main()
except SystemExit:
    print(json.dumps([name for name in {heavy!r} if name in sys.modules]), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert json.loads(done.stderr) == []


def test_without_a_url_the_local_server_is_meant(
    lwp: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every peer's tools do; a bare topic is enough."""
    with running(tmp_path / "data") as server:
        monkeypatch.setattr(_settings, "DEFAULT_URL", server.url)
        assert lwp("topics", "create", "orders").exit_code == 0
        assert lwp("produce", "orders", stdin=b"one\n").exit_code == 0
        assert lwp("consume", "orders", "--quiet").stdout == "one\n"


def test_the_local_server_is_at_the_document_s_port() -> None:
    """LWP section 2: 1992."""
    assert _settings.DEFAULT_URL == "lance://127.0.0.1:1992"


def test_the_help_has_sections(lwp: Call) -> None:
    """Options and commands stand under what they are about, and none is missing."""
    text = lwp("--help").stdout
    for title in ("Connection:", "Output:", "Topics and records:", "Servers:", "Files:"):
        assert f"\n{title}\n" in text
    for name in (*_app.lwp.list_commands(click.Context(_app.lwp)), "--url", "--json"):
        assert f"  {name}" in text


def test_a_variable_that_means_nothing_is_told(lwp: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a suggestion, before the command runs; --quiet leaves it out."""
    monkeypatch.setenv("LANCE_TOKENS", "x")
    monkeypatch.setenv("LANCE_PORT", "tcp://10.96.0.7:1992")
    told = "warning: the environment variable LANCE_TOKENS is not read by anything; "
    loud = lwp("explain", "--help")
    assert loud.stderr.splitlines() == [f"{told}did you mean LANCE_TOKEN?"]
    assert lwp("-q", "explain", "--help").stderr == ""
